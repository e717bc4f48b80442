"""A labelling session at work: journal, state, and predictions that follow every change. No network.

An action is checked, put on the disk, then carried out, all under one lock. Predictions are made by one thread of
their own, which always works on the newest labels and skips those it was too slow for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from team.labelling import actions
from team.labelling.advisor import Advisor, no_predictions
from team.labelling.audit import SAMPLE, accuracy, draw_sample
from team.labelling.classes import ActionError
from team.labelling.explain import Explanation
from team.labelling.journal import Entry, Journal
from team.labelling.rows import LabelledImage
from team.labelling.session import Session
from team.seeding import generator


class Workbench:
    """paths: of the images below ``folder``; features: ``[n, d]``; journal: opened for that folder."""

    def __init__(
        self,
        folder: Path,
        paths: Sequence[str],
        features: NDArray[np.float32],
        journal: Journal,
        *,
        method: str | None = None,
        seed: int = 0,
    ) -> None:
        if not len(paths) == len(features) > 0:
            raise ValueError(f"{len(paths)} paths and {len(features)} features; there must be one feature per image")
        self.folder, self.paths = folder, list(paths)
        self.method, self.seed = method, seed
        self._places = {path: place for place, path in enumerate(self.paths)}
        self._features, self._journal = features, journal
        self.session = Session()
        self.session.replay(journal.entries)
        self._lock = threading.Lock()
        self._moved = threading.Condition(self._lock)
        self._closed = False
        self.predictions = no_predictions(len(paths), -1)
        self._advisor: Advisor | None = None
        self._thread = threading.Thread(target=self._follow, name="predictions", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._moved:
            self._closed = True
            self._moved.notify_all()
        self._thread.join()
        self._journal.close()

    # What a person does.

    def act(self, action: actions.Action) -> dict[str, Any]:
        """Carry out one action of the page; when this returns, it is on the disk. Returns :meth:`snapshot`."""
        with self._moved:
            self._do(self._entry(action))
            return self._snapshot()

    def take_over(self, labels: dict[str, str]) -> bool:
        """Labels by path that were there before the session, as its first action. False if it has begun already."""
        with self._moved:
            if self.session.revision:
                return False
            numbers = {name: number for number, name in enumerate(dict.fromkeys(labels.values()), 1)}
            chosen: dict[str, list[str]] = {str(number): [] for number in numbers.values()}
            for path, name in labels.items():
                chosen[str(numbers[name])].append(path)
            added = {str(number): name for name, number in numbers.items()}
            self._do({"do": "label", "source": "human", "add": added, "labels": chosen})
            return True

    def _do(self, entry: Entry) -> None:
        """Check, write down, carry out. What fails on the way has changed nothing."""
        plan = self.session.plan(entry)
        self._journal.append(entry | {"time": datetime.now(timezone.utc).isoformat(timespec="seconds")})
        self.session.carry_out(plan)
        self._moved.notify_all()

    def _entry(self, action: actions.Action) -> Entry:
        """The action as the journal keeps it: with paths in place of numbers, and everything random decided."""
        if isinstance(action, actions.LabelItems):
            labels = {str(number): self._named(items) for number, items in action.labels.items()}
            entry: Entry = {"do": "label", "source": action.source, "labels": labels}
            if action.name is not None:
                number = self.session.highest + 1
                entry |= {"add": {str(number): action.name}, "labels": {str(number): labels.pop("0", [])} | labels}
            return entry | ({"audit": True} if action.audit else {})
        if isinstance(action, actions.ClearItems):
            return {"do": "clear", "items": self._named(action.items)}
        if isinstance(action, actions.AddClass):
            return {"do": "add", "class": self.session.highest + 1, "name": action.name}
        if isinstance(action, actions.RenameClass):
            return {"do": "rename", "class": action.number, "name": action.name}
        if isinstance(action, actions.MergeClasses):
            return {"do": "merge", "class": action.number, "into": action.into}
        if isinstance(action, actions.StartAudit):
            return self._audit_entry()
        return {"do": action.do}

    def _audit_entry(self) -> Entry:
        predictions = self.predictions
        if predictions.revision != self.session.revision:
            raise ActionError("the predictions are being updated; try again in a moment")
        predicted = {path: int(predictions.classes[place]) for path, place in self._places.items()}
        population = [path for path, number in predicted.items() if number and path not in self.session.labels]
        if not population:
            raise ActionError("there are no predictions to check yet; label an example of two classes first")
        sample = draw_sample(population, SAMPLE, generator(self.seed, "audit", self.session.revision))
        return {"do": "audit", "population": len(population), "sample": {path: predicted[path] for path in sample}}

    def _named(self, items: list[int]) -> list[str]:
        if items and max(items) >= len(self.paths):
            raise ActionError(f"there is no image {max(items)}; load the page again")
        return [self.paths[item] for item in items]

    # What a person sees.

    def snapshot(self) -> dict[str, Any]:
        """Everything about the session but the predictions, in the page's form; labels and sources by image."""
        with self._lock:
            return self._snapshot()

    def _snapshot(self) -> dict[str, Any]:
        session = self.session
        found = [session.labels.get(path) for path in self.paths]
        return {
            "revision": session.revision,
            "classes": [{"number": number, "name": name} for number, name in session.classes.items()],
            "labels": [label.number if label else 0 for label in found],
            "sources": "".join(label.source[0] if label else "-" for label in found),
            "undo": session.undoable[-1].title if session.undoable else None,
            "redo": session.redoable[-1].title if session.redoable else None,
            "absent": sum(path not in self._places for path in session.labels),
            "audit": self._audit_view(),
        }

    def _audit_view(self) -> dict[str, Any] | None:
        audit = self.session.audit
        if audit is None:
            return None
        waiting = [self._places[path] for path in audit.predicted if path not in audit.answers and path in self._places]
        found = accuracy(audit)
        return {
            "population": audit.population,
            "size": len(audit.answers) + len(waiting),
            "waiting": waiting,
            "accuracy": vars(found) if found else None,
        }

    def explain(self, item: int) -> Explanation:
        """For an image; classes are meant by their numbers."""
        if not 0 <= item < len(self.paths):
            raise ActionError(f"there is no image {item}; load the page again")
        with self._moved:
            self._moved.wait_for(lambda: self.predictions.revision >= 0 or self._closed)
            labels, numbers = self._labels()
        return self._advisor.explain(item, labels, numbers) if self._advisor else Explanation([], [], 0)

    def rows(self, *, predicted: bool = True) -> list[LabelledImage]:
        """The labels of all images, for an export; those predicted belong to the newest labels."""
        with self._moved:
            self._moved.wait_for(lambda: self._closed or self.predictions.revision == self.session.revision)
            predictions, session = self.predictions, self.session
            rows = []
            for place, path in enumerate(self.paths):
                label = session.labels.get(path)
                number = int(predictions.classes[place])
                if label is not None:
                    rows.append(LabelledImage(path, session.classes[label.number], 1.0, label.source))
                elif predicted and number:
                    sure = float(predictions.confidence[place])
                    rows.append(LabelledImage(path, session.classes[number], sure, "predicted"))
            return rows

    # Predictions.

    def _labels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Labels ``[n]`` as places in the second array, which holds class numbers; -1 for unlabelled."""
        numbers = np.array([0, *self.session.classes], np.int64)[1:]
        place = {int(number): index for index, number in enumerate(numbers)}
        labels = np.full(len(self.paths), -1, np.int64)
        for path, label in self.session.labels.items():
            if path in self._places:
                labels[self._places[path]] = place[label.number]
        return labels, numbers

    def _follow(self) -> None:
        """The thread of the predictions."""
        advisor = None
        while True:
            with self._moved:
                self._moved.wait_for(lambda: self._closed or self.predictions.revision != self.session.revision)
                if self._closed:
                    return
                revision = self.session.revision
                labels, numbers = self._labels()
            try:
                advisor = advisor or Advisor(self._features, method=self.method, seed=self.seed)
                found = advisor.predictions(labels, numbers, revision)
            except Exception as error:  # the page must say so, and the next change must find this thread alive
                found = no_predictions(len(self.paths), revision, str(error))
            with self._moved:
                self._advisor, self.predictions = advisor, found
                self._moved.notify_all()

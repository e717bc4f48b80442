"""What a labelling session is: classes, labels, an audit, and how each action changes them. No files, no network.

A state is the replay of its journal. An action is planned first, which checks it and changes nothing; then it is
written down; then the plan is carried out. Undo and redo are actions like any other, so they survive a restart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from team.labelling.classes import ActionError, free_name, known, with_class
from team.labelling.journal import Entry

Source = Literal["human", "accepted"]


@dataclass(frozen=True)
class Label:
    """number: of the class; source: "human", or "accepted" for a prediction that a person agreed to."""

    number: int
    source: Source


@dataclass(frozen=True)
class Audit:
    """A random sample of ``population`` predicted images, each with the class predicted when it was drawn.

    predicted, answers: path -> class number; answers come in the order in which the sample is asked.
    """

    population: int
    predicted: dict[str, int]
    answers: dict[str, int]

    def merged(self, old: int, new: int) -> Audit:
        def moved(classes: dict[str, int]) -> dict[str, int]:
            return {path: new if number == old else number for path, number in classes.items()}

        return replace(self, predicted=moved(self.predicted), answers=moved(self.answers))


@dataclass(frozen=True)
class Change:
    """What to put in place: labels (None: none) of the paths named, and classes and audit as a whole."""

    title: str
    labels: dict[str, Label | None]
    classes: dict[int, str]
    audit: Audit | None


@dataclass(frozen=True)
class Plan:
    """A checked action: the change it makes, and what becomes of the two stacks."""

    change: Change
    kind: Literal["new", "undo", "redo"]


@dataclass
class Session:
    """classes: number -> name, in order of creation; labels: path -> label. Changed by :meth:`carry_out` alone.

    revision: how many actions have been carried out; highest: of all class numbers there have ever been
    """

    classes: dict[int, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    audit: Audit | None = None
    revision: int = 0
    highest: int = 0
    undoable: list[Change] = field(default_factory=list)
    redoable: list[Change] = field(default_factory=list)

    def plan(self, entry: Entry) -> Plan:
        """Check an action of the journal's form and say what it would change.

        label: {source, labels: {class: [path]}, add?: {class: name}, audit?: true}; clear: {items}; add: {class, name};
        rename: {class, name}; merge: {class, into}; audit: {population, sample: {path: class}}; end_audit; undo; redo
        """
        kind = entry.get("do")
        if kind == "undo":
            return Plan(_last(self.undoable, "undo"), "undo")
        if kind == "redo":
            return Plan(_last(self.redoable, "redo"), "redo")
        if kind not in _PLANS:
            raise ActionError(f"there is no action {kind!r}")
        try:
            return Plan(_PLANS[kind](self, entry), "new")
        except ActionError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ActionError(f"the action {kind!r} lacks something or has it in a wrong form: {error}") from error

    def carry_out(self, plan: Plan) -> None:
        inverse = self._swap(plan.change)
        if plan.kind == "new":
            self.undoable.append(inverse)
            self.redoable.clear()
        else:
            source, target = (self.undoable, self.redoable) if plan.kind == "undo" else (self.redoable, self.undoable)
            source.pop()
            target.append(inverse)
        self.revision += 1

    def replay(self, entries: Iterable[Entry]) -> None:
        for number, entry in enumerate(entries, 1):
            try:
                self.carry_out(self.plan(entry))
            except ActionError as error:
                raise ActionError(f"action {number} of the journal cannot be repeated: {error}") from error

    def _swap(self, change: Change) -> Change:
        """Put the change in place and return the one that takes it back."""
        before = {path: self.labels.get(path) for path in change.labels}
        inverse = Change(change.title, before, self.classes, self.audit)
        for path, label in change.labels.items():
            if label is None:
                self.labels.pop(path, None)
            else:
                self.labels[path] = label
        self.classes, self.audit = change.classes, change.audit
        self.highest = max(self.highest, *self.classes, 0)
        return inverse

    def change(self, title: str, **parts: Any) -> Change:
        """A change of the parts named, all others as they are."""
        whole: dict[str, Any] = {"labels": {}, "classes": self.classes, "audit": self.audit}
        return Change(title, **whole | parts)


def _label(session: Session, entry: Entry) -> Change:
    source = entry["source"]
    if source not in ("human", "accepted"):
        raise ActionError(f"a label comes from “human” or “accepted”, not {source!r}")
    classes = session.classes
    for number, name in entry.get("add", {}).items():
        classes = with_class(classes, int(number), name)
    labels: dict[str, Label] = {}
    for number, paths in entry["labels"].items():
        label = Label(known(classes, number), source)
        labels.update(dict.fromkeys(_paths(paths), label))
    if not labels:
        raise ActionError("nothing is selected; click an image first")
    audit = session.audit
    if entry.get("audit"):
        if audit is None or any(path not in audit.predicted for path in labels):
            raise ActionError("that image is not part of the accuracy check")
        audit = replace(audit, answers=audit.answers | {path: label.number for path, label in labels.items()})
    used = {label.number for label in labels.values()}
    title = f"{'accept' if source == 'accepted' else 'label'} {_count(labels)}"
    if source == "human" and len(used) == 1:
        title += f" “{classes[used.pop()]}”"
    return session.change(title, labels=labels, classes=classes, audit=audit)


def _clear(session: Session, entry: Entry) -> Change:
    labels: dict[str, Label | None] = {path: None for path in _paths(entry["items"]) if path in session.labels}
    if not labels:
        raise ActionError("there is no label to take off: none of the selected images has one")
    return session.change(f"take the label off {_count(labels)}", labels=labels)


def _add(session: Session, entry: Entry) -> Change:
    classes = with_class(session.classes, entry["class"], entry["name"])
    return session.change(f"add the class “{classes[entry['class']]}”", classes=classes)


def _rename(session: Session, entry: Entry) -> Change:
    number = known(session.classes, entry["class"])
    name, old = free_name(session.classes, entry["name"], number), session.classes[number]
    return session.change(f"rename “{old}” to “{name}”", classes=session.classes | {number: name})


def _merge(session: Session, entry: Entry) -> Change:
    old, new = known(session.classes, entry["class"]), known(session.classes, entry["into"])
    if old == new:
        raise ActionError("a class cannot be merged with itself; choose two")
    labels = {path: replace(label, number=new) for path, label in session.labels.items() if label.number == old}
    classes = {number: name for number, name in session.classes.items() if number != old}
    audit = session.audit.merged(old, new) if session.audit else None
    title = f"merge “{session.classes[old]}” into “{session.classes[new]}”"
    return session.change(title, labels=labels, classes=classes, audit=audit)


def _audit(session: Session, entry: Entry) -> Change:
    sample = {path: known(session.classes, number) for path, number in entry["sample"].items()}
    if not 0 < len(sample) <= entry["population"]:
        raise ActionError("there is nothing to check: every image has a label from you already")
    return session.change("start an accuracy check", audit=Audit(entry["population"], sample, {}))


def _end_audit(session: Session, entry: Entry) -> Change:
    if session.audit is None:
        raise ActionError("no accuracy check is under way")
    return session.change("close the accuracy check", audit=None)


_PLANS = {
    "label": _label,
    "clear": _clear,
    "add": _add,
    "rename": _rename,
    "merge": _merge,
    "audit": _audit,
    "end_audit": _end_audit,
}


def _last(stack: list[Change], word: str) -> Change:
    if not stack:
        raise ActionError(f"there is nothing to {word}")
    return stack[-1]


def _paths(paths: Any) -> list[str]:
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise ActionError("images must be named by a list of paths")
    return paths


def _count(items: dict[str, Any]) -> str:
    return "1 image" if len(items) == 1 else f"{len(items):,} images".replace(",", " ")

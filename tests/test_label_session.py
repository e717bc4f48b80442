"""A session is the replay of its journal: whatever is done, undone and torn, the same journal gives the same state."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from team.labelling.classes import ActionError
from team.labelling.journal import Journal, JournalError
from team.labelling.session import Label, Session

PATHS = [f"{number}.png" for number in range(6)]


def label(number: int, *paths: str, source: str = "human") -> dict[str, Any]:
    return {"do": "label", "source": source, "labels": {str(number): list(paths)}}


def add(number: int, name: str) -> dict[str, Any]:
    return {"do": "add", "class": number, "name": name}


def after(*entries: dict[str, Any]) -> Session:
    session = Session()
    session.replay(entries)
    return session


def view(session: Session) -> tuple[Any, ...]:
    return dict(session.classes), dict(session.labels), session.audit


paths = st.lists(st.sampled_from(PATHS), min_size=1, max_size=3)
actions = st.one_of(
    st.builds(add, st.integers(1, 4), st.sampled_from(["cat", "dog", "Cat", "cow"])),
    st.builds(
        lambda number, items, source: label(number, *items, source=source),
        st.integers(1, 4),
        paths,
        st.sampled_from(["human", "accepted"]),
    ),
    st.builds(lambda items: {"do": "clear", "items": items}, paths),
    st.builds(
        lambda number, name: {"do": "rename", "class": number, "name": name},
        st.integers(1, 4),
        st.sampled_from(["hen", "dog"]),
    ),
    st.builds(lambda one, two: {"do": "merge", "class": one, "into": two}, st.integers(1, 4), st.integers(1, 4)),
    st.builds(lambda items: {"do": "audit", "population": 9, "sample": dict.fromkeys(items, 1)}, paths),
    st.builds(lambda items: label(1, *items) | {"audit": True}, paths),
    st.sampled_from([{"do": "undo"}, {"do": "redo"}, {"do": "end_audit"}]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(actions, max_size=25))
def test_undoing_everything_leads_through_every_earlier_state_and_redoing_back(tried: list[dict[str, Any]]) -> None:
    session, done = Session(), []
    for action in tried:
        before = view(session)
        try:
            plan = session.plan(action)
        except ActionError:
            assert view(session) == before  # what is refused changes nothing
            continue
        assert view(session) == before  # and neither does a plan
        session.carry_out(plan)
        done.append(action)
    final = view(session)
    assert view(after(*done)) == final
    states = [final]
    while session.undoable:
        session.replay([{"do": "undo"}])
        states.append(view(session))
    assert states[-1] == ({}, {}, None)
    for expected in reversed(states[:-1]):
        session.replay([{"do": "redo"}])
        assert view(session) == expected


def test_a_new_action_ends_what_could_be_redone() -> None:
    session = after(add(1, "cat"), label(1, "0.png"), {"do": "undo"}, label(1, "1.png"))
    assert session.labels == {"1.png": Label(1, "human")}
    with pytest.raises(ActionError, match="nothing to redo"):
        session.plan({"do": "redo"})


def test_merging_moves_labels_and_the_audit() -> None:
    audit = {"do": "audit", "population": 5, "sample": {"3.png": 2}}
    session = after(add(1, "cat"), add(2, "kitten"), label(1, "0.png"), label(2, "1.png", source="accepted"), audit)
    session.replay([{"do": "merge", "class": 2, "into": 1}])
    assert session.classes == {1: "cat"}
    assert session.labels["1.png"] == Label(1, "accepted")
    assert session.audit is not None
    assert session.audit.predicted == {"3.png": 1}


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (add(3, "CAT"), "there is a class “cat” already"),
        (add(1, "hen"), "not free"),
        (add(3, " \t"), "type one or more letters"),
        (add(3, "x" * 101), "101 characters; use at most 100"),
        (label(9, "0.png"), "no longer there"),
        (label(1), "nothing is selected"),
        (label(1, "0.png", source="predicted"), "a label comes from"),
        ({"do": "clear", "items": ["5.png"]}, "no label to take off"),
        ({"do": "merge", "class": 1, "into": 1}, "with itself"),
        (label(1, "0.png") | {"audit": True}, "not part of the accuracy check"),
        ({"do": "label"}, "lacks something"),
        ({"do": "dance"}, "no action 'dance'"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(ActionError, match=said):
        after(add(1, "cat"), add(2, "dog")).plan(entry)


def test_a_class_number_is_never_given_twice() -> None:
    session = after(add(1, "cat"), {"do": "undo"}, add(2, "dog"), {"do": "undo"})
    assert session.classes == {}
    assert session.highest == 2


# The journal.


def entries(path: Path, folder: Path) -> list[dict[str, Any]]:
    journal = Journal(path, folder)
    journal.close()
    return journal.entries


def test_a_line_is_forced_to_the_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 cannot tell this, since the system keeps what a killed process wrote; a power cut could."""
    forced: list[int] = []
    fsync = os.fsync

    def noted(file: int) -> None:
        fsync(file)
        forced.append(os.fstat(file).st_size)

    monkeypatch.setattr(os, "fsync", noted)
    path = tmp_path / "session.jsonl"
    journal = Journal(path, tmp_path)
    for number in range(3):
        journal.append(add(number, "cat"))
        assert forced[-1] == path.stat().st_size
    journal.close()


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_half_a_last_line_is_dropped_and_the_rest_kept(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "session.jsonl"
    journal = Journal(path, tmp_path)
    for number in range(3):
        journal.append({"do": "add", "class": number, "name": "ü" * 10})
    journal.close()
    os.truncate(path, path.stat().st_size - cut)
    journal = Journal(path, tmp_path)
    assert journal.torn
    assert [entry["class"] for entry in journal.entries] == [0, 1]
    journal.append({"do": "add", "class": 9, "name": "after"})
    journal.close()
    assert [entry["class"] for entry in entries(path, tmp_path)] == [0, 1, 9]


def test_even_a_torn_first_line_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text('{"format": "team lab')
    assert entries(path, tmp_path) == []
    assert json.loads(path.read_text())["folder"] == str(tmp_path)


def test_damage_in_the_middle_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    journal = Journal(path, tmp_path)
    journal.append(add(1, "cat"))
    journal.append(add(2, "dog"))
    journal.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"\0" * 10 + b"\n" + lines[2])
    with pytest.raises(JournalError, match=r"line 2 .* is damaged"):
        Journal(path, tmp_path)
    path.write_bytes(b"".join(lines))
    assert len(entries(path, tmp_path)) == 2  # the failed attempt has not kept the lock


def test_a_journal_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text('{"some": "thing"}\n')
    with pytest.raises(JournalError, match="not a labelling session"):
        Journal(tmp_path / "other.jsonl", tmp_path)
    Journal(tmp_path / "mine.jsonl", tmp_path / "one").close()
    with pytest.raises(JournalError, match=r"is the session of .*one, not of .*two"):
        Journal(tmp_path / "mine.jsonl", tmp_path / "two")
    (tmp_path / "later.jsonl").write_text('{"format": "team labelling journal", "version": 99, "folder": "x"}\n')
    with pytest.raises(JournalError, match="another version"):
        Journal(tmp_path / "later.jsonl", tmp_path)


def test_names_that_are_no_unicode_survive(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "session.jsonl", tmp_path)
    strange = os.fsdecode(b"caf\xe9.png")
    journal.append(label(1, strange))
    journal.close()
    assert entries(tmp_path / "session.jsonl", tmp_path)[0]["labels"]["1"] == [strange]

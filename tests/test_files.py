"""Claims about writing files: a reader sees the old file or the new one, and nothing is left behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from team.files import atomic_path, cache_folder, write_json, write_text


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_written_file_takes_its_place_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "file.txt"
    write_text(path, "Grüße")
    write_text(path, "γ λ α")
    assert path.read_text(encoding="utf-8") == "γ λ α"
    assert names(path.parent) == ["file.txt"]


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with atomic_path(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.parent == path.parent, "else it could not be renamed at once"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_the_old_file_stays_when_the_writer_fails(tmp_path: Path, error: BaseException) -> None:
    def fail(path: Path) -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half of")
            raise error

    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(type(error)):
        fail(path)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["file.txt"]
    with pytest.raises(type(error)):
        fail(tmp_path / "never.txt")
    assert names(tmp_path) == ["file.txt"], "and none appears where there was none"


def test_others_may_read_what_was_written(tmp_path: Path) -> None:
    write_text(tmp_path / "file.txt", "")
    assert (tmp_path / "file.txt").stat().st_mode & 0o777 == 0o644


def test_json_is_written_for_people_and_reads_back(tmp_path: Path) -> None:
    value = {"mean": 61.25, "class": "ψ", "list": [1, None, True]}
    write_json(tmp_path / "value.json", value)
    text = (tmp_path / "value.json").read_text(encoding="utf-8")
    assert json.loads(text) == value
    assert "ψ" in text
    assert text.endswith("}\n")
    with pytest.raises(TypeError):
        write_json(tmp_path / "value.json", {"no": object()})
    assert json.loads((tmp_path / "value.json").read_text(encoding="utf-8")) == value


def test_the_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path / "chosen"))
    assert cache_folder() == tmp_path / "chosen"
    monkeypatch.delenv("TEAM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "team"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "team"

"""Only data comes out of a pickle, and nothing in it is ever run."""

from __future__ import annotations

import collections
import contextlib
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from team.data import DataError
from team.data.pickles import read_pickle


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.float32, np.bool_, ">i4"])
def test_arrays_come_back_as_written(tmp_path, protocol, kind):
    array = np.arange(24).reshape(2, 3, 4).astype(kind)
    content = {"data": array, "turned": array.T, "labels": [1, 2], b"name": b"x", "inner": {b"n01": [np.int64(3)]}}
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(content, protocol))
    found = read_pickle(path)
    assert np.array_equal(found["data"], array)
    assert found["data"].dtype == array.dtype
    assert np.array_equal(found["turned"], array.T)
    assert (found["labels"], found["name"], found["inner"]) == ([1, 2], b"x", {"n01": [3]})


def test_a_pickle_of_python_2_is_read(tmp_path):
    # {'data': <uint8 [2]>, 'names': ['apple']} with Python 2's byte strings and numpy's old module names
    written = (
        b"\x80\x02}q\x00(U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89U\x02\x07\x09tbU\x05names]U\x05applea" + b"u."
    )
    path = tmp_path / "a.pkl"
    path.write_bytes(written)
    found = read_pickle(path)
    assert found["data"].tolist() == [7, 9]
    assert found["names"] == ["apple"]


class Call:
    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    "bad",
    [
        Call(os.system, "touch hacked"),
        Call(eval, "open('hacked', 'w')"),
        Call(getattr, {}, "__class__"),
        Call(getattr, np.ndarray, "tofile"),
        Call(np.load, "hacked"),
        Call(np.fromfile, "hacked"),
        Call(np.save, "hacked", [1]),
        Call(Path, "hacked"),
        Call(collections.Counter),
        Call(open, "hacked", "w"),
        np.array([Call(os.system, "touch hacked")], dtype=object),
        np.array([object], dtype=object),
        np.zeros(2, dtype=[("a", "i4")]),
        np.array(["text"]),
        os.system,
        np.dtype("u1"),
        np.ndarray,
    ],
    ids=str,
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_anything_but_data_is_refused(tmp_path, monkeypatch, bad, protocol):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bad.pkl"
    path.write_bytes(pickle.dumps({"data": bad}, protocol))
    with pytest.raises(DataError, match=r"bad\.pkl (is not read: it holds|is cut short or damaged)"):
        read_pickle(path)
    assert os.listdir(tmp_path) == ["bad.pkl"]


def test_the_message_names_what_was_found(tmp_path):
    path = tmp_path / "bad.pkl"
    path.write_bytes(pickle.dumps({"data": Call(os.system, "true")}))
    with pytest.raises(DataError, match=r"it holds the name (posix|nt)\.system, which no data set needs"):
        read_pickle(path)


@pytest.mark.parametrize(
    "raw",
    [
        b"cos\nsystem\n(S'touch hacked'\ntR.",
        b"\x80\x04\x8c\x08builtins\x8c\x07getattr\x93.",
        b"cnumpy.core.multiarray\nfromstring\n.",
        b"cmultiarray\n_reconstruct\n.",
        b"Pid\n.",
        b"\x80\x02cnumpy\ndtype\n(S'O8'\nI0\nI1\ntR.",
        b"\x80\x02cnumpy\ndtype\n)\x81.",
        b"I5\n.",
        b"",
    ],
)
def test_handwritten_attacks_and_rubbish_are_refused(tmp_path, raw):
    path = tmp_path / "bad.pkl"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"bad\.pkl"):
        read_pickle(path)


@given(st.binary(max_size=200))
def test_random_bytes_never_do_anything_but_fail_or_give_data(tmp_path_factory, raw):
    path = tmp_path_factory.getbasetemp() / "random.pkl"
    path.write_bytes(raw)
    with contextlib.suppress(DataError):
        assert isinstance(read_pickle(path), dict)


def test_a_memo_entry_numbered_in_the_millions_is_refused_before_room_is_made_for_it(tmp_path):
    path = tmp_path / "memo.pkl"
    path.write_bytes(b"\x80\x02}r\xff\xff\xff\x3f.")  # an empty dict, kept as entry 2³⁰ - 1: 16 GiB of room
    with pytest.raises(DataError, match="entry numbered 1073741823"):
        read_pickle(path)


@given(st.data())
def test_a_damaged_pickle_gives_one_kind_of_error(tmp_path_factory, data):
    content = bytearray(pickle.dumps({"data": np.arange(9, dtype=np.uint8), "labels": [1, 2, 3]}, 2))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.pkl"
    path.write_bytes(content)
    with contextlib.suppress(DataError):
        read_pickle(path)

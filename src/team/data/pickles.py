"""Reading the pickles that data sets come in, without running what a stranger put into them.

A pickle is a program. The ones we read hold dicts, lists, numbers, text, bytes and numpy arrays, so only those are
understood. Even numpy's own unpickling is not used: an array's shape, type and bytes are collected and checked by the
classes below, and the array is made from them here.
"""

from __future__ import annotations

import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from team.data.source import DataError

_KINDS = "biuf"  # truth values, integers, floating point: the arrays that are only numbers


class _Refused(pickle.UnpicklingError):
    """The pickle holds more than data; the message says what."""


class _Type:
    """A numpy type of numbers, as pickled: a code such as ``u1`` and a byte order."""

    def __init__(self, code: Any = None, *_: Any) -> None:
        self.type = np.dtype(_text(code)) if isinstance(code, str | bytes) and len(code) < 8 else None
        if self.type is None or self.type.kind not in _KINDS:
            raise _Refused(f"an array of type {code!r}, which is not a type of numbers")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if _text(state[1]) == ">" and self.type is not None:
            self.type = self.type.newbyteorder(">")


class _Array:
    """A numpy array, as pickled: made empty, then given its shape, type and bytes."""

    value: NDArray[Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, column_major, raw = state
        self.value = _from_bytes(raw, kind, shape, "F" if column_major else "C").value


def _text(value: str | bytes) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else value


def _from_bytes(raw: Any, kind: Any, shape: Any, order: str) -> _Array:
    if not isinstance(kind, _Type) or not isinstance(raw, bytes | bytearray):
        raise _Refused("an array that is not numbers")
    made = _Array()
    made.value = np.frombuffer(raw, kind.type).reshape(shape, order="F" if order == "F" else "C")
    return made


def _reconstruct(*_: Any) -> _Array:
    return _Array()


def _number(kind: Any, raw: Any) -> Any:
    value = _from_bytes(raw, kind, (1,), "C").value
    assert value is not None
    return value[0].item()


def _latin1(text: Any, encoding: Any) -> bytes:
    """Python 3 writes bytes into an old-style pickle as ``codecs.encode(text, "latin1")``."""
    if not isinstance(text, str) or _text(encoding) != "latin1":
        raise _Refused("a call of codecs.encode on something other than latin1 text")
    return text.encode("latin1")


_NAMES: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "dtype"): _Type,
    ("numpy", "ndarray"): _reconstruct,
    ("multiarray", "_reconstruct"): _reconstruct,
    ("multiarray", "scalar"): _number,
    ("numeric", "_frombuffer"): _from_bytes,
    ("_codecs", "encode"): _latin1,
    ("__builtin__", "set"): set,
    ("builtins", "set"): set,
    ("collections", "OrderedDict"): dict,
}


class _Restricted(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        short = module.removeprefix("numpy.core.").removeprefix("numpy._core.")
        if (short, name) not in _NAMES or (short in ("multiarray", "numeric") and short == module):
            raise _Refused(f"the name {module}.{name}, which no data set needs")
        return _NAMES[short, name]

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused("a reference to something outside the file")


def _plain(value: Any) -> Any:
    """Take the arrays out of their holders; byte strings used as names become text."""
    if isinstance(value, _Array):
        if value.value is None:
            raise _Refused("an array without content")
        return value.value
    if isinstance(value, _Type) or callable(value):
        raise _Refused(f"a bare {type(value).__name__} where data should be")
    if isinstance(value, dict):
        return {_text(key) if isinstance(key, bytes) else key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_text(item) if isinstance(item, bytes) else _plain(item) for item in value]
    return value


def _check_memo(file: IO[bytes]) -> None:
    """Refuse a memo entry numbered beyond the entries before it: the unpickler would make room for all those between,
    and one damaged byte is enough to ask for gigabytes."""
    for count, (operation, argument, _) in enumerate(pickletools.genops(file)):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > count:
            raise _Refused(f"an entry numbered {argument} after {count} operations")
    file.seek(0)


def read_pickle(path: Path) -> dict[str, Any]:
    """The dict in the pickle file ``path``; keys and listed strings are text, whichever Python wrote them."""
    try:
        with open(path, "rb") as file:
            _check_memo(file)
            value = _plain(_Restricted(file, encoding="bytes").load())
    except _Refused as error:
        raise DataError(
            f"{path} is not read: it holds {error}. It is damaged, or not the official file; get it again from its "
            "official address, and do not open this one with pickle"
        ) from error
    except Exception as error:  # a damaged pickle can fail in any way; all of them mean the same to the user
        raise DataError(f"{path} is cut short or damaged ({type(error).__name__}: {error}): get it again") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds a {type(value).__name__}, not the dict that a data set's pickle holds")
    return value

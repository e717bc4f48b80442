"""The classes of a session, number -> name: which names are allowed, and which are free."""

from __future__ import annotations

import unicodedata
from typing import Any

LONGEST_NAME = 100
# Characters that turn the direction of the text around them, with which one name can be made to look like another.
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class ActionError(ValueError):
    """An action that makes no sense in this state; the message is for the person who asked for it."""


def check_name(given: object) -> str:
    """A class name as it is kept: normalised, without space around it."""
    if not isinstance(given, str):
        raise ActionError("a class needs a name")
    name = unicodedata.normalize("NFC", given).strip()
    if not name:
        raise ActionError("a class needs a name; type one or more letters")
    if len(name) > LONGEST_NAME:
        raise ActionError(f"that name has {len(name)} characters; use at most {LONGEST_NAME}")
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in _TURNING for letter in name):
        raise ActionError("a class name must be one line without control characters")
    return name


def known(classes: dict[int, str], number: Any) -> int:
    if int(number) not in classes:
        raise ActionError("that class is no longer there: it was merged, or its creation undone")
    return int(number)


def with_class(classes: dict[int, str], number: int, name: Any) -> dict[int, str]:
    if not isinstance(number, int) or number < 1 or number in classes:
        raise ActionError(f"class number {number!r} is not free")
    return classes | {number: free_name(classes, name)}


def free_name(classes: dict[int, str], given: object, number: int | None = None) -> str:
    name = check_name(given)
    for other, taken in classes.items():
        if taken.casefold() == name.casefold() and other != number:
            raise ActionError(f"there is a class “{taken}” already; choose another name, or merge the two")
    return name

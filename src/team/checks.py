"""Checks of plain numbers, for the doors of constructors."""

from __future__ import annotations

from typing import SupportsIndex


def check_positive(**numbers: float) -> None:
    """Raise unless every number is positive and finite."""
    for name, value in numbers.items():
        if not 0 < value < float("inf"):
            raise ValueError(f"{name} must be positive and finite, not {value}")


def check_not_negative(**numbers: float) -> None:
    """Raise unless every number is finite and not negative."""
    for name, value in numbers.items():
        if not 0 <= value < float("inf"):
            raise ValueError(f"{name} must be finite and not negative, not {value}")


def check_counts(**numbers: int) -> None:
    """Raise unless every number counts something: whole, 0 or more."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, SupportsIndex) or int(value) < 0:
            raise ValueError(f"{name} must be a whole number, 0 or more, not {value!r}")

"""The methods, by name. Each stands in a file of its own, with the paper it comes from."""

from __future__ import annotations

import inspect
from typing import Any

from team.methods.base import Method
from team.methods.protonet import ProtoNet
from team.methods.team import TEAM

_METHODS: dict[str, type[Method]] = {"protonet": ProtoNet, "team": TEAM}


def list_methods() -> list[str]:
    """The names :func:`create_method` knows."""
    return sorted(_METHODS)


def create_method(name: str, **options: Any) -> Method:
    """The method of this name with these options; ``create_method("team", k=5)`` is the paper's formula."""
    if name not in _METHODS:
        raise ValueError(f"no method is called {name!r}; there are {', '.join(list_methods())}")
    known = list(inspect.signature(_METHODS[name]).parameters)
    if unknown := sorted(set(options) - set(known)):
        raise TypeError(f"{name} has no option {', '.join(unknown)}; it has {', '.join(known)}")
    return _METHODS[name](**options)


__all__ = ["TEAM", "Method", "ProtoNet", "create_method", "list_methods"]

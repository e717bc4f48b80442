"""Running code that was not written to be imported: from its folder, on a machine without CUDA, today."""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock, patch

import numpy as np
import torch

os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
logging.disable(logging.INFO)  # some of them log a line for every episode


def load(root: Path, name: str, **stand_ins: ModuleType | MagicMock) -> ModuleType:
    """The module ``name`` as seen from the folder ``root``.

    stand_ins: modules to find under these names (``__`` for a dot). Afterwards `sys.modules` knows neither these nor
    what lies in the folder, since two of these repositories call their package `src`, and two have a module `utils`.
    """
    lent = {key.replace("__", "."): module for key, module in stand_ins.items()}
    displaced = {key: sys.modules[key] for key in lent if key in sys.modules}
    sys.modules.update(lent)
    try:
        with patch.object(sys, "path", [str(root), *sys.path]):
            return importlib.import_module(name)
    finally:
        for key, module in list(sys.modules.items()):
            if key in lent or _lies_in(root, module):
                del sys.modules[key]
        sys.modules.update(displaced)


def _lies_in(root: Path, module: ModuleType) -> bool:
    known = vars(module)  # not getattr, to which some of torch's modules answer with anything
    places = [known.get("__file__"), *known.get("__path__", ())]
    return any(Path(place).is_relative_to(root) for place in places if isinstance(place, str))


def functions(path: Path, names: set[str], **known: Any) -> dict[str, Any]:
    """Only these functions of a script, with ``known`` as its globals, which stay within reach in the result.

    For scripts that parse a command line or need data sets when imported.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    if missing := names - {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}:
        raise ValueError(f"{path} has no function {', '.join(sorted(missing))}; is it the commit that was compared?")
    exec(compile(tree, str(path), "exec"), known)
    return known


@contextmanager
def as_then() -> Iterator[None]:
    """Within this context `.cuda()` stays on the CPU and numpy still has `np.float`."""
    with ExitStack() as stack:
        for owner in (torch.Tensor, torch.nn.Module):
            stack.enter_context(patch.object(owner, "cuda", lambda self, *_: self))
        stack.enter_context(patch.object(np, "float", float, create=True))
        yield


class Ingredient:
    """The little of `sacred` that TIM's code needs: a function's locals as options that other functions receive."""

    def __init__(self, name: str) -> None:
        self.name, self.options = name, dict[str, Any]()

    def config(self, function: Callable[[], None]) -> None:
        body = inspect.getsource(function).split("\n", 2)[2]  # after the decorator and the `def`
        exec(textwrap.dedent(body), {}, self.options)

    def capture(self, function: Callable[..., Any]) -> Callable[..., Any]:
        wanted = list(inspect.signature(function).parameters)[1:]

        def filled(self_: object, **given: Any) -> Any:
            return function(self_, **{key: self.options[key] for key in wanted if key not in given} | given)

        return filled


def sacred() -> ModuleType:
    """A stand-in for the module of that name."""
    module = ModuleType("sacred")
    module.Ingredient = Ingredient  # type: ignore[attr-defined]
    return module

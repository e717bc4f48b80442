"""Weights that come with the package, by the name of the cell they belong to."""

from __future__ import annotations

from pathlib import Path

from team.files import AnyPath

_FOLDER = Path(__file__).parent


def list_weights() -> list[str]:
    """Names that :func:`weights_path` knows, e.g. ``cifar100-conv4-5shot-team``."""
    return sorted(path.stem for path in _FOLDER.glob("*.safetensors"))


def weights_path(name: AnyPath) -> Path:
    """The file of weights that came with the package, or of a path to one's own."""
    path = Path(name)
    if path.suffix == ".safetensors":
        if not path.is_file():
            raise ValueError(f"there is no file {path}")
        return path
    if str(path) not in list_weights():
        raise ValueError(f"no weights are called {path}; there are {', '.join(list_weights()) or 'none'}")
    return _FOLDER / f"{path}.safetensors"

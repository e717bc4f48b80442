"""Running an embedder through ONNX Runtime where it is installed: the same features, several times as fast on a CPU."""

from __future__ import annotations

import importlib.util
import logging
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from team.files import atomic_path, cache_folder
from team.labelling.embedders import Embedder, run_torch
from team.labelling.int8 import Int8Network
from team.labelling.int8_onnx import as_onnx
from team.labelling.ort import onnxruntime

Run = Callable[[NDArray[np.uint8]], NDArray[np.float32]]
"""From pixels uint8 ``[n, size, size, 3]`` to features float32 ``[n, d]``; several threads may call it at once."""

_WORTH_EXPORTING = 256
_NEEDED = ("onnx", "onnxruntime")
_TOLERANCE = 1e-3  # of the largest feature; a faithful export is a hundred times closer


def fast(embedder: Embedder, images: int = _WORTH_EXPORTING) -> Run:
    """The embedder as a function, fast for so many images.

    A network on a GPU stays there. Exporting one of floats takes seconds, so for a few images it runs in torch unless
    it was exported before. The exported file is kept in the cache and checked against the network's own answer before
    it is trusted; a network that cannot be exported runs in torch, with a warning.
    """
    plain = _one_at_a_time(partial(run_torch, embedder))
    in_bytes = isinstance(embedder.network, Int8Network)
    needed = _NEEDED if in_bytes else (*_NEEDED, "onnxscript")
    if embedder.device.type != "cpu" or any(importlib.util.find_spec(name) is None for name in needed):
        return plain
    path = cache_folder() / "embedders" / f"{embedder.key}.onnx"
    try:
        if path.is_file() and (run := _checked(path, embedder)) is not None:
            return run
        if images < _WORTH_EXPORTING and not in_bytes:
            return plain
        _export(embedder, path)
        if (run := _checked(path, embedder)) is not None:
            return run
        reason = "the exported file gives other features"
    except Exception as error:  # exporters and runtimes fail with many types; none of them is worth stopping for
        reason = str(error).strip().split("\n")[0]
    warnings.warn(f"the embedder runs in torch, which is slower: its export to ONNX failed ({reason})", stacklevel=2)
    return plain


def _one_at_a_time(run: Run) -> Run:
    """torch uses all cores for each call, so that calls side by side would only get into each other's way."""
    lock = Lock()

    def locked(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        with lock:
            return run(pixels)

    return locked


def _export(embedder: Embedder, path: Path) -> None:
    """Write the network with its batch size free."""
    if isinstance(embedder.network, Int8Network):
        with atomic_path(path) as temporary:
            temporary.write_bytes(as_onnx(embedder.network, embedder.size).SerializeToString())
        return
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    module, pixels = embedder.from_pixels, torch.from_numpy(embedder.probe[0])
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module, (pixels,), dynamo=True, dynamic_shapes=({0: torch.export.Dim("batch", min=1)},), verbose=False
        )
    assert program is not None  # it is None only where a file name is given
    with atomic_path(path) as temporary:
        program.save(str(temporary), external_data=False)


def _checked(path: Path, embedder: Embedder) -> Run | None:
    """The file as a function, if it answers the probe as the network does."""
    run = partial(_run_session, _session(path))
    pixels, features = embedder.probe
    answer = run(pixels)
    close = np.abs(answer - features).max() <= _TOLERANCE * np.abs(features).max()
    return run if close else None


def _session(path: Path) -> Any:
    """One thread per call: several pictures on a core each are faster than each picture on several cores."""
    module = onnxruntime()
    options = module.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return module.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def _run_session(session: Any, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    (features,) = session.run(None, {session.get_inputs()[0].name: pixels})
    result: NDArray[np.float32] = features
    return result

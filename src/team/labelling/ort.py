"""ONNX Runtime, silenced: since 1.31 it reports to its maker unless told not to before it is first imported."""

from __future__ import annotations

import os
from typing import Any


def onnxruntime() -> Any:
    """The module, imported so that it sends nothing and leaves no identifier on this machine."""
    for name in ("ORT_DISABLE_TELEMETRY", "ORT_TELEMETRY_DISABLED"):  # the later name and the earlier one
        os.environ[name] = "1"
    import onnxruntime as module

    module.disable_telemetry_events()  # what Windows listens to; also where someone else imported it before
    return module

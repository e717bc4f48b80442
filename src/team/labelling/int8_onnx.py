"""An :class:`team.labelling.int8.Int8Network` as a graph of ONNX Runtime's operators on bytes."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from team.labelling.int8 import Grid, Int8Block, Int8Conv, Int8Network
from team.labelling.ort import onnxruntime

if TYPE_CHECKING:
    import onnx

_OPERATORS, _IR = 17, 8  # versions that every ONNX Runtime we take can read
_PROVIDERS = ["CPUExecutionProvider"]


def as_onnx(network: Int8Network, size: int) -> onnx.ModelProto:
    """From pixels uint8 ``[n, size, size, 3]``, which are the bytes of the first grid, to features ``[n, dim]``."""
    from onnx import TensorProto, helper

    graph = _Graph()
    values = graph.add("Transpose", ["pixels"], perm=[0, 3, 1, 2])
    for block in network.blocks:
        assert isinstance(block, Int8Block)
        values = _block(graph, block, values)
        last = block.outgoing
    floats = graph.add("DequantizeLinear", [values, *graph.grid(last)])
    graph.add("ReduceMean", [floats], outputs=["features"], axes=[2, 3], keepdims=0)
    pixels = helper.make_tensor_value_info("pixels", TensorProto.UINT8, ["n", size, size, 3])
    features = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", network.dim])
    return _model(graph, pixels, features)


@cache
def bytes_are_exact() -> bool:
    """Whether ONNX Runtime is here and multiplies bytes without loss.

    On an x86 without VNNI it adds products of bytes in 16 bits, which cuts off large sums; the network would then give
    other features than elsewhere. One product of extreme bytes tells.
    """
    if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
        return False
    from onnx import TensorProto, helper

    graph, length = _Graph(), 64
    weight = np.repeat([[127, -127]], length, 0).astype(np.int8)
    graph.add("MatMulInteger", ["bytes", graph.constant(weight)], outputs=["sums"])
    given = helper.make_tensor_value_info("bytes", TensorProto.UINT8, [1, length])
    asked = helper.make_tensor_value_info("sums", TensorProto.INT32, [1, 2])
    session = onnxruntime().InferenceSession(_model(graph, given, asked).SerializeToString(), providers=_PROVIDERS)
    (sums,) = session.run(None, {"bytes": np.full((1, length), 255, np.uint8)})
    return bool((sums == 255 * 127 * length * np.array([1, -1])).all())


def _block(graph: _Graph, block: Int8Block, start: str) -> str:
    values = start
    for conv in block.convs:
        assert isinstance(conv, Int8Conv)
        values = _convolution(graph, conv, values)
    if not block.skip:
        return values
    ends = [values, *graph.grid(block.inner), start, *graph.grid(block.incoming), *graph.grid(block.outgoing)]
    return graph.add("QLinearAdd", ends, domain="com.microsoft")


def _convolution(graph: _Graph, conv: Int8Conv, values: str) -> str:
    left, right, top, bottom = conv.padding
    weight = [graph.constant(conv.weight.numpy()), graph.constant(conv.weight_scale.numpy())]
    weight.append(graph.constant(np.zeros(len(conv.weight), np.int8)))
    return graph.add(
        "QLinearConv",
        [values, *graph.grid(conv.incoming), *weight, *graph.grid(conv.outgoing), graph.constant(conv.bias.numpy())],
        strides=list(conv.stride),
        pads=[top, left, bottom, right],
        group=conv.groups,
        kernel_shape=list(conv.weight.shape[2:]),
    )


def _model(graph: _Graph, given: onnx.ValueInfoProto, asked: onnx.ValueInfoProto) -> onnx.ModelProto:
    import onnx
    from onnx import helper

    whole = helper.make_graph(graph.nodes, "int8", [given], [asked], graph.constants)
    versions = [helper.make_opsetid("", _OPERATORS), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(whole, opset_imports=versions, ir_version=_IR)
    onnx.checker.check_model(model)
    return model


class _Graph:
    """Nodes and constants, each with a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(
        self, operator: str, inputs: list[str], *, domain: str = "", outputs: list[str] | None = None, **options: Any
    ) -> str:
        from onnx import helper

        outputs = outputs or [f"values{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **options))
        return outputs[0]

    def constant(self, value: Any) -> str:
        from onnx import numpy_helper

        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def grid(self, grid: Grid) -> list[str]:
        return [self.constant(np.float32(grid.scale)), self.constant(np.uint8(grid.zero))]

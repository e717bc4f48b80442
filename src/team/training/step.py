"""One optimiser step: plainly on the CPU, as a replayed CUDA graph on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from team.training.average import WeightAverage

Loss = Callable[[dict[str, Tensor]], tuple[Tensor, Tensor]]
_EAGER_STEPS = 3  # real steps that also warm up what a graph capture needs to find ready


class Step:
    """Calls ``loss``, goes one step down its gradient, and adds loss and accuracy to ``sums [2]``, on the device."""

    def __init__(
        self, loss: Loss, optimiser: torch.optim.Optimizer, average: WeightAverage, device: torch.device, graph: bool
    ) -> None:
        self.loss, self.optimiser, self.average, self.device = loss, optimiser, average, device
        self.sums = torch.zeros(2, dtype=torch.float64, device=device)
        self.inputs: dict[str, Tensor] = {}
        self.calls = 0
        self.graph = torch.cuda.CUDAGraph() if graph and device.type == "cuda" else None
        self.stream = torch.cuda.Stream(device) if self.graph is not None else None  # type: ignore[no-untyped-call]

    def __call__(self, inputs: dict[str, Tensor], learning_rate: float) -> None:
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(learning_rate)
            else:
                group["lr"] = learning_rate
        if self.graph is None or self.stream is None:
            self._take({name: tensor.to(self.device, non_blocking=True) for name, tensor in inputs.items()})
            return
        if not self.inputs:
            self.inputs = {name: torch.empty_like(tensor, device=self.device) for name, tensor in inputs.items()}
        for name, tensor in inputs.items():
            self.inputs[name].copy_(tensor.pin_memory(), non_blocking=True)
        if self.calls < _EAGER_STEPS:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                self._take(self.inputs)
            torch.cuda.current_stream().wait_stream(self.stream)
        else:
            if self.calls == _EAGER_STEPS:
                self.optimiser.zero_grad(set_to_none=True)
                with torch.cuda.graph(self.graph, stream=self.stream):
                    self._take(self.inputs)
            self.graph.replay()
        self.calls += 1

    def _take(self, inputs: dict[str, Tensor]) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        loss, accuracy = self.loss(inputs)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.average.update()
        self.sums.add_(torch.stack([loss.detach(), accuracy.detach()]))

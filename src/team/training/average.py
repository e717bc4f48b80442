"""A moving average of a module's weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class WeightAverage:
    """Exponential average of parameters and floating point buffers. decay 0 follows the module exactly.

    Early on the decay is lowered to (1 + t) / (10 + t), so that the random beginning is forgotten. It is read from a
    tensor, so that the update can be part of a CUDA graph.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.live = [tensor for tensor in module.state_dict(keep_vars=True).values() if tensor.is_floating_point()]
        self.names = [name for name, tensor in module.state_dict().items() if tensor.is_floating_point()]
        self.mean = [tensor.detach().clone() for tensor in self.live]
        self.weight = torch.zeros((), device=self.live[0].device)

    def prepare(self, step: int) -> None:
        """Set the weight that the update after this step (from 0) gives to the new values."""
        self.weight.fill_(1 - min(self.decay, (1 + step) / (10 + step)))

    @torch.no_grad()
    def update(self) -> None:
        change = torch._foreach_sub([tensor.detach() for tensor in self.live], self.mean)
        torch._foreach_mul_(change, self.weight)
        torch._foreach_add_(self.mean, change)

    def state(self) -> dict[str, Tensor]:
        return dict(zip(self.names, self.mean, strict=True))

    def load(self, state: dict[str, Tensor]) -> None:
        for name, tensor in zip(self.names, self.mean, strict=True):
            tensor.copy_(state[name])

    @contextmanager
    @torch.no_grad()
    def applied(self) -> Iterator[None]:
        """Within this context the module has the averaged weights."""
        kept = [tensor.detach().clone() for tensor in self.live]
        for tensor, mean in zip(self.live, self.mean, strict=True):
            tensor.copy_(mean)
        try:
            yield
        finally:
            for tensor, value in zip(self.live, kept, strict=True):
                tensor.copy_(value)

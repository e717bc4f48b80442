"""Training on several processes (torchrun): each takes a share of a step's episodes, together they give what one would.

Batch normalisation uses the statistics of all shares, and DistributedDataParallel averages the gradients, so that a
step is the same, up to rounding, whatever the number of processes.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

Loss = Callable[[dict[str, Tensor]], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class World:
    """How many processes train together, and which of them this is."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0

    def share(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """This process's part of what was drawn for a step; the first axis runs over episodes, or over their images."""
        if self.size == 1:
            return inputs
        for name, tensor in inputs.items():
            if len(tensor) % self.size:
                raise ValueError(f"{len(tensor)} {name} of a step cannot be shared by {self.size} processes equally")
        return {name: tensor.chunk(self.size)[self.rank] for name, tensor in inputs.items()}

    def mean(self, values: Tensor) -> Tensor:
        """The mean of ``values`` over all processes."""
        if self.size > 1:
            values = values.clone()
            distributed.all_reduce(values)
            values /= self.size
        return values

    def agreed(self, value: float) -> float:
        """What the first process has to say, for decisions all must take alike."""
        if self.size == 1:
            return value
        said = torch.tensor([value], dtype=torch.float64)
        if distributed.get_backend() == "nccl":
            said = said.cuda()
        distributed.broadcast(said, 0)
        return float(said)

    def leave(self) -> None:
        """Part from the other processes once all are done: without it, some may abort when they exit."""
        if self.size > 1:
            gc.collect()  # modules wrapped for training together hold on to threads
            distributed.barrier()
            distributed.destroy_process_group()


def start(device: str) -> tuple[World, str]:
    """Join the processes that torchrun started, if it did; gives the world and the device of this process."""
    if "RANK" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
        return World(), device
    if device == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    return World(distributed.get_rank(), distributed.get_world_size()), device


def shared_loss(module: nn.Module, loss: Loss, world: World) -> Loss:
    """The same loss, of one share, such that its gradients are those of all shares together."""
    if world.size == 1:
        return loss
    for layer in module.modules():
        if isinstance(layer, _BatchNorm):
            layer.forward = partial(_normalise, layer, world)  # type: ignore[method-assign]
    wrapped: Any = DistributedDataParallel(_Callable(module, loss), broadcast_buffers=False)
    return lambda inputs: wrapped(inputs)


class _Callable(nn.Module):
    """A loss as the forward pass of the module it trains, which is the form DistributedDataParallel takes."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.module, self.loss = module, loss

    def forward(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return self.loss(inputs)


def _normalise(layer: _BatchNorm, world: World, inputs: Tensor) -> Tensor:
    """Batch normalisation of ``[n, C, ...]`` with mean and variance over all processes."""
    if not layer.training:
        return F.batch_norm(inputs, layer.running_mean, layer.running_var, layer.weight, layer.bias, eps=layer.eps)
    axes = [axis for axis in range(inputs.ndim) if axis != 1]
    shape = [1, -1] + [1] * (inputs.ndim - 2)
    values = inputs.float()
    mean: Tensor = _Sum.apply(values.mean(axes)) / world.size  # type: ignore[no-untyped-call]
    centred = values - mean.reshape(shape)
    variance: Tensor = _Sum.apply(centred.square().mean(axes)) / world.size  # type: ignore[no-untyped-call]
    if layer.running_mean is not None and layer.running_var is not None and layer.num_batches_tracked is not None:
        count = world.size * inputs.numel() / inputs.shape[1]
        with torch.no_grad():
            layer.num_batches_tracked += 1
            momentum = layer.momentum if layer.momentum is not None else 1 / float(layer.num_batches_tracked)
            layer.running_mean.lerp_(mean, momentum)
            layer.running_var.lerp_(variance * count / (count - 1), momentum)
    result = centred * (variance + layer.eps).rsqrt().reshape(shape)
    if layer.weight is not None:
        result = result * layer.weight.reshape(shape) + layer.bias.reshape(shape)
    return result.to(inputs.dtype)


class _Sum(torch.autograd.Function):
    """The sum over all processes; its gradient is the sum of theirs."""

    @staticmethod
    def forward(context: Any, values: Tensor) -> Tensor:
        total = values.clone()
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone()
        distributed.all_reduce(total)
        return total

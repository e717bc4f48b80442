"""Sec. 3.2, task internal mixing (TIM): an episode's images blended with one another, and when to do it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def task_internal_mixing(
    images: Tensor,
    labels: Tensor,
    *,
    low: float = 0.5,
    high: float = 1.0,
    generator: torch.Generator | None = None,
) -> tuple[Tensor, Tensor]:
    """Eq. 2: x̃ = ω·x_i + (1-ω)·x_j and ỹ = y_i, with ω ~ U(low, high) and x_j another sample of the same task.

    images: raw inputs of one task ``[n, ...]`` or of a batch of tasks ``[B, n, ...]``
    labels: ``[n]`` or ``[B, n]``; returned as they are, since the heavier image keeps its label
    """
    if not isinstance(images, Tensor) or not isinstance(labels, Tensor):
        raise TypeError("images and labels must be torch.Tensors")
    if not images.is_floating_point():
        raise TypeError(f"images must be floating point to be blended, not {images.dtype}; use images.float() / 255")
    if not 0.5 <= low < high <= 1.0:
        raise ValueError(f"need 0.5 <= low < high <= 1, not low={low}, high={high}: below 0.5 the label would be x_j's")
    if labels.ndim not in (1, 2) or images.shape[: labels.ndim] != labels.shape:
        raise ValueError(
            f"labels {list(labels.shape)} must be [n] or [B, n], the first axes of images {list(images.shape)}"
        )
    if labels.shape[-1] < 2:
        raise ValueError("mixing needs at least two samples in a task")
    partner, weight = draw_mixing(labels.shape, low, high, generator)
    return mix(images, partner.to(images.device), weight.to(images)), labels


def draw_mixing(
    shape: torch.Size | tuple[int, ...], low: float, high: float, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """For every sample of tasks ``[..., n]``: the index of another sample of its task, and the weight ω it keeps."""
    size = shape[-1]
    device = generator.device if generator is not None else None
    shift = torch.randint(1, size, tuple(shape), generator=generator, device=device)
    partner = (torch.arange(size, device=device) + shift) % size
    weight = low + (high - low) * torch.rand(tuple(shape), generator=generator, device=device)
    return partner, weight


def mix(images: Tensor, partner: Tensor, weight: Tensor) -> Tensor:
    """ω·x_i + (1-ω)·x_partner(i). images: ``[..., n, *]``, partner and weight: ``[..., n]``."""
    tasks = partner.ndim - 1
    trailing = (1,) * (images.ndim - partner.ndim)
    index = partner.reshape(*partner.shape, *trailing).expand_as(images)
    return torch.lerp(images.gather(tasks, index), images, weight.reshape(*weight.shape, *trailing))


@dataclass(frozen=True)
class MixingSchedule:
    """Mixing starts after ``start`` episodes, then runs for ``on`` episodes and rests for ``off``, again and again."""

    start: int = 5000
    on: int = 4
    off: int = 1

    def __post_init__(self) -> None:
        if self.start < 0 or self.on < 1 or self.off < 0:
            raise ValueError(f"need start >= 0, on >= 1, off >= 0, not {self}")

    def active(self, episode: int) -> bool:
        """Whether the episode with this number (from 0) is mixed."""
        return episode >= self.start and (episode - self.start) % (self.on + self.off) < self.on

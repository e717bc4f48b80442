"""What an episode is: labelled support features, query features, perhaps more without labels, and their classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, eq=False)
class Episode:
    """A batch of episodes whose shapes and labels are known to be right.

    support: ``[B, S, d]``, labels: int64 ``[B, S]`` in 0..N-1, query: ``[B, Q, d]``, ways: N.
    unlabelled: ``[B, U, d]``, samples of the same classes that are neither labelled nor asked about, or None
    Build one from outside input with :func:`check_episode`; code that makes its own episodes
    (training, evaluation) may construct it directly, which never synchronises with a device.
    """

    support: Tensor
    labels: Tensor
    query: Tensor
    ways: int
    unlabelled: Tensor | None = None

    def without_label(self) -> Tensor:
        """All samples whose class is not known: the queries, then the unlabelled set, ``[B, Q + U, d]``."""
        return self.query if self.unlabelled is None else torch.cat([self.query, self.unlabelled], -2)

    @property
    def count_without_label(self) -> int:
        """Q + U, without putting the samples together."""
        return self.query.shape[-2] + (0 if self.unlabelled is None else self.unlabelled.shape[-2])

    def membership(self, dtype: torch.dtype | None = None) -> Tensor:
        """One where a support sample belongs to a class, zero elsewhere, ``[B, S, N]``."""
        return F.one_hot(self.labels, self.ways).to(dtype or self.support.dtype)

    def prototypes(self, dtype: torch.dtype | None = None) -> Tensor:
        """Eq. 11: the mean support feature of each class, ``[B, N, d]``, in float32 at the least."""
        dtype = dtype or result_dtype(self.support)
        return class_means(self.support.to(dtype), self.membership(dtype))


def result_dtype(features: Tensor) -> torch.dtype:
    """What answers are given in: the precision of the features, but float32 at the least."""
    return torch.float64 if features.dtype == torch.float64 else torch.float32


def class_means(features: Tensor, membership: Tensor) -> Tensor:
    """Means of ``features [B, S, d]`` under (possibly soft) ``membership [B, S, N]``, as ``[B, N, d]``."""
    return (membership / membership.sum(-2, keepdim=True)).mT @ features


def check_features(name: str, features: Tensor, *, dims: tuple[int, ...] = (2, 3)) -> None:
    """Raise unless ``features`` is a non-empty, finite floating point tensor with one of the given ranks."""
    if not isinstance(features, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, not {type(features).__name__}; use torch.as_tensor({name})")
    if features.ndim not in dims:
        shapes = " or ".join("[n, d]" if rank == 2 else "[B, n, d]" for rank in dims)
        raise ValueError(f"{name} must have shape {shapes}, not {list(features.shape)}")
    if not features.is_floating_point():
        raise TypeError(f"{name} must hold floating point features, not {features.dtype}; use {name}.float()")
    if features.numel() == 0:
        raise ValueError(f"{name} is empty: its shape is {list(features.shape)}")
    if not bool(torch.isfinite(features).all()):
        raise ValueError(f"{name} holds NaN or infinite values; look for images that failed to embed")


def check_episode(support: Tensor, labels: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Episode:
    """The door for outside input: one episode (``[S, d]``, ``[S]``, ``[Q, d]``) or a batch of them (``[B, ...]``).

    unlabelled: ``[U, d]`` or ``[B, U, d]``, if there are such samples
    Raises TypeError or ValueError saying which argument is wrong and how. One episode becomes a batch of one.
    """
    check_features("support", support)
    _check_beside_support("query", query, support)
    if unlabelled is not None:
        _check_beside_support("unlabelled", unlabelled, support)
    if not isinstance(labels, Tensor):
        raise TypeError(f"labels must be a torch.Tensor of integers, not {type(labels).__name__}")
    if labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool:
        raise TypeError(f"labels must be integers 0..N-1, not {labels.dtype}; use labels.long()")
    if labels.shape != support.shape[:-1]:
        raise ValueError(
            f"labels must have shape {list(support.shape[:-1])}, one per support sample, not {list(labels.shape)}"
        )
    if labels.device != support.device:
        raise ValueError(f"labels are on {labels.device}, the features on {support.device}; move one of them")
    labels = labels.long()
    if support.ndim == 2:
        support, labels, query = support[None], labels[None], query[None]
        unlabelled = None if unlabelled is None else unlabelled[None]
    ways = _check_labels(labels)
    return Episode(support, labels, query, ways, unlabelled)


def _check_beside_support(name: str, features: Tensor, support: Tensor) -> None:
    """Raise unless these are features of the same episodes, width, precision and device as the support's."""
    check_features(name, features)
    if features.ndim != support.ndim:
        raise ValueError(
            f"support {list(support.shape)} and {name} {list(features.shape)} must both be one episode, or both a batch"
        )
    if features.shape[-1] != support.shape[-1]:
        raise ValueError(
            f"support has {support.shape[-1]} features per sample, {name} {features.shape[-1]}; they must agree"
        )
    if features.shape[:-2] != support.shape[:-2]:
        raise ValueError(f"support holds {support.shape[0]} episodes and {name} {features.shape[0]}; they must agree")
    if features.dtype != support.dtype or features.device != support.device:
        raise ValueError(
            f"support is {support.dtype} on {support.device}, {name} {features.dtype} on {features.device}; "
            "make them the same"
        )


def _check_labels(labels: Tensor) -> int:
    """The number of classes N of ``labels [B, S]``; raise unless every episode uses each of 0..N-1."""
    if int(labels.min()) < 0:
        raise ValueError(f"labels must be 0..N-1, but one is {int(labels.min())}")
    ways = int(labels.max()) + 1
    if ways > labels.shape[-1]:
        raise ValueError(
            f"labels go up to {ways - 1}, so there would be {ways} classes, but an episode has only {labels.shape[-1]} "
            "support samples; number the classes 0..N-1 without gaps"
        )
    counts = F.one_hot(labels, ways).sum(-2)
    if bool((counts == 0).any()):
        episode, label = (int(index) for index in (counts == 0).nonzero()[0])
        where = f" in episode {episode}" if len(labels) > 1 else ""
        raise ValueError(
            f"class {label} has no support sample{where}, though labels go up to {ways - 1}; "
            "number the classes 0..N-1 without gaps, the same N for every episode of a batch"
        )
    return ways

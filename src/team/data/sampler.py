"""Drawing episodes: which images are support and which are query, for many episodes at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class EpisodeIndices:
    """E episodes as indices into a data set, classes in the order of their labels 0..N-1.

    support: ``[E, N·K]``, query: ``[E, N·q]``, support and query of an episode never share an index
    support_labels: ``[E, N·K]``, query_labels: ``[E, N·q]``, in 0..N-1; classes: ``[E, N]``, labels in the data set
    """

    support: Tensor
    query: Tensor
    support_labels: Tensor
    query_labels: Tensor
    classes: Tensor


class EpisodeSampler:
    """Draws N-way K-shot episodes with q queries per class from the data set labels ``[n]``.

    Classes may have different sizes. Within a class, images are drawn without replacement by Floyd's algorithm, in
    K + q vectorised steps, whatever the size of the class.
    """

    def __init__(self, labels: Tensor, *, ways: int, shots: int, queries: int) -> None:
        for name, value in (("ways", ways), ("shots", shots), ("queries", queries)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number, 1 or more, not {value!r}")
        if not isinstance(labels, Tensor) or labels.ndim != 1 or labels.is_floating_point() or len(labels) == 0:
            raise ValueError("labels must be a tensor of integers [n], one per image")
        self.ways, self.shots, self.queries = ways, shots, queries
        labels = labels.cpu().long()
        self._counts = torch.bincount(labels)
        if len(self._counts) < ways:
            raise ValueError(f"{ways}-way episodes need at least {ways} classes; there are {len(self._counts)}")
        if int(self._counts.min()) < shots + queries:
            poorest = int(self._counts.argmin())
            raise ValueError(
                f"class {poorest} has {int(self._counts[poorest])} images, but {shots} shots and {queries} queries per "
                f"class need {shots + queries}; ask for fewer or leave the class out"
            )
        self._order = labels.argsort(stable=True)
        self._first = self._counts.cumsum(0) - self._counts

    @property
    def class_count(self) -> int:
        return len(self._counts)

    def sample(self, episodes: int, generator: torch.Generator) -> EpisodeIndices:
        """Draw this many episodes; the generator alone decides which."""
        if episodes < 1:
            raise ValueError(f"episodes must be 1 or more, not {episodes}")
        ways, shots, queries = self.ways, self.shots, self.queries
        keys = torch.rand(episodes, len(self._counts), generator=generator)
        classes = keys.topk(ways, dim=-1).indices
        within = _draw_without_replacement(self._counts[classes], shots + queries, generator)
        indices = self._order[self._first[classes][..., None] + within]
        labels = torch.arange(ways).expand(episodes, ways)
        return EpisodeIndices(
            support=indices[..., :shots].reshape(episodes, -1),
            query=indices[..., shots:].reshape(episodes, -1),
            support_labels=labels.repeat_interleave(shots, -1),
            query_labels=labels.repeat_interleave(queries, -1),
            classes=classes,
        )


def _draw_without_replacement(sizes: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """For each entry of ``sizes [...]``: ``count`` different numbers below it, in random order, ``[..., count]``."""
    chosen = torch.empty(*sizes.shape, count, dtype=torch.int64)
    for position in range(count):
        last = sizes - count + position
        candidate = (torch.rand(sizes.shape, generator=generator, dtype=torch.float64) * (last + 1)).long()
        taken = (chosen[..., :position] == candidate[..., None]).any(-1)
        chosen[..., position] = torch.where(taken, last, candidate)
    # The set is uniform, but later positions favour large numbers: shuffle, so that support and query are alike.
    shuffle = torch.rand(chosen.shape, generator=generator).argsort(-1)
    return chosen.gather(-1, shuffle)

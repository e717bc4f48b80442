"""Drawing episodes: which images are support and which are query, for many episodes at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from team.data.sampling import BALANCED, Sampling


@dataclass(frozen=True, eq=False)
class EpisodeIndices:
    """E episodes as indices into a data set, samples in the order of their labels 0..N-1.

    support: ``[E, N·K]``, query: ``[E, N·q]``, support and query of an episode never share an index
    support_labels: ``[E, N·K]``, query_labels: ``[E, N·q]``, in 0..N-1; classes: ``[E, N]``, labels in the data set
    """

    support: Tensor
    query: Tensor
    support_labels: Tensor
    query_labels: Tensor
    classes: Tensor


class EpisodeSampler:
    """Draws N-way K-shot episodes with N·q queries, q per class on average, from the data set labels ``[n]``.

    How many queries each class gets is a matter of ``sampling``. Classes may have different sizes. Within a class,
    support and queries are drawn together, without replacement, by Floyd's algorithm: as many vectorised steps as
    images, whatever the size of the class.
    """

    def __init__(self, labels: Tensor, *, ways: int, shots: int, queries: int, sampling: Sampling = BALANCED) -> None:
        for name, value in (("ways", ways), ("shots", shots), ("queries", queries)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number, 1 or more, not {value!r}")
        if not isinstance(labels, Tensor) or labels.ndim != 1 or labels.is_floating_point() or len(labels) == 0:
            raise ValueError("labels must be a tensor of integers [n], one per image")
        self.ways, self.shots, self.queries, self.sampling = ways, shots, queries, sampling
        labels = labels.cpu().long()
        self._counts = torch.bincount(labels)
        if len(self._counts) < ways:
            raise ValueError(f"{ways}-way episodes need at least {ways} classes; there are {len(self._counts)}")
        sampling.check(self._counts, ways=ways, shots=shots, queries=queries)
        self._order = labels.argsort(stable=True)
        self._first = self._counts.cumsum(0) - self._counts

    @property
    def class_count(self) -> int:
        return len(self._counts)

    def sample(self, episodes: int, generator: torch.Generator) -> EpisodeIndices:
        """Draw this many episodes; the generator alone decides which."""
        if episodes < 1:
            raise ValueError(f"episodes must be 1 or more, not {episodes}")
        ways, shots, total = self.ways, self.shots, self.ways * self.queries
        keys = torch.rand(episodes, len(self._counts), generator=generator)
        classes = keys.topk(ways, dim=-1).indices
        sizes = self._counts[classes]
        counts = self.sampling.query_counts(sizes - shots, total, generator)
        within = _draw_without_replacement(sizes, shots + counts, generator)
        indices = self._order[self._first[classes][..., None] + within]
        is_query = torch.arange(within.shape[-1] - shots) < counts[..., None]
        labels = torch.arange(ways).expand(episodes, ways)
        return EpisodeIndices(
            support=indices[..., :shots].reshape(episodes, -1),
            query=indices[..., shots:][is_query].reshape(episodes, total),
            support_labels=labels.repeat_interleave(shots, -1),
            query_labels=labels[..., None].expand_as(is_query)[is_query].reshape(episodes, total),
            classes=classes,
        )


def _draw_without_replacement(sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """For each entry of ``sizes [...]``: ``counts [...]`` different numbers below it, in random order.

    As ``[..., max(counts)]``; where an entry has fewer, zeros follow.
    """
    most = int(counts.max())
    chosen = torch.empty(*sizes.shape, most, dtype=torch.int64)
    for position in range(most):
        last = sizes - counts + position  # too high where an entry has all it needs: such a choice is dropped below
        candidate = (torch.rand(sizes.shape, generator=generator, dtype=torch.float64) * (last + 1)).long()
        taken = (chosen[..., :position] == candidate[..., None]).any(-1)
        chosen[..., position] = torch.where(taken, last, candidate)
    # The set is uniform, but later positions favour large numbers: shuffle, so that support and query are alike.
    beyond = torch.arange(most) >= counts[..., None]
    shuffle = torch.rand(chosen.shape, generator=generator).masked_fill_(beyond, torch.inf).argsort(-1)
    return chosen.masked_fill_(beyond, 0).gather(-1, shuffle)

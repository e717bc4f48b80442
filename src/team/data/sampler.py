"""Drawing episodes: which images are support and which are query, for many episodes at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from team.data.sampling import BALANCED, Sampling


@dataclass(frozen=True, eq=False)
class EpisodeIndices:
    """E episodes as indices into a data set, samples in the order of their labels 0..N-1.

    support: ``[E, N·K]``, query: ``[E, N·q]``; an index stands at most once in an episode
    support_labels: ``[E, N·K]``, query_labels: ``[E, N·q]``, in 0..N-1; classes: ``[E, N]``, labels in the data set
    unlabelled: ``[E, N·M]``, more images of the same classes; M may be zero
    """

    support: Tensor
    query: Tensor
    support_labels: Tensor
    query_labels: Tensor
    classes: Tensor
    unlabelled: Tensor

    @property
    def points(self) -> Tensor:
        """All images of an episode: support, query, unlabelled, ``[E, N·(K + q + M)]``."""
        return torch.cat([self.support, self.query, self.unlabelled], 1)


class EpisodeSampler:
    """Draws N-way K-shot episodes with N·q queries, q per class on average, from the data set labels ``[n]``.

    How many queries each class gets is a matter of ``sampling``. Classes may have different sizes. Within a class,
    support and queries are drawn together, without replacement, by Floyd's algorithm: as many vectorised steps as
    images, whatever the size of the class.
    unlabelled: M more images of each class, for methods that learn from them too; support and query are the same ones
        whatever their number
    labelled: bool ``[n]``, the images that support and query may be; the unlabelled ones are then some of the others.
        None: any of a class may be either
    """

    def __init__(
        self,
        labels: Tensor,
        *,
        ways: int,
        shots: int,
        queries: int,
        sampling: Sampling = BALANCED,
        unlabelled: int = 0,
        labelled: Tensor | None = None,
    ) -> None:
        numbers = {"ways": (ways, 1), "shots": (shots, 1), "queries": (queries, 1), "unlabelled": (unlabelled, 0)}
        for name, (value, least) in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} must be a whole number, {least} or more, not {value!r}")
        if not isinstance(labels, Tensor) or labels.ndim != 1 or labels.is_floating_point() or len(labels) == 0:
            raise ValueError("labels must be a tensor of integers [n], one per image")
        if unlabelled and sampling != BALANCED:
            raise ValueError(f"an unlabelled set goes with balanced queries only, not with {sampling}")
        self.ways, self.shots, self.queries, self.sampling = ways, shots, queries, sampling
        self.unlabelled = unlabelled
        labels = labels.cpu().long()
        all_counts = torch.bincount(labels)
        known = torch.ones(len(labels), dtype=torch.bool) if labelled is None else labelled.cpu()
        self._counts = torch.bincount(labels[known], minlength=len(all_counts))
        if len(self._counts) < ways:
            raise ValueError(f"{ways}-way episodes need at least {ways} classes; there are {len(self._counts)}")
        sampling.check(
            self._counts,
            ways=ways,
            shots=shots,
            queries=queries,
            images="images" if labelled is None else "labelled images",
        )
        # Where images are partitioned, the labelled ones of a class stand before the others.
        self._order = (2 * labels + (~known)).argsort(stable=True)
        self._first = all_counts.cumsum(0) - all_counts
        self._partitioned = labelled is not None
        self._others = all_counts - (self._counts if self._partitioned else shots + queries)
        if unlabelled and int(self._others.min()) < unlabelled:
            poorest = int(self._others.argmin())
            raise ValueError(
                f"class {poorest} has only {int(self._others[poorest])} images beside support and query, but "
                f"{unlabelled} unlabelled ones are wanted; ask for fewer"
            )

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
            unlabelled=self._draw_unlabelled(classes, within, generator),
        )

    def _draw_unlabelled(self, classes: Tensor, taken: Tensor, generator: torch.Generator) -> Tensor:
        """Indices ``[E, N·M]`` for classes ``[E, N]`` whose ``taken [E, N, K + q]`` images are support and query."""
        if not self.unlabelled:
            return torch.empty(len(classes), 0, dtype=torch.int64)
        left = self._others[classes]
        within = _draw_without_replacement(left, torch.full_like(left, self.unlabelled), generator)
        if self._partitioned:
            within += self._counts[classes][..., None]
        else:  # numbers count the images that are not taken: step over those that are, from the smallest on
            for position in taken.sort(-1).values.unbind(-1):
                within += within >= position[..., None]
        return self._order[self._first[classes][..., None] + within].reshape(len(classes), -1)


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

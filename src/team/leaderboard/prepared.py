"""A method behind a preparation of its features."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from team.episode import Episode, result_dtype
from team.methods.base import Method


class Prepared(Method):
    """The method on features less a mean ``[d]``, if there is one, scaled to length one (SimpleShot's CL2N, L2N)."""

    mean: Tensor | None

    def __init__(self, method: Method, mean: Tensor | None) -> None:
        super().__init__()
        self.method = method
        self.register_buffer("mean", mean, persistent=False)

    @property
    def transductive(self) -> bool:  # type: ignore[override]
        return self.method.transductive

    def check(self, episode: Episode) -> None:
        self.method.check(self._prepare(episode))

    def log_probabilities(self, episode: Episode) -> Tensor:
        return self.method.log_probabilities(self._prepare(episode))

    def _prepare(self, episode: Episode) -> Episode:
        support, query = (self._unit(features) for features in (episode.support, episode.query))
        return Episode(support, episode.labels, query, episode.ways)

    def _unit(self, features: Tensor) -> Tensor:
        features = features.to(result_dtype(features))
        return F.normalize(features if self.mean is None else features - self.mean.to(features), dim=-1)

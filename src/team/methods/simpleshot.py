"""SimpleShot: Wang et al., "SimpleShot: revisiting nearest-neighbor classification for few-shot learning", 2019."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from team.episode import Episode, class_means, result_dtype
from team.methods.base import Method
from team.methods.protonet import squared_euclidean


class SimpleShot(Method):
    """The nearest class mean of features that are centred, then scaled to length one (the paper's CL2N).

    The paper names the nearest mean only. Probabilities here are a softmax over negative squared distances, which
    has that mean as its likeliest class.

    base_mean: the mean feature of the training classes ``[d]``, subtracted from every feature;
        None for the paper's L2N, without centring
    """

    transductive = False
    base_mean: Tensor | None

    def __init__(
        self, *, base_mean: Tensor | None = None, temperature: float = 1.0, learn_temperature: bool = False
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        if base_mean is not None and (base_mean.ndim != 1 or not base_mean.is_floating_point()):
            raise ValueError(f"base_mean must hold one mean feature [d], not {base_mean.dtype} {list(base_mean.shape)}")
        if base_mean is not None and not bool(torch.isfinite(base_mean).all()):
            raise ValueError("base_mean holds NaN or infinite values")
        self.register_buffer("base_mean", base_mean, persistent=False)  # an option, not something learned

    def check(self, episode: Episode) -> None:
        if self.base_mean is not None and len(self.base_mean) != episode.query.shape[-1]:
            raise ValueError(f"base_mean has {len(self.base_mean)} features, the episode {episode.query.shape[-1]}")

    def log_probabilities(self, episode: Episode) -> Tensor:
        support, query = self._transform(episode.support), self._transform(episode.query)
        centres = class_means(support, episode.membership(support.dtype))
        return (-squared_euclidean(query, centres) / self.temperature).log_softmax(-1)

    def _transform(self, features: Tensor) -> Tensor:
        """CL2N, or L2N without a mean, in float32 at the least; a feature equal to the mean becomes zero."""
        features = features.to(result_dtype(features))
        if self.base_mean is not None:
            features = features - self.base_mean.to(features)
        return F.normalize(features, dim=-1)

"""LaplacianShot: Ziko et al., "Laplacian regularized few-shot learning", ICML 2020."""

from __future__ import annotations

import torch
from torch import Tensor

from team.checks import check_not_negative
from team.episode import Episode, class_means
from team.methods.bd_cspn import cosine, cross_class_bias
from team.methods.graph import nearest_neighbours
from team.methods.protonet import squared_euclidean
from team.methods.simpleshot import SimpleShot

_SHARPNESS = 10.0  # of the weights in a rectified prototype, the authors' constant


class LaplacianShot(SimpleShot):
    """SimpleShot (the unary term) whose answers agree between neighbouring queries (the Laplacian term).

    Eq. 1 is minimised by the bound updates of Algorithm 1, y_q ∝ exp(a_q + λ b_q), all queries at once, where
    a_q = -|x_q - m_c|² and b_q = Σ_p w(x_q, x_p) y_p; w is one for the k nearest queries of x_q and zero elsewhere.
    k: neighbours of each query, lowered to the number of other queries; the paper's 3 counts the query itself
    lam: λ, the weight of the Laplacian term; chosen by the authors on validation classes between 0.1 and 1.5, and
        mostly 0.7 for 1-shot and 0.3 for 5-shot tasks
    rounds: bound updates
    rectify: whether m_c are the paper's rectified prototypes in place of the class means
    base_mean: see :class:`SimpleShot`
    """

    transductive = True

    def __init__(
        self,
        *,
        k: int = 2,
        lam: float = 0.7,
        rounds: int = 20,
        rectify: bool = True,
        base_mean: Tensor | None = None,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(base_mean=base_mean, temperature=temperature, learn_temperature=learn_temperature)
        if k < 0:
            raise ValueError(f"k must be a whole number of neighbours, 0 or more, not {k}")
        check_not_negative(lam=lam)
        if rounds < 0:
            raise ValueError(f"rounds must be a number of bound updates, 0 or more, not {rounds}")
        self.k, self.lam, self.rounds, self.rectify = k, lam, rounds, rectify

    def log_probabilities(self, episode: Episode) -> Tensor:
        support, query = self._transform(episode.support), self._transform(episode.query)
        prototypes = class_means(support, episode.membership(support.dtype))
        if self.rectify:
            query = query + cross_class_bias(support, query)
            prototypes = rectified(torch.cat([support, query], -2), prototypes)
        unary = -squared_euclidean(query, prototypes) / self.temperature
        _, near, _ = nearest_neighbours(query.detach(), self.k)
        affinity = near.to(unary)
        answer = unary.log_softmax(-1)
        for _ in range(self.rounds):
            answer = (unary + self.lam * affinity @ answer.exp()).log_softmax(-1)
        return answer


def rectified(samples: Tensor, prototypes: Tensor) -> Tensor:
    """The mean of p(c | x) x over the samples nearest to prototype c, where p is a softmax of 10 cos(x, m_c).

    samples: ``[B, n, d]``, support and query alike, prototypes: ``[B, N, d]``. Weights below one shorten a prototype,
    which the distances to it feel. A prototype that is nobody's nearest stays.
    """
    similarity = cosine(samples, prototypes)
    nearest = similarity >= similarity.amax(-1, keepdim=True)
    count = nearest.sum(-2)[..., None]
    means = ((_SHARPNESS * similarity).softmax(-1) * nearest).mT @ samples / count.clamp_min(1)
    return torch.where(count > 0, means, prototypes)

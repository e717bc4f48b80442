"""PT-MAP: Hu, Gripon and Pateux, ICANN 2021.

"Leveraging the feature distribution in transfer-based few-shot learning".
"""

from __future__ import annotations

import torch
from torch import Tensor

from team.checks import check_positive
from team.episode import Episode, class_means, result_dtype
from team.methods.base import Method
from team.methods.bd_cspn import unit
from team.methods.protonet import squared_euclidean

_ROUNDS_BY_FACTORS = 10
_LEAST_MASS = 1e-20  # a column further away than this comes nearer by this factor, then by logarithms


class PTMAP(Method):
    """Power transform (PT), then maximum a posteriori (MAP) estimates of prototypes by optimal transport.

    Answers are balanced: every class is given the same mass of queries, Q / N, which is an assumption on the episode.
    beta: β, the power; features below zero count as zero, since the transform is made for outputs of a ReLU
    lam: λ, the Sinkhorn algorithm's regularisation: scores are -λ|f - w|²
    alpha: α, the part of the way that prototypes move in one round
    rounds: updates of the prototypes
    sinkhorn_rounds: scalings per update, a fixed number where the paper's code waits for convergence; each update
        starts from the scaling of the one before
    centre_together: subtract one mean of the whole episode, where the paper's code takes support and query each by
        their own (a single query then becomes zero and is told nothing)
    """

    transductive = True

    def __init__(
        self,
        *,
        beta: float = 0.5,
        lam: float = 10.0,
        alpha: float = 0.2,
        rounds: int = 20,
        sinkhorn_rounds: int = 100,
        centre_together: bool = False,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        check_positive(beta=beta, lam=lam)
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
        if rounds < 0 or sinkhorn_rounds < 0:
            raise ValueError(f"rounds and sinkhorn_rounds must be 0 or more, not {rounds} and {sinkhorn_rounds}")
        self.beta, self.lam, self.alpha = beta, lam, alpha
        self.rounds, self.sinkhorn_rounds, self.centre_together = rounds, sinkhorn_rounds, centre_together

    def log_probabilities(self, episode: Episode) -> Tensor:
        support, query = self.transformed(episode)
        labelled = episode.membership(support.dtype)
        samples = torch.cat([support, query], -2)
        prototypes = class_means(support, labelled)
        potential = torch.zeros_like(prototypes[..., None, :, 0])
        for _ in range(self.rounds):
            log_plan, potential = self._transport(query, prototypes, potential)
            estimate = class_means(samples, torch.cat([labelled, log_plan.exp()], -2))  # the paper's μ_j
            prototypes = prototypes + self.alpha * (estimate - prototypes)
        log_plan, _ = self._transport(query, prototypes, potential)
        return log_plan

    def transformed(self, episode: Episode) -> tuple[Tensor, Tensor]:
        """Support ``[B, S, d]`` and query ``[B, Q, d]`` after the power transform, centred, of unit length."""
        dtype = result_dtype(episode.support)
        support, query = (
            unit((features.to(dtype).clamp_min(0) + 1e-6).pow(self.beta))
            for features in (episode.support, episode.query)
        )
        means = support.mean(-2, keepdim=True), query.mean(-2, keepdim=True)
        if self.centre_together:
            both = torch.cat([support, query], -2).mean(-2, keepdim=True)
            means = both, both
        return unit(support - means[0]), unit(query - means[1])

    def _transport(self, query: Tensor, prototypes: Tensor, potential: Tensor) -> tuple[Tensor, Tensor]:
        scores = -self.lam * squared_euclidean(query, prototypes) / self.temperature
        return sinkhorn(scores, potential, self.sinkhorn_rounds)


def sinkhorn(scores: Tensor, potential: Tensor, rounds: int) -> tuple[Tensor, Tensor]:
    """The logarithm of the plan M with M_ij ∝ exp(scores_ij), rows of mass 1, columns of mass Q / N; and its potential.

    scores: ``[B, Q, N]``, potential: what to add to each column's scores, ``[B, 1, N]``, from which to start. Rows are
    scaled last, so they are distributions to the last digit, and columns as nearly as the rounds allow.

    Only every few rounds are done by logarithms: in between, products of factors near one are several times as fast.
    """
    mass = scores.shape[-2] / scores.shape[-1]
    for start in range(0, rounds, _ROUNDS_BY_FACTORS):
        plan = (scores + potential).softmax(-1)
        turned = plan.mT.contiguous()
        columns = torch.ones_like(potential).mT
        for _ in range(min(_ROUNDS_BY_FACTORS, rounds - start)):
            columns = mass / (turned @ (plan @ columns).reciprocal()).clamp_min(_LEAST_MASS)
        potential = potential + columns.mT.log()
    return (scores + potential).log_softmax(-1), potential

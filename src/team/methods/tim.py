"""TIM: Boudiaf et al., "Transductive information maximization for few-shot learning", NeurIPS 2020."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from team.checks import check_not_negative, check_positive
from team.episode import Episode, class_means
from team.methods.adaptation import (
    adam,
    check_iterations,
    cross_entropy_gradient,
    entropy_gradient,
    unit_features,
)
from team.methods.base import Method

Form = Literal["gradient", "alternating"]


class TIM(Method):
    """Class weights that fit the support and make the query predictions informative: confident, yet of all classes.

    The paper's classifier of features of length one is p_ik ∝ exp(-τ/2 |w_k - x_i|²), w_k starting at the class means,
    and its objective is λ CE(support) - H(Y) + α H(Y|X), the entropies being those of the queries.

    form: "gradient" runs Adam on the loss; "alternating" is the paper's ADM, closed-form updates in turn
    support_weight, marginal_weight, conditional_weight: λ, the weight of H(Y), α
    iterations: None for the paper's, 1000 of "gradient" and 150 of "alternating"
    learning_rate: of "gradient"
    temperature: 1/τ, since scores are divided by it; the paper's τ is 15
    """

    transductive = True

    def __init__(
        self,
        *,
        form: Form = "gradient",
        support_weight: float = 0.1,
        marginal_weight: float = 1.0,
        conditional_weight: float = 0.1,
        iterations: int | None = None,
        learning_rate: float = 1e-4,
        temperature: float = 1 / 15,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        if form not in ("gradient", "alternating"):
            raise ValueError(f"form must be 'gradient' or 'alternating', not {form!r}")
        self.form, self.support_weight = form, support_weight
        self.marginal_weight, self.conditional_weight = marginal_weight, conditional_weight
        self.iterations = {"gradient": 1000, "alternating": 150}[form] if iterations is None else iterations
        self.learning_rate = learning_rate
        check_not_negative(marginal_weight=marginal_weight, conditional_weight=conditional_weight)
        check_positive(support_weight=support_weight, learning_rate=learning_rate)
        check_iterations(self.iterations)

    def log_probabilities(self, episode: Episode) -> Tensor:
        support, query = unit_features(episode)
        membership = episode.membership(support.dtype)
        start = class_means(support, membership)
        fit = self._descend if self.form == "gradient" else self._alternate
        weights = start + fit(support.detach(), membership, query.detach(), start.detach())
        return log_posterior(query, weights, self.temperature)

    def _descend(self, support: Tensor, membership: Tensor, query: Tensor, start: Tensor) -> Tensor:
        """The change of the weights by Adam, ``[B, N, d]``."""
        return maximise_information(
            support,
            membership,
            query,
            start,
            temperature=self.temperature.detach(),
            weights=(self.support_weight, self.marginal_weight, self.conditional_weight),
            learning_rate=self.learning_rate,
            iterations=self.iterations,
        )

    @torch.no_grad()
    def _alternate(self, support: Tensor, membership: Tensor, query: Tensor, start: Tensor) -> Tensor:
        """The change of the weights by ADM, ``[B, N, d]``.

        Each round solves for the queries' assignments, q_ik ∝ p_ik^(1+α) / (Σ_j p_jk^(1+α))^β with β = 1/2 (more
        generally the weight of H(Y) over itself plus one), and then for the weights,

            w_k = Σ_i c_i (t_ik x_i + p_ik (w_k - x_i)) / Σ_i c_i t_ik,

        over both the support (t the labels, c = λ / (1+α)) and the queries (t = q, c = |S| / |Q|).
        """
        points, shots = torch.cat([support, query], -2), support.shape[-2]
        importance = points.new_full((points.shape[-2], 1), shots / query.shape[-2])
        importance[:shots] = self.support_weight / (1 + self.conditional_weight)
        share = self.marginal_weight / (self.marginal_weight + 1)
        weights, temperature = start, self.temperature
        for _ in range(self.iterations):
            log_p = log_posterior(points, weights, temperature)
            sharp = (1 + self.conditional_weight) * log_p[:, shots:]
            assignments = (sharp - share * sharp.logsumexp(-2, keepdim=True)).softmax(-1)
            targets = torch.cat([membership, assignments], -2)
            step = attraction(importance * (targets - log_p.exp()), points, weights)
            weights = weights + step / (importance * targets).sum(-2)[..., None]
        return weights - start


def log_posterior(points: Tensor, weights: Tensor, temperature: Tensor) -> Tensor:
    """log p_ik: the log-softmax over classes of -|x_i - w_k|² / 2, divided by the temperature, ``[B, n, N]``."""
    scores = points @ weights.mT - weights.square().sum(-1)[..., None, :] / 2  # |x_i|² is the same for all classes
    return (scores / temperature).log_softmax(-1)


def attraction(strength: Tensor, points: Tensor, weights: Tensor) -> Tensor:
    """Σ_i s_ik (x_i - w_k) for ``strength [B, n, N]``, as ``[B, N, d]``."""
    return strength.mT @ points - strength.sum(-2)[..., None] * weights


def maximise_information(
    support: Tensor,
    membership: Tensor,
    query: Tensor,
    start: Tensor,
    *,
    temperature: Tensor,
    weights: tuple[float, float, float],
    learning_rate: float,
    iterations: int,
    alpha: float = 1.0,
) -> Tensor:
    """The change Adam makes to the class weights ``start [B, N, d]``, as ``[B, N, d]``.

    The loss is λ CE(support) - μ H_α(Y) + ν H_α(Y|X) with ``weights`` (λ, μ, ν); α = 1 is Shannon's entropy.
    """
    points, shots = torch.cat([support, query], -2), support.shape[-2]
    support_weight, marginal, conditional = weights

    def gradient(current: Tensor) -> Tensor:
        log_p = log_posterior(points, current, temperature)
        labelled = support_weight * cross_entropy_gradient(log_p[:, :shots], membership)
        unlabelled = entropy_gradient(log_p[:, shots:], marginal=marginal, conditional=conditional, alpha=alpha)
        return attraction(torch.cat([labelled, unlabelled], -2), points, current) / temperature

    return adam(gradient, start, learning_rate=learning_rate, iterations=iterations)

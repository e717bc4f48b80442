"""α-TIM: Veilleux et al., "Realistic evaluation of transductive few-shot learning", NeurIPS 2021."""

from __future__ import annotations

from torch import Tensor

from team.checks import check_not_negative, check_positive
from team.episode import Episode, class_means
from team.methods.adaptation import check_iterations, unit_features
from team.methods.base import Method
from team.methods.tim import log_posterior, maximise_information


class AlphaTIM(Method):
    """TIM with Tsallis' α-entropies, which press less towards equally many queries of each class.

    The loss is CE(support) - H_α(Y) + H_α(Y|X) with H_α(p) = (1 - Σ_k p_k^α) / (α - 1), the two entropies making up
    the α-mutual information of the queries. For α = 1 it is TIM's, by its gradient form.

    alpha: α, 1 or more; the paper tunes it on validation classes, to 2 for 1-shot and 7 for 5-shot tasks
    support_weight, marginal_weight, conditional_weight: of the three terms in this order, all 1 in the paper
    iterations, learning_rate: of Adam, 1000 and 1e-4 in the authors' code
    temperature: 1/τ, since scores are divided by it; the paper's τ is 15
    """

    transductive = True

    def __init__(
        self,
        *,
        alpha: float = 2.0,
        support_weight: float = 1.0,
        marginal_weight: float = 1.0,
        conditional_weight: float = 1.0,
        iterations: int = 1000,
        learning_rate: float = 1e-4,
        temperature: float = 1 / 15,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        if not 1 <= alpha < float("inf"):
            raise ValueError(f"alpha must be finite and 1 or more, not {alpha}")
        check_not_negative(
            support_weight=support_weight, marginal_weight=marginal_weight, conditional_weight=conditional_weight
        )
        check_positive(learning_rate=learning_rate)
        check_iterations(iterations)
        self.alpha = alpha
        self.weights = (support_weight, marginal_weight, conditional_weight)
        self.iterations, self.learning_rate = iterations, learning_rate

    def log_probabilities(self, episode: Episode) -> Tensor:
        support, query = unit_features(episode)
        membership = episode.membership(support.dtype)
        start = class_means(support, membership)
        change = maximise_information(
            support.detach(),
            membership,
            query.detach(),
            start.detach(),
            temperature=self.temperature.detach(),
            weights=self.weights,
            learning_rate=self.learning_rate,
            iterations=self.iterations,
            alpha=self.alpha,
        )
        return log_posterior(query, start + change, self.temperature)

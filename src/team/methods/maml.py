"""MAML: Finn, Abbeel and Levine, "Model-agnostic meta-learning for fast adaptation of deep networks", ICML 2017."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor
from torch.func import grad

from team.checks import check_not_negative, check_positive, check_whole
from team.methods.graph import nearest_neighbours
from team.methods.label_propagation import neighbour_variance
from team.methods.network import Classifier, NetworkMethod, StepLoss, Weights, cross_entropy


class MAML(NetworkMethod):
    """A few steps of gradient descent on the support, θ' = θ - α ∇L(θ), from a start θ for which they work well.

    Training minimises the cross-entropy of the queries under θ' (the paper's Eq. 1), through all steps.
    first_order: take ∇L(θ) for a constant there, the paper's cheaper approximation (Sec. 5.2)
    steps, test_steps, learning_rate: 5, 10 and α = 0.01, the paper's for miniImageNet
    Other options are those of :class:`NetworkMethod`, which also says what becomes of batch normalisation.
    """

    name: ClassVar[str] = "maml"

    def __init__(
        self,
        *,
        dim: int | None = None,
        ways: int = 5,
        steps: int = 5,
        test_steps: int = 10,
        learning_rate: float = 0.01,
        first_order: bool = False,
        seed: int = 0,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(
            dim=dim,
            ways=ways,
            steps=steps,
            test_steps=test_steps,
            learning_rate=learning_rate,
            seed=seed,
            temperature=temperature,
            learn_temperature=learn_temperature,
        )
        self.first_order = first_order

    def fit(self, loss: StepLoss, start: Weights, steps: int) -> Weights:
        weights = start
        for step in range(steps):
            slopes = grad(loss)(weights, step)
            if self.first_order:
                slopes = {name: slope.detach() for name, slope in slopes.items()}
            weights = {name: value - self.learning_rate * slopes[name] for name, value in weights.items()}
        return weights


class MAMLPlus(MAML):
    """MAML with transduction, the "MAML+" of the TEAM paper's Table 1: Liu et al. (TPN), ICLR 2019, Sec. 4.3.

    Σ_ij W_ij |ŷ_i - ŷ_j|² over support and queries, ŷ being predictions, is added to the loss: neighbours shall get
    equal answers. The paper writes it beside the queries' cross-entropy; here it is part of what weights are fitted to:
    nowhere else can queries have a say at test. W is label propagation's Gaussian graph of the features before
    fitting, and the sum is divided by ΣW, so that its weight means the same for every number of samples.

    transduction: the weight of that term; k, length_scale: of the graph, as in label propagation. The paper gives none
    """

    name: ClassVar[str] = "maml+"
    transductive = True

    def __init__(
        self,
        *,
        transduction: float = 1.0,
        k: int = 20,
        length_scale: float = 0.25,
        dim: int | None = None,
        ways: int = 5,
        steps: int = 5,
        test_steps: int = 10,
        learning_rate: float = 0.01,
        first_order: bool = False,
        seed: int = 0,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(
            dim=dim,
            ways=ways,
            steps=steps,
            test_steps=test_steps,
            learning_rate=learning_rate,
            first_order=first_order,
            seed=seed,
            temperature=temperature,
            learn_temperature=learn_temperature,
        )
        check_not_negative(transduction=transduction)
        check_whole(1, k=k)
        check_positive(length_scale=length_scale)
        self.transduction, self.k, self.length_scale = transduction, k, length_scale

    def task_loss(
        self, task: Classifier, start: Weights, support: Tensor, membership: Tensor, query: Tensor
    ) -> StepLoss:
        fixed = {name: value.detach() for name, value in start.items()}
        graph = self.graph(torch.cat([task.features(fixed, part) for part in (support, query)]).detach())

        def loss(weights: Weights, step: int) -> Tensor:
            labelled = task.log_probabilities(weights, support)
            predictions = torch.cat([labelled, task.log_probabilities(weights, query)]).exp()
            return cross_entropy(labelled, membership) + self.transduction * disagreement(predictions, graph)

        return loss

    def graph(self, features: Tensor) -> Tensor:
        """W over ΣW for the samples of one episode, ``[n, d]`` -> ``[n, n]``."""
        squares, near, rounding = nearest_neighbours(features[None], self.k)
        near = near | near.mT
        logarithms = -squares / (2 * neighbour_variance(squares, near, rounding, self.length_scale))
        weights: Tensor = logarithms.masked_fill(~near, -torch.inf).flatten().softmax(-1)
        return weights.reshape(squares.shape[1:])


def disagreement(predictions: Tensor, weights: Tensor) -> Tensor:
    """Σ_ij W_ij |ŷ_i - ŷ_j|² for predictions ``[n, N]`` and symmetric weights ``[n, n]``."""
    degrees = weights.sum(-1)
    return 2 * ((degrees[:, None] * predictions - weights @ predictions) * predictions).sum()

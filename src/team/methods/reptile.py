"""Reptile: Nichol, Achiam and Schulman, "On first-order meta-learning algorithms", 2018 (arXiv:1803.02999)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import grad
from torch.nn import functional as F

from team.backbones.statistics import episode_statistics
from team.checks import check_whole
from team.episode import Episode
from team.methods.network import NetworkMethod, StepLoss, Weights, cross_entropy


class Reptile(NetworkMethod):
    """Steps of Adam (β1 = 0, as the authors') on the support, from a start to which training on tasks comes close.

    Training fits the weights to mini-batches of a task's labelled samples, which in training are support and queries
    alike, and moves the start φ to where that ends, φ + ε (φ' - φ), φ' being the mean over a step's episodes and ε the
    learning rate of training, which falls to 0. Adam in place of this plain step lets the
    head drift, whose φ' differ from task to task in every direction. The loss reported is that of the queries after
    fitting, which has seen them.

    steps, test_steps, batch, learning_rate: 15, 10, 5 and 0.001, the authors' for transductive 1-shot miniImageNet,
        where tasks have 15 samples of each class. After training, each step takes the whole support
    Other options are those of :class:`NetworkMethod`, which also says what becomes of batch normalisation.
    """

    name: ClassVar[str] = "reptile"
    plain_descent = True

    def __init__(
        self,
        *,
        dim: int | None = None,
        ways: int = 5,
        steps: int = 15,
        test_steps: int = 10,
        batch: int = 5,
        learning_rate: float = 0.001,
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
        check_whole(1, batch=batch)
        self.batch = batch

    def fit(self, loss: StepLoss, start: Weights, steps: int) -> Weights:
        weights = {name: value.detach() for name, value in start.items()}
        squares = {name: torch.zeros_like(value) for name, value in weights.items()}
        for step in range(steps):
            slopes = {name: slope.detach() for name, slope in grad(loss)(weights, step).items()}
            squares = {name: 0.999 * value + 0.001 * slopes[name].square() for name, value in squares.items()}
            correction = 1 - 0.999 ** (step + 1)
            for name, slope in slopes.items():
                scale = (squares[name] / correction).sqrt() + 1e-8
                weights[name] = weights[name] - self.learning_rate * slope / scale
        return weights

    def adapted_loss(self, network: nn.Module, episode: Episode, answers: Tensor) -> tuple[Tensor, Tensor]:
        task, start = self.start(network, episode)
        samples = torch.cat([episode.support, episode.query], 1)
        labels = torch.cat([episode.labels, answers], 1)
        order = _taking_turns(labels, episode.ways)
        membership = F.one_hot(labels, episode.ways).to(samples)

        def solve(samples: Tensor, membership: Tensor, order: Tensor, query: Tensor) -> tuple[Weights, Tensor]:
            def loss(weights: Weights, step: int) -> Tensor:
                positions = torch.arange(step * self.batch, (step + 1) * self.batch, device=order.device)
                chosen = order[positions % len(order)]
                return cross_entropy(task.log_probabilities(weights, samples[chosen]), membership[chosen])

            weights = self.fit(loss, start, self.steps)
            return weights, task.log_probabilities(weights, query)

        with episode_statistics(network):
            tasks = zip(samples, membership, order, episode.query, strict=True)
            ends, answered = zip(*(solve(*task) for task in tasks), strict=True)
        scores = torch.stack(answered)
        means = {name: torch.stack([end[name] for end in ends]).mean(0) for name in start}
        distance = sum((value - means[name]).square().sum() / 2 for name, value in start.items())
        assert isinstance(distance, Tensor)
        reported = F.nll_loss(scores.flatten(0, 1), answers.flatten())
        return reported.detach() + distance - distance.detach(), scores  # its gradient is φ - the mean of all φ'


def _taking_turns(labels: Tensor, ways: int) -> Tensor:
    """An order of the samples ``[B, n]`` in which classes take turns: each mini-batch then has some of every class.

    Samples were drawn at random, so that there is no need to shuffle them again.
    """
    membership = F.one_hot(labels, ways)
    number = (membership.cumsum(1) * membership).sum(-1)  # the how manieth of its class a sample is
    return (number * ways + labels).argsort(-1)

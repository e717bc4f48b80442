"""What the methods share that fit the network itself to each episode, by gradient."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from team.backbones.statistics import episode_statistics
from team.checks import check_positive, check_whole
from team.episode import Episode, result_dtype
from team.methods.base import Method
from team.methods.layers import check_width

Weights = dict[str, Tensor]
StepLoss = Callable[[Weights, int], Tensor]
"""The loss of some weights in a step of fitting (from 0)."""


class NetworkMethod(Method):
    """A network and a linear head over the classes, both fitted to each episode from a learned start.

    :meth:`adapted` takes the network and episodes of images; training and ``evaluate_images`` call it. Given features,
    as every method can be called, there is no network to fit, and the head alone is. Episodes are fitted one after
    another, in float32. (Side by side, each convolution has weights for every episode: that is several times slower on
    a CPU, and hardly faster on a GPU where the step is a CUDA graph.)

    Batch normalisation goes by the images of each pass, support or queries, as the authors of these methods have it:
    a network that has such layers lets queries see one another, which the paper's tables mark "BN".

    The head starts at learned weights for ``ways`` classes: an episode may have fewer (their labels are the first), not
    more. Without ``dim`` nothing is learned, the head starts at zero, and any number of classes will do.
    dim: width of the features (a model gives its network's); seed: draws the head's first weights
    steps, test_steps: of fitting, in training and otherwise; learning_rate: of these steps
    """

    name: ClassVar[str]
    transductive = False

    def __init__(
        self,
        *,
        dim: int | None,
        ways: int,
        steps: int,
        test_steps: int,
        learning_rate: float,
        seed: int,
        temperature: float,
        learn_temperature: bool,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        check_whole(1, ways=ways)
        check_whole(0, steps=steps, test_steps=test_steps)
        check_positive(learning_rate=learning_rate)
        self.dim, self.ways = dim, ways
        self.steps, self.test_steps, self.learning_rate = steps, test_steps, learning_rate
        if dim is not None:
            check_whole(1, dim=dim)
            self.weight = nn.Parameter(0.01 * torch.randn(ways, dim, generator=torch.Generator().manual_seed(seed)))
            self.bias = nn.Parameter(torch.zeros(ways))

    def check(self, episode: Episode) -> None:
        if self.dim is None:
            return
        check_width(self.name, self.dim, episode)
        if episode.ways > self.ways:
            raise ValueError(
                f"{self.name} has a learned head of {self.ways} classes (its option ways), and the episode has "
                f"{episode.ways}; train one with ways={episode.ways}"
            )

    def check_statistics(self, statistics: str) -> None:
        """Raise unless batch normalisation is to go by the images at hand."""
        if statistics != "episode":
            raise ValueError(
                f"{self.name} fits the network to each episode, with batch normalisation by the images at hand: "
                f"use statistics='episode', not {statistics!r}"
            )

    def log_probabilities(self, episode: Episode) -> Tensor:
        return self.adapted(nn.Identity(), _in_result_dtype(episode))

    def loss(self, episode: Episode, answers: Tensor) -> tuple[Tensor, Tensor]:
        return self.adapted_loss(nn.Identity(), _in_result_dtype(episode), answers)

    def adapted(self, network: nn.Module, episode: Episode) -> Tensor:
        """Log-probabilities ``[B, Q, N]`` by the network as fitted to each episode; the network itself stays as it is.

        episode: of what the network takes, here images ``[B, S, 3, H, W]`` and ``[B, Q, 3, H, W]``
        """
        return self._solve(network, episode, self.test_steps)

    def adapted_loss(self, network: nn.Module, episode: Episode, answers: Tensor) -> tuple[Tensor, Tensor]:
        """What training minimises, and the log-probabilities; answers: true labels ``[B, Q]``."""
        scores = self._solve(network, episode, self.steps)
        return F.nll_loss(scores.flatten(0, 1), answers.flatten()), scores

    @abstractmethod
    def fit(self, loss: StepLoss, start: Weights, steps: int) -> Weights:
        """Weights of one episode, so many steps down its loss from the start."""

    def task_loss(
        self, task: Classifier, start: Weights, support: Tensor, membership: Tensor, query: Tensor
    ) -> StepLoss:
        """What :meth:`fit` minimises for one episode (``[S, ...]``, ``[S, N]``, ``[Q, ...]``): that of its support."""
        return lambda weights, _: cross_entropy(task.log_probabilities(weights, support), membership)

    def start(self, network: nn.Module, episode: Episode) -> tuple[Classifier, Weights]:
        """The network with a head for this episode's classes, and the weights that fitting starts from."""
        if self.dim is not None:
            head = {"head.weight": self.weight[: episode.ways], "head.bias": self.bias[: episode.ways]}
        elif isinstance(network, nn.Identity):
            zeros = episode.support.new_zeros(episode.ways, episode.support.shape[-1] + 1)
            head = {"head.weight": zeros[:, :-1], "head.bias": zeros[:, -1]}
        else:
            raise ValueError(f"{self.name} learns a head for the network's features: create it with dim, their width")
        body = {f"network.{name}": value for name, value in network.named_parameters() if value.requires_grad}
        head = {name: value.to(episode.support) for name, value in head.items()}
        return Classifier(network, self.temperature), body | head

    def _solve(self, network: nn.Module, episode: Episode, steps: int) -> Tensor:
        task, start = self.start(network, episode)

        def solve(support: Tensor, membership: Tensor, query: Tensor) -> Tensor:
            weights = self.fit(self.task_loss(task, start, support, membership, query), start, steps)
            return task.log_probabilities(weights, query)

        with episode_statistics(network):
            tasks = zip(episode.support, episode.membership(), episode.query, strict=True)
            return torch.stack([solve(*task) for task in tasks])


class Classifier:
    """A network with a linear head, as functions of the weights of both."""

    def __init__(self, network: nn.Module, temperature: Tensor) -> None:
        self.network, self.temperature = network, temperature

    def features(self, weights: Weights, images: Tensor) -> Tensor:
        """``[n, d]`` for images ``[n, 3, H, W]``."""
        body = {name.removeprefix("network."): value for name, value in weights.items() if name.startswith("network.")}
        features: Tensor = functional_call(self.network, body, (images,))
        return features

    def log_probabilities(self, weights: Weights, images: Tensor) -> Tensor:
        """``[n, N]`` for images ``[n, 3, H, W]``."""
        logits = F.linear(self.features(weights, images), weights["head.weight"], weights["head.bias"])
        return (logits / self.temperature).log_softmax(-1)


def cross_entropy(log_p: Tensor, membership: Tensor) -> Tensor:
    """The mean of -log p(own class), for ``log_p`` and ``membership [n, N]``."""
    return -(log_p * membership).sum(-1).mean()


def _in_result_dtype(episode: Episode) -> Episode:
    dtype = result_dtype(episode.support)
    return replace(episode, support=episode.support.to(dtype), query=episode.query.to(dtype))

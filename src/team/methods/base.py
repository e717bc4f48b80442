"""What a few-shot method is: a function from an episode's features to log-probabilities of its queries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from team.checks import check_positive
from team.episode import Episode, check_episode


class Method(nn.Module, ABC):
    """Base of all methods. ``method(support, labels, query)`` gives log-probabilities ``[..., Q, N]``.

    Methods that can also learn from samples nobody asks about take them as a fourth argument, ``unlabelled``.

    Features are used as given and divided by nothing: the temperature, by which every score is divided, is 1 unless
    told otherwise. With ``learn_temperature`` it becomes a parameter that training adjusts and checkpoints keep.
    """

    transductive: ClassVar[bool]
    """Whether the answer for one query depends on the others."""

    semi_supervised: ClassVar[bool] = False
    """Whether the answers can also depend on an unlabelled set."""

    mixing: bool = False
    """Whether training with this method blends the images of an episode (Sec. 3.2)."""

    plain_descent: ClassVar[bool] = False
    """Whether training goes straight down the gradient of the loss, times the learning rate, and not by Adam."""

    def __init__(self, *, temperature: float = 1.0, learn_temperature: bool = False) -> None:
        super().__init__()
        check_positive(temperature=temperature)
        value = torch.tensor(float(temperature)).log()
        self.log_temperature = nn.Parameter(value, requires_grad=learn_temperature)

    @property
    def temperature(self) -> Tensor:
        return self.log_temperature.exp()

    def forward(self, support: Tensor, labels: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        """One episode (``[S, d]``, ``[S]``, ``[Q, d]``, ``[U, d]``) or a batch (``[B, ...]``) -> ``[..., Q, N]``."""
        episode = check_episode(support, labels, query, unlabelled)
        if unlabelled is not None:
            self.check_semi_supervised()
        self.check(episode)
        result = self.log_probabilities(episode)
        return result[0] if support.ndim == 2 else result

    def check_semi_supervised(self) -> None:
        """Raise unless this method has a use for an unlabelled set."""
        if not self.semi_supervised:
            raise ValueError(
                f"{type(self).__name__}, as it is set up, has no use for an unlabelled set; leave it out, or use "
                "soft-kmeans, soft-kmeans-cluster, masked-soft-kmeans, label-propagation, tpn or team (with its metric)"
            )

    def check(self, episode: Episode) -> None:
        """Raise if this method's settings do not fit the episode. Called once at the door."""
        return

    def check_sizes(self, *, ways: int, shots: int, dim: int) -> None:
        """Raise if this method does not fit episodes of these sizes, before there are any."""
        labels = torch.arange(ways).repeat_interleave(shots)[None]
        self.check(Episode(torch.zeros(1, ways * shots, dim), labels, torch.zeros(1, 1, dim), ways))

    def prepared(self, points: Tensor) -> Tensor:
        """What the method makes of all points of an episode ``[B, n, d]`` before it looks at any label.

        Whoever asks about the same points again and again may keep it, and ask :meth:`solved`.
        """
        return points

    def solved(self, episode: Episode) -> Tensor:
        """:meth:`log_probabilities` of an episode whose points are prepared."""
        return self.log_probabilities(episode)

    @abstractmethod
    def log_probabilities(self, episode: Episode) -> Tensor:
        """``[B, Q, N]``, normalised over classes, for an episode known to be right; must not wait for the device."""

    def loss(self, episode: Episode, answers: Tensor) -> tuple[Tensor, Tensor]:
        """What training minimises (Eq. 1), and the log-probabilities ``[B, Q, N]``; answers: true labels ``[B, Q]``."""
        scores = self.log_probabilities(episode)
        return F.nll_loss(scores.flatten(0, 1), answers.flatten()), scores

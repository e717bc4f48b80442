"""Soft k-means: Ren et al., "Meta-learning for semi-supervised few-shot classification", ICLR 2018, Sec. 3.1.

Prototypes are refined by the episode's unlabelled set; where it has none, the queries serve as one. Symbols are the
paper's.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from team.checks import check_positive
from team.episode import Episode, class_means
from team.methods.base import Method
from team.methods.layers import linear, seeded_linear
from team.methods.protonet import squared_euclidean


class SoftKMeans(Method):
    """Sec. 3.1.1: prototypes refined by soft assignments of the unlabelled samples, then ProtoNet's softmax.

    rounds: steps of refinement; the paper found one to be enough
    """

    transductive = True
    semi_supervised = True

    def __init__(self, *, rounds: int = 1, temperature: float = 1.0, learn_temperature: bool = False) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        if rounds < 0:
            raise ValueError(f"rounds must be a number of refinement steps, 0 or more, not {rounds}")
        self.rounds = rounds

    def log_probabilities(self, episode: Episode) -> Tensor:
        prototypes = episode.prototypes()
        query = episode.query.to(prototypes)
        unlabelled = query if episode.unlabelled is None else episode.unlabelled.to(prototypes)
        samples = torch.cat([episode.support.to(prototypes), unlabelled], -2)
        labelled = episode.membership(prototypes.dtype)
        for _ in range(self.rounds):
            assigned = self.assign(unlabelled, prototypes)
            prototypes = class_means(samples, torch.cat([labelled, assigned], -2))
        return self._scores(query, prototypes).log_softmax(-1)

    def assign(self, unlabelled: Tensor, prototypes: Tensor) -> Tensor:
        """z̃_{j,c}, the part that sample j has in class c, ``[B, U, N]``: a softmax over -|h(x̃_j) - p_c|²."""
        return self._scores(unlabelled, prototypes).softmax(-1)

    def _scores(self, samples: Tensor, prototypes: Tensor) -> Tensor:
        return -squared_euclidean(samples, prototypes) / self.temperature


class SoftKMeansCluster(SoftKMeans):
    """Sec. 3.1.2: one more cluster, at the origin and of length-scale r, takes what belongs to no class.

    z̃_{j,c} ∝ exp(-|h(x̃_j) - p_c|² / r_c² - A(r_c)) with A(r) = log(2π)/2 + log r, and r_c = 1 for all classes. The
    extra cluster stays where it is and is no answer: probabilities are over the N classes. The authors' code halves the
    squared distances, as temperature=2 does.
    radius: where r starts (the paper's code: 100)
    learn_radius: whether training adjusts r
    """

    def __init__(
        self,
        *,
        radius: float = 100.0,
        learn_radius: bool = True,
        rounds: int = 1,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(rounds=rounds, temperature=temperature, learn_temperature=learn_temperature)
        check_positive(radius=radius)
        self.log_radius = nn.Parameter(torch.tensor(float(radius)).log(), requires_grad=learn_radius)

    def assign(self, unlabelled: Tensor, prototypes: Tensor) -> Tensor:
        normaliser = math.log(2 * math.pi) / 2  # A(1)
        classes = self._scores(unlabelled, prototypes) - normaliser
        squares = unlabelled.square().sum(-1, keepdim=True) / self.temperature
        remainder = -squares * (-2 * self.log_radius).exp() - (normaliser + self.log_radius)
        assigned: Tensor = torch.cat([classes, remainder], -1).softmax(-1)[..., :-1]
        return assigned


class MaskedSoftKMeans(SoftKMeans):
    """Sec. 3.1.3: soft k-means in which each class lets through only samples within a learned distance.

    The normalised distances d̃_{j,c} = d_{j,c} / mean_j d_{j,c} give five statistics per class, from which a small
    network predicts the threshold β_c and the slope γ_c of the mask m_{j,c} = σ(-γ_c (d̃_{j,c} - β_c)). As in the
    authors' code, both are exponentials of its outputs, kurtosis is that in excess of a Gaussian's, the network starts
    near zero (β = γ = 1), and it passes no gradients to the statistics. They are taken anew in every round. That code
    multiplies by the mask twice, which the paper's formula does not.
    seed: draws the network's first weights
    """

    def __init__(
        self, *, seed: int = 0, rounds: int = 1, temperature: float = 1.0, learn_temperature: bool = False
    ) -> None:
        super().__init__(rounds=rounds, temperature=temperature, learn_temperature=learn_temperature)
        generator = torch.Generator().manual_seed(seed)
        self.hidden = seeded_linear(5, 20, generator, deviation=0.01)
        self.output = seeded_linear(20, 2, generator, deviation=0.01)

    def assign(self, unlabelled: Tensor, prototypes: Tensor) -> Tensor:
        squares = squared_euclidean(unlabelled, prototypes)
        normalised = squares / squares.mean(-2, keepdim=True).clamp_min(1e-18)
        threshold, slope = self._threshold_and_slope(distance_statistics(normalised.detach()))
        mask = (-slope * (normalised - threshold)).sigmoid()
        return super().assign(unlabelled, prototypes) * mask

    def _threshold_and_slope(self, statistics: Tensor) -> tuple[Tensor, Tensor]:
        """β and γ, ``[B, 1, N]`` each, in the precision of ``statistics [B, N, 5]``."""
        for layer in (self.hidden, self.output):
            statistics = linear(layer, statistics)
            statistics = statistics.tanh() if layer is self.hidden else statistics.exp()
        threshold, slope = statistics[..., None, :].unbind(-1)
        return threshold.mT, slope.mT


def distance_statistics(distances: Tensor) -> Tensor:
    """Minimum, maximum, variance, skewness and excess kurtosis over samples, ``[B, U, N]`` -> ``[B, N, 5]``."""
    centred = distances - distances.mean(-2, keepdim=True)
    variance = centred.square().mean(-2)
    spread = torch.where(variance > 0, variance, 1.0).sqrt()[..., None, :]  # equal distances: no skew, kurtosis -3
    standard = centred / spread
    skewness, kurtosis = standard.pow(3).mean(-2), standard.pow(4).mean(-2) - 3
    return torch.stack([distances.amin(-2), distances.amax(-2), variance, skewness, kurtosis], -1)

"""Transductive propagation networks: Liu et al., "Learning to propagate labels", ICLR 2019."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from team.checks import check_whole
from team.episode import Episode
from team.methods.graph import nearest_neighbours
from team.methods.label_propagation import LabelPropagation, neighbour_variance, normalised_weights
from team.methods.layers import Perceptron, check_width

_LARGEST = 5.0  # of log σ_i, so that no example can outgrow the precision of the others


class TPN(LabelPropagation):
    """Label propagation on a learned graph: W_ij = exp(-|x_i/σ_i - x_j/σ_j|² / 2), with σ_i from a small network.

    Here σ_i = σ·exp(g(x_i)), where σ is label propagation's length-scale for the episode and g two linear layers whose
    answers start at 0. So training starts from, and ``tpn`` without ``dim`` is, label propagation, whatever the size
    of the features. (The paper's network, made for feature maps, gives σ_i itself.) Training minimises the paper's
    loss, the cross-entropy over support and queries together (its Eq. 6).

    dim: width of the features (a model gives its network's); without it nothing is learned and g is 0
    hidden: width of g's first layer; seed: draws its first weights; other options are those of label propagation
    """

    def __init__(
        self,
        *,
        dim: int | None = None,
        hidden: int = 64,
        seed: int = 0,
        k: int = 19,
        alpha: float = 0.99,
        length_scale: float = 0.25,
        loops: bool = True,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(
            k=k,
            alpha=alpha,
            length_scale=length_scale,
            loops=loops,
            temperature=temperature,
            learn_temperature=learn_temperature,
        )
        check_whole(1, hidden=hidden)
        self.dim = dim
        if dim is not None:
            check_whole(1, dim=dim)
            self.scales = Perceptron((dim, hidden, 1), torch.Generator().manual_seed(seed), last=0.0)

    def check(self, episode: Episode) -> None:
        if self.dim is not None:
            check_width("tpn", self.dim, episode)

    def loss(self, episode: Episode, answers: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.propagated(episode).log_softmax(-1)
        labels = torch.cat([episode.labels, answers], -1)
        return F.nll_loss(scores.flatten(0, 1), labels.flatten()), scores[:, episode.labels.shape[-1] :]

    def graph(self, samples: Tensor) -> Tensor:
        if self.dim is None:
            return super().graph(samples)
        variance = neighbour_variance(*nearest_neighbours(samples, self.k), self.length_scale)
        scaled = samples * (-self.scales(samples).clamp(-_LARGEST, _LARGEST)).exp()
        squares, near, _ = nearest_neighbours(scaled, self.k)
        return normalised_weights(squares, near, variance, self.loops)

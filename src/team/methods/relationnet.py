"""Relation networks: Sung et al., "Learning to compare: relation network for few-shot learning", CVPR 2018."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from team.checks import check_whole
from team.episode import Episode
from team.methods.base import Method
from team.methods.layers import check_width, linear, seeded_linear


class RelationNet(Method):
    """A learned comparison: relation scores r_{i,c} = g([p_c, x_i]) in 0..1 (the paper's Eq. 1), the largest wins.

    The relation module g is, for features that are vectors, the paper's own for vectors (for zero-shot learning): both
    are concatenated, and two linear layers follow with a ReLU between them and a sigmoid behind. Its convolutions for
    feature maps have no counterpart here. The paper adds the features of a class up; here p_c is their mean, which
    differs by a factor that the first layer absorbs, and does not depend on the number of shots.

    Training minimises the paper's loss, the squared error of r_{i,c} against 1 for the own class and 0 for others. It
    judges every score by itself, so a temperature has no part in it. Probabilities are r_{i,c}^(1/temperature),
    normalised over classes: the order is the paper's, which gives none.

    dim: width of the features (a model gives its network's); hidden: width of the first layer
    seed: draws the first weights
    """

    transductive = False

    def __init__(
        self,
        *,
        dim: int | None = None,
        hidden: int = 256,
        seed: int = 0,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        check_whole(1, hidden=hidden)
        self.dim = dim
        if dim is not None:
            check_whole(1, dim=dim)
            generator = torch.Generator().manual_seed(seed)
            self.hidden = seeded_linear(2 * dim, hidden, generator)
            # All relations start near 1/2: where the sigmoid is flat, squared errors have no slope to learn from.
            self.output = seeded_linear(hidden, 1, generator, deviation=0.01)

    def check(self, episode: Episode) -> None:
        check_width("relationnet", self.dim, episode)

    def log_probabilities(self, episode: Episode) -> Tensor:
        return self._log_probabilities(self.relations(episode))

    def loss(self, episode: Episode, answers: Tensor) -> tuple[Tensor, Tensor]:
        relations = self.relations(episode)
        squares = (relations.sigmoid() - F.one_hot(answers, episode.ways)).square()
        return squares.mean(), self._log_probabilities(relations)

    def relations(self, episode: Episode) -> Tensor:
        """What goes into the sigmoid, ``[B, Q, N]``.

        The first layer is applied to both halves of a pair apart, which is the same and forms no pairs of width 2·dim.
        """
        prototypes = episode.prototypes()
        query = episode.query.to(prototypes)
        left, right = self.hidden.weight.to(prototypes).chunk(2, -1)
        classes = F.linear(prototypes, left, self.hidden.bias.to(prototypes))
        pairs = (classes[:, None] + F.linear(query, right)[:, :, None]).relu()
        return linear(self.output, pairs)[..., 0]

    def _log_probabilities(self, relations: Tensor) -> Tensor:
        return (F.logsigmoid(relations) / self.temperature).log_softmax(-1)

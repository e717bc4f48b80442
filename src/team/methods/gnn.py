"""Graph neural networks: Garcia and Bruna, "Few-shot learning with graph neural networks", ICLR 2018."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from team.checks import check_whole
from team.episode import Episode, result_dtype
from team.methods.base import Method
from team.methods.layers import Perceptron, check_width, linear, seeded_linear

_SLOPE = 0.01  # of the leaky ReLUs below zero
_SMALL = 0.01  # deviation of the weights that give edges and logits
_PAIRS = 1 << 20  # of nodes in a piece of work, which bounds its memory


class GNN(Method):
    """One graph for each query: the support and that query exchange messages along learned edges.

    A node starts as its feature beside its label: one-hot for support, uniform over the episode's classes for queries.
    In each layer, a perceptron of |x_i - x_j| and a softmax over the other nodes j give the adjacency A, and the
    layer's answer ρ(x θ_1 + A x θ_A), with a leaky ReLU as ρ, is put beside what the nodes had (the paper's Sec. 4). A
    last layer, without ρ, gives the logits of the query. Batch normalisation, which the authors' code has between
    layers, is left out: it would tie the episodes of a batch together.

    One-hot labels have a width, so weights are for ``ways`` classes: an episode may have fewer (their labels are the
    first), not more. The learned weights tell the labels apart; to rename classes may change answers a little.
    dim: width of the features (a model gives its network's); hidden: width of the perceptrons, twice what a layer adds
    layers: before the last; seed: draws the first weights
    """

    transductive = False

    def __init__(
        self,
        *,
        dim: int | None = None,
        ways: int = 5,
        hidden: int = 96,
        layers: int = 2,
        seed: int = 0,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        check_whole(1, ways=ways)
        check_whole(2, hidden=hidden)
        check_whole(0, layers=layers)
        self.dim, self.ways = dim, ways
        if dim is None:
            return
        check_whole(1, dim=dim)
        generator = torch.Generator().manual_seed(seed)
        added = hidden // 2
        inputs = [dim + ways + number * added for number in range(layers + 1)]
        self.edges = nn.ModuleList(
            # Nearly equal edges at first: of large features, a softmax would else pick one node and learn nothing.
            Perceptron((width, 2 * hidden, hidden, 1), generator, slope=_SLOPE, last=_SMALL)
            for width in inputs
        )
        self.nodes = nn.ModuleList(  # of x beside A x: θ_1 and θ_A in one
            seeded_linear(2 * width, added, generator) for width in inputs[:-1]
        )
        self.nodes.append(seeded_linear(2 * inputs[-1], ways, generator, deviation=_SMALL))

    def check(self, episode: Episode) -> None:
        check_width("gnn", self.dim, episode)
        if episode.ways > self.ways:
            raise ValueError(
                f"gnn was made for one-hot labels of {self.ways} classes (its option ways), and the episode has "
                f"{episode.ways}; train one with ways={episode.ways}"
            )

    def log_probabilities(self, episode: Episode) -> Tensor:
        pairs = len(episode.support) * (episode.support.shape[-2] + 1) ** 2
        parts = torch.split(episode.query, max(1, _PAIRS // pairs), -2)  # queries know nothing of one another
        scores = torch.cat([self._logits(self._graphs(episode, part)) for part in parts], -2)
        return (scores[..., : episode.ways] / self.temperature).log_softmax(-1)

    def _graphs(self, episode: Episode, query: Tensor) -> Tensor:
        """The nodes of each query's graph, the query last, ``[B, q, S + 1, dim + ways]``."""
        dtype = result_dtype(query)
        unused = (0, self.ways - episode.ways)
        known = F.pad(episode.membership(dtype), unused)
        unknown = F.pad(query.new_full((*query.shape[:-1], episode.ways), 1 / episode.ways, dtype=dtype), unused)
        support = torch.cat([episode.support.to(dtype), known], -1)
        support = support[:, None].expand(-1, query.shape[-2], -1, -1)
        return torch.cat([support, torch.cat([query.to(dtype), unknown], -1)[..., None, :]], -2)

    def _logits(self, nodes: Tensor) -> Tensor:
        """Nodes ``[B, q, n, f]`` -> logits of the last node of each graph ``[B, q, ways]``."""
        for edges, layer in zip(self.edges, self.nodes, strict=True):
            assert isinstance(layer, nn.Linear)
            last = layer is self.nodes[-1]
            targets = nodes[..., -1:, :] if last else nodes  # only the query's answer is wanted of the last layer
            gathered = _adjacency(edges, nodes, targets) @ nodes
            answer = linear(layer, torch.cat([targets, gathered], -1))
            if last:
                return answer[..., 0, :]
            nodes = torch.cat([nodes, F.leaky_relu(answer, _SLOPE)], -1)
        raise AssertionError("there is always a last layer")


def _adjacency(edges: nn.Module, nodes: Tensor, targets: Tensor) -> Tensor:
    """How much each target, one of the last nodes, takes from each node but itself, ``[..., t, n]``; rows sum to 1."""
    scores: Tensor = edges((targets[..., :, None, :] - nodes[..., None, :, :]).abs())[..., 0]
    first = nodes.shape[-2] - targets.shape[-2]
    itself = torch.ones(scores.shape[-2:], dtype=torch.bool, device=nodes.device).triu(first).tril(first)
    return scores.masked_fill(itself, -torch.inf).softmax(-1)

"""Label propagation: Zhou et al., "Learning with local and global consistency", NeurIPS 2004, in the episodes of
TPN: Liu et al., "Learning to propagate labels: transductive propagation network for few-shot learning", ICLR 2019."""

from __future__ import annotations

import torch
from torch import Tensor

from team.checks import check_positive
from team.episode import Episode, result_dtype
from team.methods.base import Method
from team.methods.graph import nearest_neighbours


class LabelPropagation(Method):
    """Labels spread over a graph of support and queries: F* = (I - αS)⁻¹ Y, and a softmax over the rows of F*.

    The samples of an unlabelled set are more nodes of the graph, nobody's answer: TPN-semi.

    TPN without its learned length-scales: W_ij = exp(-|x_i - x_j|² / 2σ²) between each sample and its k nearest, and
    S = D^(-1/2) W D^(-1/2). A pair counts if either is among the other's nearest.
    k: neighbours of each sample, lowered to the number of others; TPN's 20 counts the sample itself
    alpha: how much a sample takes from its neighbours
    length_scale: σ, in units of the episode's root mean square distance between neighbours. TPN learns σ; on the
        validation classes of miniImageNet and CUB this one was better than 0.35, and far better than 0.5 and 1
    loops: whether a sample is its own neighbour, W_ii = 1, as in the code of TPN, or W_ii = 0, as in Zhou et al.
        Without loops the default α lets the best connected support sample label everything; 0.5 works there
    """

    transductive = True
    semi_supervised = True

    def __init__(
        self,
        *,
        k: int = 19,
        alpha: float = 0.99,
        length_scale: float = 0.25,
        loops: bool = True,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        if k < 1:
            raise ValueError(f"k must be a whole number of neighbours, 1 or more, not {k}")
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, both excluded, not {alpha}")
        check_positive(length_scale=length_scale)
        self.k, self.alpha, self.length_scale, self.loops = k, alpha, length_scale, loops

    def log_probabilities(self, episode: Episode) -> Tensor:
        return self.propagated(episode)[..., episode.labels.shape[-1] :, :].log_softmax(-1)

    def propagated(self, episode: Episode) -> Tensor:
        """F* over the temperature, for support and queries, ``[B, S + Q, N]``."""
        dtype, others = result_dtype(episode.support), episode.without_label()
        samples = torch.cat([episode.support, others], -2).to(dtype)
        labelled = episode.membership(dtype)
        unlabelled = labelled.new_zeros(*others.shape[:-1], episode.ways)
        spread = propagate(self.graph(samples), torch.cat([labelled, unlabelled], -2), self.alpha)
        return spread[:, : episode.labels.shape[-1] + episode.query.shape[-2]] / self.temperature

    def graph(self, samples: Tensor) -> Tensor:
        """S for samples ``[B, n, d]``, as ``[B, n, n]``: symmetric, with eigenvalues between -1 and 1."""
        squares, near, rounding = nearest_neighbours(samples, self.k)
        variance = neighbour_variance(squares, near, rounding, self.length_scale)
        return normalised_weights(squares, near, variance, self.loops)


def neighbour_variance(squares: Tensor, near: Tensor, rounding: Tensor, length_scale: float) -> Tensor:
    """σ² of each episode, ``[B, 1, 1]``, from what :func:`nearest_neighbours` gives; at least what rounding makes."""
    near = near | near.mT
    mean = (squares * near).sum((-1, -2), keepdim=True) / near.sum((-1, -2), keepdim=True)
    return torch.maximum(length_scale**2 * mean, rounding).clamp_min(1e-30)


def normalised_weights(squares: Tensor, near: Tensor, variance: Tensor, loops: bool) -> Tensor:
    """D^(-1/2) W D^(-1/2) with W_ij = exp(-squares_ij / 2 variance) where either is near the other, ``[B, n, n]``.

    loops: whether a sample is also joined to itself, W_ii = 1.

    Normalised by logarithms: an outlier, whose weights all underflow, still is its neighbours' neighbour.
    """
    log_weights = (-squares / (2 * variance)).masked_fill(~(near | near.mT), -torch.inf)
    if loops:
        itself = torch.eye(squares.shape[-1], dtype=torch.bool, device=squares.device)
        log_weights = log_weights.masked_fill(itself, 0.0)
    degrees = log_weights.logsumexp(-1)
    normalised = log_weights - (degrees[..., :, None] + degrees[..., None, :]) / 2
    return normalised.exp()


def propagate(graph: Tensor, labels: Tensor, alpha: float) -> Tensor:
    """F* = (I - αS)⁻¹ Y for S ``[B, n, n]`` and Y ``[B, n, N]``; the matrix is positive definite as α < 1.

    By two triangular systems: on CUDA, `cholesky_solve` may wait for the device when given a batch.
    """
    identity = torch.eye(graph.shape[-1], dtype=graph.dtype, device=graph.device)
    factor, _ = torch.linalg.cholesky_ex(identity - alpha * graph)
    half = torch.linalg.solve_triangular(factor, labels, upper=False)
    spread: Tensor = torch.linalg.solve_triangular(factor.mT, half, upper=True)
    return spread

"""LaplacianShot: Ziko et al., "Laplacian regularized few-shot learning", ICML 2020."""

from __future__ import annotations

from torch import Tensor

from team.checks import check_not_negative
from team.episode import Episode
from team.methods.base import Method
from team.methods.graph import nearest_neighbours
from team.methods.protonet import squared_euclidean


class LaplacianShot(Method):
    """Nearest prototypes (the unary term) whose answers agree between neighbouring queries (the Laplacian term).

    Eq. 1 is minimised by the bound updates of Algorithm 1, y_q ∝ exp(a_q + λ b_q), all queries at once, where
    a_q = -|x_q - m_c|² and b_q = Σ_p w(x_q, x_p) y_p; w is one for the k nearest queries of x_q and zero elsewhere.
    The paper's rectified prototypes and centred, unit-length features are not part of this: features are used as given.
    k: neighbours of each query, lowered to the number of other queries
    lam: λ, the weight of the Laplacian term, which the paper chooses on validation classes between 0.1 and 1.5
    rounds: bound updates
    """

    transductive = True

    def __init__(
        self,
        *,
        k: int = 3,
        lam: float = 1.0,
        rounds: int = 20,
        temperature: float = 1.0,
        learn_temperature: bool = False,
    ) -> None:
        super().__init__(temperature=temperature, learn_temperature=learn_temperature)
        if k < 0:
            raise ValueError(f"k must be a whole number of neighbours, 0 or more, not {k}")
        check_not_negative(lam=lam)
        if rounds < 0:
            raise ValueError(f"rounds must be a number of bound updates, 0 or more, not {rounds}")
        self.k, self.lam, self.rounds = k, lam, rounds

    def log_probabilities(self, episode: Episode) -> Tensor:
        prototypes = episode.prototypes()
        query = episode.query.to(prototypes)
        unary = -squared_euclidean(query, prototypes) / self.temperature
        _, near, _ = nearest_neighbours(query.detach(), self.k)
        affinity = near.to(unary)
        answer = unary.log_softmax(-1)
        for _ in range(self.rounds):
            answer = (unary + self.lam * affinity @ answer.exp()).log_softmax(-1)
        return answer

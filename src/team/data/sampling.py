"""How many query images each class of an episode gets. Most papers give every class the same; folders of images do not.

"balanced": every class the same number. "dirichlet": proportions drawn from a symmetric Dirichlet distribution, the
protocol of Veilleux et al., "Realistic evaluation of transductive few-shot learning", NeurIPS 2021, who use a
concentration of 2. "uniform": the class of every query is drawn by itself, all classes being equally likely.

Whatever the sampling, an episode has ways × queries query images, so that episodes stack to rectangular batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from team.checks import check_positive

SamplingName = Literal["balanced", "dirichlet", "uniform"]
SAMPLINGS: tuple[str, ...] = get_args(SamplingName)


@dataclass(frozen=True)
class Sampling:
    """name: see above; concentration: of the Dirichlet distribution (large: nearly balanced);
    present: only this many classes of each episode, drawn at random, have queries (K_eff); None for all of them.
    """

    name: str = "balanced"
    concentration: float = 2.0
    present: int | None = None

    def __post_init__(self) -> None:
        if self.name not in SAMPLINGS:
            raise ValueError(f"no sampling is called {self.name!r}; there are {', '.join(SAMPLINGS)}")
        check_positive(concentration=self.concentration)
        present = self.present
        if present is not None and (isinstance(present, bool) or not isinstance(present, int) or present < 1):
            raise ValueError(f"present must be a whole number of classes, 1 or more, or None, not {present!r}")

    def __str__(self) -> str:
        name = f"{self.name}({self.concentration:g})" if self.name == "dirichlet" else self.name
        return name if self.present is None else f"{name} of {self.present} classes"

    def options(self) -> dict[str, Any]:
        """As :func:`team.evaluate` takes them."""
        return {"sampling": self.name, "concentration": self.concentration, "present": self.present}

    def check(self, counts: Tensor, *, ways: int, shots: int, queries: int) -> None:
        """Raise unless every choice of classes, which have ``counts [C]`` images, has enough of them for an episode."""
        present = ways if self.present is None else self.present
        if present > ways:
            raise ValueError(f"present is {present}, but episodes have {ways} classes; it must be {ways} or less")
        least = shots + queries if self.name == "balanced" and present == ways else shots
        poorest = int(counts.argmin())
        if int(counts[poorest]) < least:
            also = f" and {queries} queries per class" if least > shots else ""
            raise ValueError(
                f"class {poorest} has {int(counts[poorest])} images, but {shots} shots{also} need {least}; "
                "ask for fewer or leave the class out"
            )
        left = int((counts - shots).sort().values[:present].sum())
        if left < ways * queries:
            raise ValueError(
                f"an episode has {ways * queries} queries, but its {present} classes with queries may have only {left} "
                f"images left after {shots} shots each; ask for fewer queries, or for more classes with queries"
            )

    def query_counts(self, room: Tensor, total: int, generator: torch.Generator) -> Tensor:
        """Queries of each class, int64 ``[E, N]``, rows of sum ``total``, never above ``room [E, N]``.

        Balanced episodes of all classes draw no random number.
        """
        episodes, ways = room.shape
        present = ways if self.present is None else self.present
        if present < ways:
            keys = torch.rand(episodes, ways, generator=generator)
            takes_part = torch.zeros_like(room).scatter_(1, keys.topk(present).indices, 1)
        else:
            takes_part = torch.ones_like(room)
        if self.name == "uniform":
            labels = torch.randint(present, (episodes, total), generator=generator)
            wanted = F.one_hot(labels, present).sum(1).double()
        elif self.name == "dirichlet":
            random = np.random.default_rng(int(torch.randint(1 << 62, (), generator=generator)))
            wanted = total * torch.from_numpy(random.dirichlet(np.full(present, float(self.concentration)), episodes))
        else:
            wanted = torch.full((episodes, present), total / present, dtype=torch.float64)
        everywhere = torch.zeros(episodes, ways, dtype=torch.float64)
        everywhere[takes_part.bool()] = wanted.flatten()
        return apportion(everywhere, room * takes_part, total)


BALANCED = Sampling()


def apportion(wanted: Tensor, room: Tensor, total: int) -> Tensor:
    """Whole numbers next to ``wanted [E, N]``, of sum ``total``, none above ``room [E, N]``.

    By largest remainder, which Veilleux et al. come close to (they round, then mend the sum): counts follow the drawn
    proportions, where a multinomial draw would add a variance of its own. What a small class cannot give goes to the
    classes that are furthest below, or least above, what they should have, one image after the other.
    """
    counts = torch.minimum(wanted.floor().long(), room)
    while bool((missing := counts.sum(-1, keepdim=True) < total).any()):
        gap = (wanted - counts).masked_fill(counts >= room, -torch.inf)
        counts += F.one_hot(gap.argmax(-1), counts.shape[-1]) * missing
    return counts

"""What to put on the leaderboard, and the weights there are for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from team.data.sampling import BALANCED, Sampling
from team.evaluation.embed import Precision
from team.evaluation.evaluate import BLOCK
from team.leaderboard.settings import TRAINED
from team.methods import list_methods
from team.recipes import RECIPES
from team.weights import list_weights, weights_path


@dataclass(frozen=True)
class Weights:
    """A trained network, and the methods that get their features from it; path is None where it does not exist.

    network: what it was trained as, or "own" for a method that brings its own
    shots: of the episodes it meets, which may not be those it was trained with
    """

    name: str
    recipe: str
    network: str
    shots: int
    methods: tuple[str, ...]
    path: Path | None

    @property
    def label(self) -> str:
        """Its name, with the number of shots where that is another one than in training."""
        return self.name if f"-{self.shots}shot-" in self.name else f"{self.name} at {self.shots} shot"


@dataclass(frozen=True)
class Selection:
    """Methods × data sets × networks × shots × samplings; no methods stands for all of them.

    backbones: of recipes; a data set that has no recipe for one has no table for it
    networks: which weights of a data set and number of shots give the features, by what they were trained as; where
        there are none, those trained with the nearest number of shots do
    episodes: of test classes; slow_episodes: the same for methods that fit the whole network to each of them
    tuning_episodes: of validation classes, for each setting that is tried
    precision: what networks that give features are computed in, as :func:`team.evaluation.embed` takes it
    folder: of model files, ``<data set>-<backbone>-<shots>shot-<network or method>.safetensors``, which are taken
        before those that came with the package
    """

    methods: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ("miniimagenet", "cifar100", "cub")
    backbones: tuple[str, ...] = ("conv4", "resnet18")
    networks: tuple[str, ...] = ("baseline", "team")
    shots: tuple[int, ...] = (1, 5)
    samplings: tuple[Sampling, ...] = (BALANCED, Sampling("dirichlet"))
    episodes: int = 1000
    slow_episodes: int = BLOCK
    tuning_episodes: int = 200
    seed: int = 0
    precision: Precision | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        if unknown := sorted(set(self.methods) - set(list_methods())):
            raise ValueError(f"no method is called {unknown[0]!r}; there are {', '.join(list_methods())}")
        for dataset, backbone in product(self.datasets, self.backbones):
            if not self._recipes((dataset,), self.backbones) or not self._recipes(self.datasets, (backbone,)):
                raise ValueError(f"there is no recipe {dataset}-{backbone}; there are {', '.join(RECIPES)}")
        for name in ("episodes", "slow_episodes", "tuning_episodes"):
            if getattr(self, name) < 2:
                raise ValueError(f"{name} must be 2 or more, not {getattr(self, name)}")

    def recipes(self) -> list[str]:
        """A recipe for each data set and backbone; the leaderboard has a table for each, and network."""
        return self._recipes(self.datasets, self.backbones)

    @staticmethod
    def _recipes(datasets: tuple[str, ...], backbones: tuple[str, ...]) -> list[str]:
        names = (f"{dataset}-{backbone}" for dataset, backbone in product(datasets, backbones))
        return [name for name in names if name in RECIPES]

    def weights(self) -> Iterator[Weights]:
        """All that the selection asks for, whether it exists or not."""
        methods = self.methods or tuple(list_methods())
        trained = [name for name in methods if name in TRAINED]
        others = tuple(name for name in methods if name not in TRAINED)
        sources = [(name, name, others) for name in self.networks if others]
        sources += [(name, "own", (name,)) for name in trained]
        available = {name: weights_path(name) for name in list_weights()}
        if self.folder is not None:
            available |= {path.stem: path for path in self.folder.glob("*.safetensors")}
        for recipe, (trained_as, network, users), shots in product(self.recipes(), sources, self.shots):
            name = f"{recipe}-{shots}shot-{trained_as}"
            if name not in available and network != "own":
                name = _nearest(available, recipe, trained_as, shots) or name
            yield Weights(name, recipe, network, shots, users, available.get(name))


def _nearest(names: Iterable[str], recipe: str, trained_as: str, shots: int) -> str | None:
    """Which of these names of weights is of this recipe and kind, for the number of shots that is nearest."""
    pattern = re.compile(rf"{re.escape(recipe)}-(\d+)shot-{re.escape(trained_as)}")
    found = {int(match[1]): name for name in names if (match := pattern.fullmatch(name))}
    return found[min(found, key=lambda number: abs(number - shots))] if found else None

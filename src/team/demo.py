"""The method from end to end in a minute or two on a CPU: train on glyphs, compare, and write a report.

One network is pre-trained, then trained on episodes once for each row of the paper's ablation, all on the same
episodes. Every choice below was made on the validation scripts (Greek and Lao); the test scripts, whose characters no
training has seen, give the final figures and nothing else.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from team.data.augment import Augmentation
from team.data.glyphs import Part, load_glyphs
from team.data.images import ImageSet
from team.evaluation import Evaluation, by_class, embed, evaluate
from team.mixing import MixingSchedule
from team.model import Model, load_model
from team.recipes.glyphs import GLYPHS_PRETRAINING
from team.recipes.recipe import VARIANTS, Variant
from team.training.episodic import EpisodicTraining
from team.training.loop import Outcome, train
from team.training.pretrain import Pretraining
from team.training.settings import EpisodicSettings, PretrainSettings

ROWS: dict[Variant, tuple[str, str]] = {
    "baseline": ("baseline", "ProtoNet: the nearest class mean"),
    "tim": ("+ TIM", "training images are blended"),
    "eam": ("+ EAM", "a metric for each episode"),
    "team": ("TEAM", "similarity from both sides"),
}
"""The rows of the table: each adds one part of the method to the row before."""

SHOTS = (1, 5)


@dataclass(frozen=True)
class DemoSettings:
    """All that decides the figures; the seed in ``pretrain`` and ``episodic`` is also that of images and weights."""

    filters: int = 32
    size: int = 32
    """Side of the images and of the network's input."""
    per_class: dict[Part, int] = field(default_factory=lambda: {"train": 50, "val": 20, "test": 50})
    """Images of each class, by part."""
    pretrain: PretrainSettings = field(default_factory=PretrainSettings)
    episodic: EpisodicSettings = field(default_factory=EpisodicSettings)
    test_episodes: int = 1000
    trial: bool = False
    """Whether this is only to try the program out."""

    @classmethod
    def standard(cls, seed: int) -> DemoSettings:
        """Chosen on the validation scripts (1-shot accuracy in per cent, 1000 episodes, ± 0.6, seed 0).

        Pre-training, read off with TEAM before any episode: 80.2; without label smoothing 75.9, at a learning rate of
        0.05 79.7, with 6 epochs 77.4. Learning rate of the episodes, one for all rows, for the baseline and for TEAM
        without mixing: 75.4 and 83.8; at 5e-4 74.1 and 83.7, at 1e-3 74.9 and 83.8, at 4e-3 75.0 and 83.0. Mixing,
        for the TIM row and for TEAM: 75.3 and 83.7; with the paper's range of 0.5 to 1 75.3 and 83.3; earlier or of
        queries too, worse. So few episodes give mixing nothing to improve. k makes no difference from 3 to 20.
        """
        light = Augmentation(flip=False)  # a mirrored character is another character
        pretrain = replace(GLYPHS_PRETRAINING, seed=seed)
        episodic = EpisodicSettings(
            episodes=400,
            learning_rate=2e-3,
            schedule="cosine",
            mixing=MixingSchedule(start=200, on=4, off=1),
            mixing_range=(0.8, 1.0),
            augmentation=light,
            average=0.98,
            validate_every=50,
            validation_episodes=200,
            seed=seed,
        )
        return cls(pretrain=pretrain, episodic=episodic)

    @classmethod
    def tiny(cls, seed: int) -> DemoSettings:
        """For trying out that everything runs, in seconds; its figures mean nothing."""
        standard = cls.standard(seed)
        pretrain = replace(standard.pretrain, epochs=1, learning_rate=0.02, validation_episodes=20)
        episodic = replace(standard.episodic, episodes=20, validate_every=10, validation_episodes=20)
        episodic = replace(episodic, mixing=MixingSchedule(start=5, on=4, off=1))
        return cls(8, 32, {"train": 16, "val": 16, "test": 20}, pretrain, episodic, test_episodes=50, trial=True)


@dataclass(frozen=True, eq=False)
class DemoRow:
    """One row of the ablation. outcome: of its training; test: accuracy on the test scripts, by shots."""

    variant: Variant
    model: Model
    outcome: Outcome
    test: dict[int, Evaluation]

    @property
    def name(self) -> str:
        return ROWS[self.variant][0]


@dataclass(frozen=True, eq=False)
class DemoResult:
    """rows: the ablation table, baseline first, TEAM last; folder: where all was written; seconds: of this call."""

    settings: DemoSettings
    data: dict[Part, ImageSet]
    rows: list[DemoRow]
    pretraining: Outcome
    folder: Path
    seconds: float

    @property
    def page(self) -> Path:
        return self.folder / "index.html"

    @property
    def training_seconds(self) -> float:
        """Time spent in training, over all resumptions."""
        return self.pretraining.seconds + sum(row.outcome.seconds for row in self.rows)

    def gain(self, shots: int = 1) -> float:
        """How far TEAM is above the baseline on test episodes of so many shots, in points."""
        return self.rows[-1].test[shots].mean - self.rows[0].test[shots].mean

    def intervals(self, shots: int = 1) -> float:
        """The sum of both 95 % intervals, which the gain must exceed to be beyond doubt."""
        return self.rows[-1].test[shots].ci95 + self.rows[0].test[shots].ci95

    def table(self) -> list[dict[str, Any]]:
        """The table as JSON values, accuracies in per cent."""
        return [
            {"name": row.name, "adds": ROWS[row.variant][1], "validation": row.outcome.best}
            | {f"{shots}-shot": {"mean": test.mean, "ci95": test.ci95} for shots, test in row.test.items()}
            for row in self.rows
        ]


def run_demo(
    folder: Path, *, seed: int = 0, quick: bool = False, show: bool = True, cache: Path | None = None
) -> DemoResult:
    """Train, compare and write the report into ``folder``; what an earlier, interrupted call finished there is used.

    quick: only try out that everything runs, in seconds; cache: where drawn glyphs are kept, if not the usual place
    """
    from team.report.demo import print_result, write_report

    started = time.monotonic()
    settings = DemoSettings.tiny(seed) if quick else DemoSettings.standard(seed)
    data = {
        part: load_glyphs(part, size=settings.size, per_class=count, seed=seed, cache=cache)
        for part, count in settings.per_class.items()
    }
    start = _fresh(settings, "baseline")
    pretraining = train(
        Pretraining(start, data["train"], data["val"], settings.pretrain), folder / "pretrained", show=show
    )
    trained = [_train_row(variant, settings, data, folder, show) for variant in ROWS]
    rows = [_test_row(variant, outcome, settings, data["test"], folder) for variant, outcome in trained]
    result = DemoResult(settings, data, rows, pretraining, folder, time.monotonic() - started)
    write_report(result)
    if show:
        print_result(result)
    return result


def _train_row(
    variant: Variant, settings: DemoSettings, data: dict[Part, ImageSet], folder: Path, show: bool
) -> tuple[Variant, Outcome]:
    """Train one row from the pre-trained network, or go on with it."""
    model = _fresh(settings, variant)
    model.start_from(folder / "pretrained" / "best.safetensors")
    objective = EpisodicTraining(model, data["train"], data["val"], settings.episodic)
    objective.name = f"training {ROWS[variant][0]}"
    return variant, train(objective, folder / variant, show=show)


def _test_row(variant: Variant, outcome: Outcome, settings: DemoSettings, test: ImageSet, folder: Path) -> DemoRow:
    model = load_model(folder / variant / "best.safetensors")
    features = by_class(embed(model.network, test.images, size=settings.size), test)
    shared: dict[str, Any] = {"episodes": settings.test_episodes, "seed": settings.episodic.seed}
    tests = {shots: evaluate(model.method, features, shots=shots, **shared) for shots in SHOTS}
    return DemoRow(variant, model, outcome, tests)


def _fresh(settings: DemoSettings, variant: Variant) -> Model:
    """A model for this row, with weights drawn from the seed."""
    return Model.create(
        "conv4",
        "team",
        settings.size,
        backbone_options={"filters": settings.filters},
        method_options={"learn_temperature": True} | VARIANTS[variant],
        seed=settings.episodic.seed,
    )

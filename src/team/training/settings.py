"""Every number that decides what a training run gives. A recipe is one of each."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from team.checks import check_not_negative
from team.data.augment import Augmentation
from team.mixing import MixingSchedule


@dataclass(frozen=True)
class PretrainSettings:
    """Pre-training: classify all seen classes (Sec. 4.2, "Training strategy").

    SGD with momentum 0.9, the learning rate rising linearly over the first tenth of the steps and then falling as a
    cosine. Validation is nearest-prototype accuracy on episodes of the validation classes.
    """

    epochs: int = 60
    batch: int = 256
    learning_rate: float = 0.2
    weight_decay: float = 5e-4
    label_smoothing: float = 0.0
    teaching: float = 0.0
    """Share of the loss that a teacher's soft labels have; 0 learns from the true labels alone."""
    teacher_temperature: float = 0.15
    rotation: float = 0.0
    """Weight of a second loss: by how many quarters a turned copy of each image is turned; 0 makes no copies."""
    mixup: float = 0.0
    """Share of the images that are blended with another one, and whose labels are too; 0 blends none."""
    augmentation: Augmentation = field(default_factory=Augmentation)
    average: float = 0.99
    """Decay of the moving average of the weights, which is what is validated and kept; 0 keeps the last weights."""
    validations: int = 6
    validation_episodes: int = 500
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self, positive=("epochs", "batch", "learning_rate", "validations", "validation_episodes"))
        _check(self, positive=("teacher_temperature",))
        check_not_negative(rotation=self.rotation)
        _check(self, fractions=("weight_decay", "label_smoothing", "teaching", "average"))
        if not 0 <= self.mixup <= 1:
            raise ValueError(f"mixup must be from 0 to 1, not {self.mixup}")


@dataclass(frozen=True)
class EpisodicSettings:
    """Episodic training (Eq. 1): Adam on the negative log-probability of the queries' labels.

    schedule: "halving" halves the learning rate every ``halve_every`` episodes as the paper does; "cosine" lets it fall
    to zero over all episodes. Training ends early when ``patience`` episodes brought no better validation accuracy.
    """

    ways: int = 5
    shots: int = 1
    queries: int = 15
    unlabelled: int = 0
    """More images of each class that a semi-supervised method gets to see without their label, in every episode."""
    episodes: int = 40_000
    per_step: int = 1
    """Episodes per optimiser step; batch normalisation sees all of them together."""
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["halving", "cosine"] = "halving"
    halve_every: int = 10_000
    patience: int = 20_000
    mixing: MixingSchedule = field(default_factory=MixingSchedule)
    mixing_range: tuple[float, float] = (0.5, 1.0)
    mixed: Literal["support", "all"] = "support"
    """Which samples task internal mixing blends: the support, as the paper's text says, or support and queries."""
    seen_prototypes: bool = False
    """Give the method running means of the other training classes as seen-class prototypes."""
    augmentation: Augmentation = field(default_factory=Augmentation)
    average: float = 0.998
    validate_every: int = 2000
    validation_episodes: int = 500
    validation_ways: int = 5
    validation_queries: int = 15
    validation_unlabelled: int = 0
    statistics: Literal["running", "episode"] = "running"
    """What batch normalisation uses in validation and at test."""
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self, positive=("ways", "shots", "queries", "episodes", "per_step", "learning_rate", "halve_every"))
        _check(self, positive=("patience", "validate_every", "validation_episodes"))
        _check(self, positive=("validation_ways", "validation_queries"))
        _check(self, fractions=("weight_decay", "average"))
        check_not_negative(unlabelled=self.unlabelled, validation_unlabelled=self.validation_unlabelled)
        low, high = self.mixing_range
        if not 0.5 <= low < high <= 1:
            raise ValueError(f"mixing_range must satisfy 0.5 <= low < high <= 1, not {self.mixing_range}")


def _check(settings: Any, *, positive: tuple[str, ...] = (), fractions: tuple[str, ...] = ()) -> None:
    for name in positive:
        if not getattr(settings, name) > 0:
            raise ValueError(f"{name} must be positive, not {getattr(settings, name)}")
    for name in fractions:
        if not 0 <= getattr(settings, name) < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, not {getattr(settings, name)}")
    for name, kind in get_type_hints(type(settings)).items():
        value = getattr(settings, name)
        if kind is int and (isinstance(value, bool) or not isinstance(value, int)):
            raise ValueError(f"{name} must be a whole number, not {value!r}")
        if get_origin(kind) is Literal and value not in get_args(kind):
            raise ValueError(f"{name} must be {' or '.join(map(repr, get_args(kind)))}, not {value!r}")


Settings = TypeVar("Settings")
_LATER = ("unlabelled", "validation_unlabelled", "rotation", "mixup")


def to_json(settings: Any) -> dict[str, Any]:
    """Settings as JSON values; what did not exist in the first version is left out where it is zero.

    So a run that was begun before still counts as the same run, and goes on.
    """
    return {name: value for name, value in asdict(settings).items() if value or name not in _LATER}


def from_json(kind: type[Settings], values: dict[str, Any]) -> Settings:
    """Settings from JSON values; an unknown name is an error, a missing one takes its default."""
    known = {entry.name for entry in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(values.keys() - known):
        raise ValueError(f"{kind.__name__} has no {', '.join(unknown)}; it has {', '.join(sorted(known))}")
    hints = get_type_hints(kind)
    result = {}
    for name, value in values.items():
        if is_dataclass(hints[name]) and isinstance(value, dict):
            value = from_json(hints[name], value)
        result[name] = tuple(value) if isinstance(value, list) else value
    return kind(**result)

"""Claims about settings: what is written reads back the same, and what makes no sense is named."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from team.data.augment import Augmentation
from team.mixing import MixingSchedule
from team.training.settings import EpisodicSettings, PretrainSettings, from_json, to_json

PRETRAIN = PretrainSettings(epochs=3, augmentation=Augmentation(crop=0.5, flip=False), label_smoothing=0.1, seed=4)
EPISODIC = EpisodicSettings(
    shots=5,
    schedule="cosine",
    mixing=MixingSchedule(start=10, on=1, off=0),
    mixing_range=(0.6, 0.9),
    mixed="all",
    augmentation=Augmentation(colour=0.4),
    statistics="episode",
    seen_prototypes=True,
)


@pytest.mark.parametrize("settings", [PretrainSettings(), PRETRAIN, EpisodicSettings(), EPISODIC])
def test_settings_come_back_from_json_as_they_were(settings: Any) -> None:
    text = json.dumps(to_json(settings))
    again = from_json(type(settings), json.loads(text))
    assert again == settings
    assert [type(getattr(again, entry.name)) for entry in fields(again)] == [
        type(getattr(settings, entry.name)) for entry in fields(settings)
    ]


def test_what_is_not_given_takes_its_default() -> None:
    assert from_json(EpisodicSettings, {}) == EpisodicSettings()
    assert from_json(EpisodicSettings, {"mixing": {"start": 7}}).mixing == MixingSchedule(start=7)


@pytest.mark.parametrize(
    ("kind", "values", "words"),
    [
        (PretrainSettings, {"epoch": 3}, "PretrainSettings has no epoch; it has augmentation, average, batch, epochs"),
        (EpisodicSettings, {"lr": 1, "wd": 2}, "EpisodicSettings has no lr, wd"),
        (EpisodicSettings, {"augmentation": {"rotate": 3}}, "Augmentation has no rotate; it has colour, crop, flip"),
        (EpisodicSettings, {"mixing": {"start": -1}}, "need start >= 0"),
    ],
)
def test_a_name_that_is_not_a_setting_is_turned_away(kind: type, values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_json(kind, values)


WHOLE = ["ways", "shots", "queries", "episodes", "per_step", "halve_every", "patience", "validate_every"]
WHOLE += ["validation_episodes", "validation_ways", "validation_queries"]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *((EpisodicSettings, name, value) for name in WHOLE for value in (0, -3)),
        *((PretrainSettings, name, 0) for name in ("epochs", "batch", "validations", "validation_episodes")),
        *((kind, "learning_rate", value) for kind in (PretrainSettings, EpisodicSettings) for value in (0.0, -1e-3)),
        *((kind, "learning_rate", float("nan")) for kind in (PretrainSettings, EpisodicSettings)),
        *((kind, "average", value) for kind in (PretrainSettings, EpisodicSettings) for value in (-0.1, 1.0)),
        *((kind, "weight_decay", value) for kind in (PretrainSettings, EpisodicSettings) for value in (-0.1, 1.0)),
        (PretrainSettings, "label_smoothing", 1.0),
        (EpisodicSettings, "unlabelled", -1),
        (EpisodicSettings, "validation_unlabelled", 2.5),
        (EpisodicSettings, "episodes", 10.5),
        (EpisodicSettings, "shots", True),
        (PretrainSettings, "epochs", 1.5),
        (PretrainSettings, "seed", 0.5),
        (EpisodicSettings, "schedule", "linear"),
        (EpisodicSettings, "mixed", "query"),
        (EpisodicSettings, "statistics", "batch"),
        (EpisodicSettings, "mixing_range", (0.4, 1.0)),
        (EpisodicSettings, "mixing_range", (0.9, 0.6)),
        (EpisodicSettings, "mixing_range", (0.6, 1.1)),
    ],
)
def test_a_value_without_a_meaning_is_turned_away_by_name(kind: type, name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        kind(**{name: value})

"""Claims about training: it learns, it follows its settings exactly, and it says why it ended."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import tiny_episodic, tiny_images, tiny_model, tiny_pretraining
from torch import Tensor, nn

from team.data.augment import Augmentation
from team.data.images import ImageSet
from team.evaluation import by_class, embed, evaluate_images
from team.methods import TEAM, create_method
from team.mixing import MixingSchedule
from team.model import Model, load_model
from team.recipes import VARIANTS
from team.seeding import generator
from team.training.average import WeightAverage
from team.training.checkpoint import CheckpointError, load_checkpoint
from team.training.episodic import EpisodicTraining
from team.training.loop import Objective, Outcome, train
from team.training.pretrain import Pretraining
from team.training.settings import EpisodicSettings, PretrainSettings, from_json
from team.training.teacher import Teacher

TRAIN, VALIDATION = tiny_images(8, 8), tiny_images(4, 8, seed=1)
LIGHT = Augmentation(crop=0.9, flip=False)


def episodic(model: Model | None = None, train: ImageSet = TRAIN, **changes: Any) -> EpisodicTraining:
    return EpisodicTraining(model or tiny_model(), train, VALIDATION, tiny_episodic(**changes))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def run(objective: Objective, folder: Path, **options: Any) -> Outcome:
    return train(objective, folder, show=False, **options)


# --- it learns --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hard() -> tuple[ImageSet, ImageSet, float]:
    """Noisy training and validation images, and the accuracy of an untrained network on the latter."""
    images, validation = tiny_images(12, 20, noise=200.0), tiny_images(6, 20, seed=1, noise=200.0)
    model = tiny_model(filters=8)
    return images, validation, evaluate_images(model.network, model.method, validation, episodes=100).mean


def test_pretraining_learns_what_helps_with_classes_it_never_saw(
    tmp_path: Path, hard: tuple[ImageSet, ImageSet, float]
) -> None:
    images, validation, untrained = hard
    settings = tiny_pretraining(epochs=6, validations=3, validation_episodes=100, average=0.9, augmentation=LIGHT)
    outcome = run(Pretraining(tiny_model(filters=8), images, validation, settings), tmp_path)
    losses = [row["loss"] for row in rows(tmp_path)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.1 * math.log(12)
    assert untrained < 40
    assert outcome.best > 80


def test_a_teacher_passes_on_what_it_knows(tmp_path: Path, hard: tuple[ImageSet, ImageSet, float]) -> None:
    """Images with labels drawn at random teach nothing; a teacher that was trained on the true ones does."""
    images, validation, _ = hard
    settings = tiny_pretraining(epochs=6, validations=3, validation_episodes=100, average=0.9, augmentation=LIGHT)
    teacher = tiny_model(filters=8)
    run(Pretraining(teacher, images, validation, settings), tmp_path / "teacher")
    soft = Teacher(teacher.network, teacher.size, images, settings.augmentation, 0.15)
    drawn = settings.augmentation.draw(len(images), generator(0))
    taught = soft(images.images, drawn)
    torch.testing.assert_close(taught.sum(-1), torch.ones(len(images)))
    assert (taught.argmax(-1) == images.labels).double().mean() > 0.9

    learner = tiny_model(filters=8)
    objective = Pretraining(learner, images, validation, replace(settings, teaching=0.9), teacher=teacher)
    shuffled = images.labels[torch.randperm(len(images), generator=generator(1))]
    objective.train = replace(images, labels=shuffled)
    assert run(objective, tmp_path / "taught").best > 80
    about = load_model(tmp_path / "taught" / "best.safetensors").info["pretraining"]
    assert about["teacher"]["backbone"] == "conv4", "who taught is written down"
    for wrong in (replace(settings, teaching=0.5), None), (settings, teacher):
        with pytest.raises(ValueError, match="go together"):
            Pretraining(learner, images, validation, wrong[0], teacher=wrong[1])


@pytest.mark.parametrize("method", ["protonet", "team"])
def test_episodic_training_learns_what_helps_with_classes_it_never_saw(
    tmp_path: Path, hard: tuple[ImageSet, ImageSet, float], method: str
) -> None:
    images, validation, untrained = hard
    settings = tiny_episodic(
        **{"ways": 5, "queries": 5, "episodes": 60, "validate_every": 20, "learning_rate": 3e-3, "average": 0.9},
        **{"validation_ways": 5, "validation_queries": 15, "validation_episodes": 100, "augmentation": LIGHT},
    )
    model = tiny_model(method, filters=8, temperature=8.0)
    outcome = run(EpisodicTraining(model, images, validation, settings), tmp_path)
    losses = [row["loss"] for row in rows(tmp_path)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.7 * losses[0] < 0.7 * math.log(5)
    assert untrained < 40
    assert outcome.best > 80


def test_a_network_of_ones_own_is_trained_like_any_other(tmp_path: Path) -> None:
    network = Plain()
    before = network.layer.weight.detach().clone()
    model = Model(network, create_method("team"), "", {}, "team", {}, 32)
    run(Pretraining(model, tiny_images(8, 16), tiny_images(4, 16, seed=1), tiny_pretraining(epochs=2)), tmp_path / "1")
    after = network.layer.weight.detach().clone()
    assert not torch.equal(before, after)
    run(episodic(model, episodes=5), tmp_path / "2")
    assert not torch.equal(after, network.layer.weight)
    again = load_model(tmp_path / "2" / "best.safetensors", network=Plain())
    assert isinstance(again.network, Plain)
    assert set(again.info) == {"pretraining", "training"}, "how it came to be travels with it"


class Plain(nn.Module):
    """No batch normalisation: what it gives for an image depends on nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(3, 6, 8, stride=8)

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layer(images).relu().flatten(1)
        return features


def plain_model(**options: Any) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Model(Plain(), create_method("team", **options), "", {}, "team", options, 32)


# --- it follows its settings ------------------------------------------------------------------------------------------


def test_the_learning_rate_is_halved_every_so_many_episodes() -> None:
    objective = episodic(learning_rate=0.4, episodes=100, per_step=4, halve_every=20)
    assert objective.steps == 25
    assert [objective.learning_rate(step) for step in range(25)] == [0.4] * 5 + [0.2] * 5 + [0.1] * 5 + [0.05] * 5 + [
        0.025
    ] * 5


def test_the_learning_rate_falls_as_a_cosine_over_all_episodes() -> None:
    objective = episodic(learning_rate=0.4, episodes=100, per_step=4, schedule="cosine")
    expected = [0.2 * (1 + math.cos(math.pi * 4 * step / 100)) for step in range(25)]
    assert [objective.learning_rate(step) for step in range(25)] == pytest.approx(expected)
    assert objective.learning_rate(0) == 0.4


def test_the_learning_rate_of_pretraining_rises_for_a_tenth_and_falls_as_a_cosine() -> None:
    settings = tiny_pretraining(epochs=50, batch=32, learning_rate=0.5)
    objective = Pretraining(tiny_model(), TRAIN, tiny_images(4, 16, seed=1), settings)
    assert objective.steps == 100
    rates = [objective.learning_rate(step) for step in range(100)]
    assert rates[:10] == pytest.approx([0.05 * (step + 1) for step in range(10)])
    assert rates[9:] == pytest.approx([0.25 * (1 + math.cos(math.pi * done / 90)) for done in range(91)])


class Watched(EpisodicTraining):
    """Keeps the learning rate that each step was taken with."""

    def optimiser(self) -> torch.optim.Optimizer:
        self.taken: list[float] = []
        self.used = super().optimiser()
        return self.used

    def loss(self, inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        self.taken.append(self.used.param_groups[0]["lr"])
        return super().loss(inputs)


def test_steps_are_taken_with_the_learning_rate_of_the_schedule(tmp_path: Path) -> None:
    settings = tiny_episodic(episodes=6, halve_every=2, validate_every=3)
    objective = Watched(tiny_model(), TRAIN, VALIDATION, settings)
    run(objective, tmp_path)
    assert objective.taken == [1e-3, 1e-3, 5e-4, 5e-4, 2.5e-4, 2.5e-4]
    assert [row["learning_rate"] for row in rows(tmp_path)] == [5e-4, 2.5e-4], "and that is what is written down"


@pytest.mark.parametrize("mixed", ["support", "all"])
def test_mixing_keeps_its_schedule_and_its_samples(mixed: Any) -> None:
    schedule = MixingSchedule(start=3, on=2, off=1)
    objective = episodic(shots=2, per_step=2, mixing=schedule, mixed=mixed, mixing_range=(0.6, 0.9))
    support, points = 6, 15
    blended = support if mixed == "support" else points
    for step in range(8):
        drawn = objective.draw(step)
        assert drawn["partner"].shape == drawn["weight"].shape == drawn["index"].shape == (2, points)
        for episode in range(2):
            partner, weight = drawn["partner"][episode], drawn["weight"][episode]
            assert bool((weight[blended:] == 1).all())
            if not schedule.active(2 * step + episode):
                assert bool((weight == 1).all())
                continue
            assert 0.6 <= float(weight[:blended].min()) <= float(weight[:blended].max()) <= 0.9
            assert int(partner[:blended].max()) < blended
            assert not bool((partner[:blended] == torch.arange(blended)).any())
    partners = torch.cat([objective.draw(step)["partner"][:, :blended].flatten() for step in range(40)])
    assert set(partners.tolist()) == set(range(blended)), "support with support alone, or all with all"


def test_the_loss_is_that_of_the_blended_images() -> None:
    objective = episodic(plain_model(), mixing=MixingSchedule(start=0, on=1, off=0))
    drawn = objective.draw(0)
    unmixed = drawn | {"weight": torch.ones_like(drawn["weight"])}
    without = {name: value for name, value in drawn.items() if name not in ("partner", "weight")}
    mixed_loss, plain_loss = objective.loss(drawn)[0], objective.loss(without)[0]
    torch.testing.assert_close(objective.loss(unmixed)[0], plain_loss)
    assert not torch.isclose(mixed_loss, plain_loss)


def test_the_rows_of_the_ablation_train_on_the_same_episodes_and_augmentations() -> None:
    objectives = {name: episodic(tiny_model(**options)) for name, options in VARIANTS.items()}
    for step in range(5):
        drawn = {name: objective.draw(step) for name, objective in objectives.items()}
        for inputs in drawn.values():
            assert torch.equal(inputs["index"], drawn["team"]["index"])
            assert torch.equal(inputs["augmentation"], drawn["team"]["augmentation"])
        assert "partner" not in drawn["baseline"]
        assert torch.equal(drawn["tim"]["partner"], drawn["team"]["partner"])
    assert not torch.equal(episodic(seed=1).draw(0)["index"], objectives["team"].draw(0)["index"])


def test_what_is_drawn_depends_on_the_step_and_not_on_what_came_before() -> None:
    images, validation = tiny_images(8, 8), tiny_images(4, 16, seed=1)
    for objective in (episodic(), Pretraining(tiny_model(), images, validation, tiny_pretraining(batch=16))):
        forwards = [objective.draw(step) for step in range(9)]
        backwards = [objective.draw(step) for step in reversed(range(9))][::-1]
        for first, second in zip(forwards, backwards, strict=True):
            assert all(torch.equal(first[name], second[name]) for name in first)


def test_an_epoch_of_pretraining_shows_every_image_once() -> None:
    settings = tiny_pretraining(batch=16)
    objective = Pretraining(tiny_model(), TRAIN, tiny_images(4, 16, seed=1), settings)
    orders = [torch.cat([objective.draw(4 * epoch + part)["index"] for part in range(4)]) for epoch in range(2)]
    assert [sorted(order.tolist()) for order in orders] == [list(range(64))] * 2
    assert not torch.equal(*orders)


def test_the_loss_of_a_step_is_the_mean_over_its_episodes() -> None:
    objective = episodic(plain_model(), per_step=3, mixing=MixingSchedule(start=0))
    drawn = objective.draw(0)
    together = objective.loss(drawn)
    per_image = drawn["augmentation"].reshape(3, -1, 7)
    alone = [
        objective.loss(
            {name: drawn[name][episode : episode + 1] for name in ("index", "partner", "weight")}
            | {"augmentation": per_image[episode]}
        )
        for episode in range(3)
    ]
    for both, parts in zip(together, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(both, torch.stack(parts).mean())


def test_the_gradient_reaches_the_network_and_a_learned_temperature_but_no_fixed_one(tmp_path: Path) -> None:
    for learned in (False, True):
        model = tiny_model(learn_temperature=learned)
        objective = episodic(model, episodes=3)
        start = model.method.log_temperature.detach().clone()
        run(objective, tmp_path / str(learned))
        assert torch.equal(model.method.log_temperature.detach(), start) is not learned


def test_average_weights_follow_exactly_without_decay_and_are_put_back() -> None:
    module = nn.BatchNorm1d(2)
    exact, slow = WeightAverage(module, 0.0), WeightAverage(module, 0.9)
    for step in range(3):
        with torch.no_grad():
            module.weight.fill_(float(step + 2))
            module.running_mean.fill_(float(step))
        for average in (exact, slow):
            average.prepare(step)
            average.update()
    assert exact.state()["weight"].tolist() == [4.0, 4.0]
    assert exact.state()["running_mean"].tolist() == [2.0, 2.0]
    value = 1.0
    for step in range(3):
        decay = min(0.9, (1 + step) / (10 + step))
        value = decay * value + (1 - decay) * (step + 2)
    assert slow.state()["weight"].tolist() == pytest.approx([value, value])
    with slow.applied():
        assert module.weight.tolist() == pytest.approx([value, value])
    assert module.weight.tolist() == [4.0, 4.0]


# --- the temperature's start ------------------------------------------------------------------------------------------


def initial_loss(objective: EpisodicTraining) -> float:
    objective.begin()
    objective.module.train()
    with torch.no_grad():
        return sum(float(objective.loss(objective.draw(step))[0]) for step in range(10)) / 10


@pytest.mark.parametrize("scale", [0.01, 30.0])
def test_a_learned_temperature_starts_where_the_loss_is_low(scale: float) -> None:
    def model(learned: bool) -> Model:
        made = plain_model(learn_temperature=learned)
        with torch.no_grad():
            made.network.layer.weight.mul_(scale)
            made.network.layer.bias.mul_(scale)
        return made

    noisy = tiny_images(8, 8, noise=150.0)
    fixed, learned = (initial_loss(episodic(model(learned), noisy)) for learned in (False, True))
    assert learned < 0.95 * fixed
    assert learned < math.log(3), "better than not knowing"


def test_a_learned_temperature_starts_well_for_an_untrained_network_with_batch_normalisation() -> None:
    fixed = initial_loss(episodic(tiny_model(learn_temperature=False)))
    assert initial_loss(episodic(tiny_model(learn_temperature=True))) < 1.1 * fixed


def test_a_run_that_goes_on_does_not_look_for_a_temperature_again(tmp_path: Path) -> None:
    begun = []

    class Counted(EpisodicTraining):
        def begin(self) -> None:
            begun.append(self)
            super().begin()

    def start(**limits: float) -> bool:
        model = tiny_model(learn_temperature=True)
        return train(Counted(model, TRAIN, VALIDATION, tiny_episodic()), tmp_path, show=False, **limits).complete

    assert not start(time_limit=0)
    assert start()
    assert start()
    assert len(begun) == 1


# --- seen-class prototypes --------------------------------------------------------------------------------------------


def test_seen_prototypes_of_a_step_are_those_of_the_other_classes() -> None:
    objective = episodic(per_step=2, seen_prototypes=True)
    for step in range(5):
        drawn = objective.draw(step)
        for episode in range(2):
            own = set(TRAIN.labels[drawn["index"][episode]].tolist())
            assert sorted(drawn["others"][episode].tolist()) == sorted(set(range(8)) - own)


def test_running_prototypes_follow_the_classes_of_the_step_alone() -> None:
    objective = episodic(seen_prototypes=True)
    assert objective.running is not None
    drawn = objective.draw(0)
    before = objective.running.prototypes.clone()
    features = embed(objective.model.network, TRAIN.images)
    means = torch.stack(list(by_class(features, TRAIN).values())).mean(1)
    torch.testing.assert_close(before, means, rtol=1e-4, atol=1e-5)
    objective.module.train()
    objective.loss(drawn)
    moved = (objective.running.prototypes != before).any(1).nonzero().flatten()
    assert set(moved.tolist()) == set(TRAIN.labels[drawn["index"].flatten()].tolist())


def test_a_checkpoint_holds_the_prototypes_of_all_training_classes_and_its_method_uses_them(tmp_path: Path) -> None:
    run(episodic(tiny_model(lam=0.5), seen_prototypes=True, per_step=2), tmp_path)
    model = load_model(tmp_path / "best.safetensors")
    features = by_class(embed(model.network, TRAIN.images), TRAIN)
    means = torch.stack([values.mean(0) for values in features.values()])
    assert model.seen_prototypes is not None
    torch.testing.assert_close(model.seen_prototypes, means, rtol=1e-3, atol=1e-4)
    assert isinstance(model.method, TEAM)
    assert model.method.settings.seen is not None
    assert torch.equal(model.method.settings.seen, model.seen_prototypes)


def test_seen_prototypes_need_a_class_outside_the_episode() -> None:
    with pytest.raises(ValueError, match="seen_prototypes needs training classes beside the 8 of an episode"):
        episodic(ways=8, seen_prototypes=True)


# --- what it leaves behind, and how it ends ---------------------------------------------------------------------------


def test_the_best_model_and_the_last_state_and_the_metrics_are_kept(tmp_path: Path) -> None:
    objective = episodic(episodes=25, average=0.5)
    outcome = run(objective, tmp_path)
    assert (outcome.step, outcome.validated, outcome.stopped) == (25, 25, "")
    assert {"best.safetensors", "last.safetensors", "metrics.jsonl"} <= {path.name for path in tmp_path.iterdir()}
    assert not list(tmp_path.glob(".*.tmp"))
    written = rows(tmp_path)
    assert [row["step"] for row in written] == [10, 20, 25]
    for row in written:
        assert set(row) == {"step", "loss", "accuracy", "validation", "best", "learning_rate"}
    assert outcome.best == max(row["validation"] for row in written) == written[-1]["best"]
    assert outcome.best_step == next(row["step"] for row in written if row["validation"] == outcome.best)
    model = load_model(tmp_path / "best.safetensors")
    about = model.info["training"]
    assert (about["validation_accuracy"], about["step"]) == (outcome.best, outcome.best_step)
    assert from_json(EpisodicSettings, about["settings"]) == objective.settings
    assert about["data"] == TRAIN.checksum
    again = evaluate_images(model.network, model.method, VALIDATION, ways=3, queries=3, episodes=10, seed=1, size=32)
    assert again.mean == pytest.approx(outcome.best), "the file is the model that was validated"


def test_what_is_validated_and_kept_is_the_average_of_the_weights(tmp_path: Path) -> None:
    run(episodic(episodes=5, average=0.9), tmp_path)
    best, last = (load_checkpoint(tmp_path / f"{name}.safetensors")[0] for name in ("best", "last"))
    name = "network.blocks.0.0.weight"
    assert torch.equal(best[name], last[f"average.{name}"])
    assert not torch.equal(best[name], last[f"module.{name}"]), "training itself goes on with the weights as they are"


def test_a_row_is_the_mean_since_the_one_before(tmp_path: Path) -> None:
    run(episodic(episodes=6, validate_every=1, learning_rate=1e-12), tmp_path / "each")
    run(episodic(episodes=6, validate_every=3, learning_rate=1e-12), tmp_path / "third")
    each, third = rows(tmp_path / "each"), rows(tmp_path / "third")
    for name in ("loss", "accuracy"):
        means = [sum(row[name] for row in each[start : start + 3]) / 3 for start in (0, 3)]
        assert [row[name] for row in third] == pytest.approx(means, rel=1e-4)


def test_training_ends_when_patience_does(tmp_path: Path) -> None:
    frozen = {"learning_rate": 1e-12, "average": 0.0, "statistics": "episode", "validate_every": 4, "per_step": 2}
    outcome = run(episodic(episodes=1000, patience=12, **frozen), tmp_path)
    assert (outcome.stopped, outcome.best_step, outcome.step) == ("patience", 2, 8)
    before = (tmp_path / "last.safetensors").read_bytes()
    again = run(episodic(episodes=1000, patience=12, **frozen), tmp_path)
    assert (again.stopped, again.step) == ("patience", 8), "and stays ended"
    assert (tmp_path / "last.safetensors").read_bytes() == before


def test_a_run_ended_by_its_time_limit_leaves_a_validated_model(tmp_path: Path) -> None:
    outcome = run(episodic(episodes=100_000), tmp_path, time_limit=0.0)
    assert outcome.step == outcome.validated == outcome.best_step == 1
    assert load_model(tmp_path / "best.safetensors").info["training"]["validation_accuracy"] == outcome.best
    assert [row["step"] for row in rows(tmp_path)] == [1]


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first = run(episodic(episodes=5), tmp_path)
    contents = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    again = run(episodic(episodes=5), tmp_path)
    assert again == first
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == contents


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda: episodic(episodes=6), "settings"),
        (lambda: episodic(train=tiny_images(8, 8, seed=7), episodes=5), "data"),
        (lambda: episodic(tiny_model(k=2), episodes=5), "model"),
        (lambda: episodic(tiny_model(filters=5), episodes=5), "model"),
        (
            lambda: Pretraining(tiny_model(), TRAIN, tiny_images(4, 16, seed=1), tiny_pretraining()),
            "phase, settings",
        ),
    ],
)
def test_the_folder_of_another_run_is_refused_and_left_alone(tmp_path: Path, other: Any, what: str) -> None:
    run(episodic(episodes=5), tmp_path)
    contents = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    with pytest.raises(CheckpointError, match=rf"last\.safetensors belongs to another run \({what} differ\)"):
        run(other(), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == contents


def test_a_run_can_be_started_over(tmp_path: Path) -> None:
    run(episodic(episodes=5), tmp_path)
    outcome = run(episodic(episodes=6, validate_every=3), tmp_path, resume=False)
    assert outcome.step == 6
    assert [row["step"] for row in rows(tmp_path)] == [3, 6], "no row of the old run is left"


@pytest.mark.parametrize("checkpoint_seconds", [0.0, 1e9])
def test_a_loss_that_explodes_ends_the_run_with_advice_and_keeps_a_sound_state(
    tmp_path: Path, checkpoint_seconds: float
) -> None:
    with pytest.raises(FloatingPointError, match=r"the loss became .* before step .* Use a lower learning rate"):
        run(episodic(learning_rate=1e30), tmp_path, checkpoint_seconds=checkpoint_seconds)
    if (last := tmp_path / "last.safetensors").exists():
        assert all(bool(torch.isfinite(tensor).all()) for tensor in load_checkpoint(last)[0].values())
    assert not (tmp_path / "best.safetensors").exists()


def test_too_few_images_are_noticed_before_training() -> None:
    few = tiny_images(4, 5, seed=1)
    with pytest.raises(ValueError, match="class 0 has 5 images, but 1 shots and 5 queries"):
        EpisodicTraining(tiny_model(), TRAIN, few, tiny_episodic(validation_queries=5))
    with pytest.raises(ValueError, match="class 0 has 5 images, but 1 shots and 9 queries"):
        EpisodicTraining(tiny_model(), few, TRAIN, tiny_episodic(queries=9))
    with pytest.raises(ValueError, match="class 0 has 5 images, but 1 shots and 15 queries"):
        Pretraining(tiny_model(), TRAIN, few, tiny_pretraining())


def test_pretraining_keeps_the_network_and_throws_the_classifier_away(tmp_path: Path) -> None:
    validation = tiny_images(4, 16, seed=1)
    objective = Pretraining(tiny_model(), TRAIN, validation, tiny_pretraining(epochs=3, validations=2))
    outcome = run(objective, tmp_path)
    assert outcome.step == 6
    tensors, _ = load_checkpoint(tmp_path / "best.safetensors")
    assert {name.split(".")[0] for name in tensors} == {"network", "method"}
    about = load_model(tmp_path / "best.safetensors").info["pretraining"]
    assert from_json(PretrainSettings, about["settings"]) == objective.settings
    assert about["validation_accuracy"] == outcome.best


def test_a_batch_larger_than_the_data_is_all_of_it() -> None:
    objective = Pretraining(tiny_model(), TRAIN, tiny_images(4, 16, seed=1), replace(tiny_pretraining(), batch=1000))
    assert (objective.per_step, objective.steps) == (64, 5)


def test_training_does_not_touch_the_global_random_numbers(tmp_path: Path) -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    run(episodic(tiny_model(learn_temperature=True), episodes=3), tmp_path)
    assert torch.equal(torch.rand(3), expected)

"""Claims about semi-supervised learning: what is unlabelled stays so, from the partition to the table of results."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
import torch
from conftest import tiny_episodic, tiny_images, tiny_model, tiny_pretraining
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from team import create_method, evaluate, list_methods
from team.data.images import ImageSet
from team.data.sampler import EpisodeSampler
from team.episode import Episode
from team.evaluation import evaluate_images
from team.recipes import RECIPES, reproduce, run, semi
from team.recipes import __main__ as recipes_main
from team.recipes.__main__ import main as train_cells
from team.results import read_results
from team.seeding import generator
from team.training.episodic import EpisodicTraining
from team.training.loop import train
from team.training.pretrain import Pretraining

SEMI = ("soft-kmeans", "soft-kmeans-cluster", "masked-soft-kmeans", "label-propagation", "tpn", "team")
PARTITIONED = tiny_images(8, 20).partitioned(0.4, seed=3)
VALIDATION = tiny_images(4, 12, seed=1)


def episode(unlabelled: int = 6) -> tuple[Tensor, ...]:
    support, labels, samples = map(torch.from_numpy, reference.random_episode(0, queries=7 + unlabelled, batch=2))
    return support, labels, samples[:, :7], samples[:, 7:]


# --- methods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEMI)
def test_the_unlabelled_set_changes_answers_and_its_order_does_not(name: str) -> None:
    method = create_method(name)
    support, labels, query, unlabelled = episode()
    answers = method(support, labels, query, unlabelled)
    assert answers.shape == (2, 7, 3)
    torch.testing.assert_close(answers.exp().sum(-1), torch.ones(2, 7, dtype=torch.float64))
    torch.testing.assert_close(method(support, labels, query, unlabelled.flip(1)), answers)
    assert not torch.allclose(method(support, labels, query), answers)
    single = method(support[0], labels[0], query[0], unlabelled[0])
    torch.testing.assert_close(single, answers[0])


@pytest.mark.parametrize("bidirectional", [True, False])
def test_team_semi_refines_prototypes_by_its_similarity_under_the_metric_of_all_samples(bidirectional: bool) -> None:
    support, labels, query, unlabelled = (t[0].numpy() for t in episode())
    metric = reference.solve(support, labels, np.concatenate([query, unlabelled]), k=5).metric

    def answers(samples: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
        distances = reference.distances(metric, samples, prototypes)
        similarity = reference.bidirectional_similarity(distances) if bidirectional else np.exp(-distances)
        return np.asarray(similarity / similarity.sum(1, keepdims=True))

    parts = answers(unlabelled, reference.prototypes(support, labels))
    refined = [
        (support[labels == c].sum(0) + parts[:, c] @ unlabelled) / ((labels == c).sum() + parts[:, c].sum())
        for c in range(3)
    ]
    found = create_method("team", k=5, bidirectional=bidirectional)(*(t[0] for t in episode())).exp().detach().numpy()
    np.testing.assert_allclose(found, answers(query, np.stack(refined)), rtol=1e-5)


@pytest.mark.parametrize("name", ["label-propagation", "tpn"])
def test_unlabelled_samples_are_nodes_of_the_graph_like_queries_nobody_asks_about(name: str) -> None:
    method = create_method(name, k=4)
    support, labels, query, unlabelled = episode()
    all_asked = method(support, labels, torch.cat([query, unlabelled], 1))
    torch.testing.assert_close(method(support, labels, query, unlabelled), all_asked[:, :7])


@pytest.mark.parametrize("name", sorted(set(list_methods()) - set(SEMI)))
def test_methods_without_a_use_for_an_unlabelled_set_say_so(name: str) -> None:
    method = create_method(name)
    with pytest.raises(ValueError, match="has no use for an unlabelled set; leave it out, or use soft-kmeans"):
        method(*episode())
    features = {c: torch.randn(20, 4) for c in range(5)}
    with pytest.raises(ValueError, match="has no use for an unlabelled set"):
        evaluate(method, features, episodes=1, unlabelled=2)


def test_team_without_its_metric_has_no_use_for_one_either() -> None:
    with pytest.raises(ValueError, match="TEAM, as it is set up, has no use for an unlabelled set"):
        create_method("team", metric=False)(*episode())


@pytest.mark.parametrize("name", SEMI)
def test_answers_never_wait_for_the_device(name: str) -> None:
    with FakeTensorMode():
        made = Episode(
            torch.randn(2, 5, 8, requires_grad=True),
            torch.zeros(2, 5, dtype=torch.int64),
            torch.randn(2, 9, 8),
            ways=5,
            unlabelled=torch.randn(2, 10, 8),
        )
        create_method(name, learn_temperature=True).log_probabilities(made).sum().backward()


# --- partitions and episodes ------------------------------------------------------------------------------------------


def test_a_partition_labels_its_share_of_every_class_and_depends_on_the_seed_alone() -> None:
    images = tiny_images(5, 30)
    shuffled = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    images = replace(images, images=images.images[shuffled], labels=images.labels[shuffled])
    masks = [images.partitioned(0.4, seed).labelled for seed in (0, 0, 1)]
    assert all(isinstance(mask, Tensor) for mask in masks)
    first, again, other = (mask for mask in masks if mask is not None)
    assert torch.bincount(images.labels[first]).tolist() == [12] * 5
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert images.partitioned(0.4, 0).checksum != images.partitioned(0.4, 1).checksum != images.checksum
    chosen = torch.stack([images.partitioned(0.4, seed).labelled for seed in range(300)]).double().mean(0)  # type: ignore[arg-type]
    assert chosen.min() > 0.25
    assert chosen.max() < 0.55
    with pytest.raises(ValueError, match="must lie between 0 and 1, not 1"):
        images.partitioned(1.0, 0)


def test_support_and_query_are_labelled_and_the_unlabelled_are_others_of_the_same_classes() -> None:
    assert PARTITIONED.labelled is not None
    sampler = EpisodeSampler(
        PARTITIONED.labels, ways=3, shots=2, queries=4, unlabelled=5, labelled=PARTITIONED.labelled
    )
    drawn = sampler.sample(200, generator(0, "semi"))
    assert PARTITIONED.labelled[drawn.support].all()
    assert PARTITIONED.labelled[drawn.query].all()
    assert not PARTITIONED.labelled[drawn.unlabelled].any()
    assert torch.equal(PARTITIONED.labels[drawn.unlabelled], drawn.classes.repeat_interleave(5, 1))
    assert drawn.points.shape == (200, 3 * 11)
    assert all(len(set(points)) == 33 for points in drawn.points.tolist()), "no image twice in an episode"
    assert len(drawn.unlabelled.unique()) == int((~PARTITIONED.labelled).sum()), "every image has its turn"


@pytest.mark.parametrize("labelled", [None, PARTITIONED.labelled])
def test_support_and_query_are_the_same_whatever_the_number_of_unlabelled(labelled: Tensor | None) -> None:
    drawn = [
        EpisodeSampler(PARTITIONED.labels, ways=3, shots=1, queries=4, unlabelled=more, labelled=labelled).sample(
            50, generator(1, "semi")
        )
        for more in (0, 7)
    ]
    assert torch.equal(drawn[0].support, drawn[1].support)
    assert torch.equal(drawn[0].query, drawn[1].query)
    assert drawn[0].unlabelled.shape == (50, 0)


def test_without_a_partition_the_unlabelled_are_any_that_are_neither_support_nor_query() -> None:
    labels = torch.arange(4).repeat(9)
    drawn = EpisodeSampler(labels, ways=2, shots=1, queries=3, unlabelled=5).sample(3000, generator(2, "semi"))
    assert torch.equal(labels[drawn.unlabelled], drawn.classes.repeat_interleave(5, 1))
    assert all(sorted(points) == sorted(set(points)) for points in drawn.points.tolist()), "all 9 images, each once"
    often = torch.bincount(drawn.unlabelled.flatten())
    assert often.min() > 0.85 * often.max(), "no image is preferred"


def test_evaluation_with_unlabelled_samples_helps_where_they_tell_classes_apart() -> None:
    random = torch.Generator().manual_seed(0)
    features = {
        c: 2.0 * torch.randn(16, generator=random) + 2 * torch.randn(60, 16, generator=random) for c in range(8)
    }
    shared: dict[str, Any] = {"episodes": 200, "queries": 1}
    method = create_method("soft-kmeans", temperature=16.0)
    assert evaluate(method, features, unlabelled=30, **shared).mean > evaluate(method, features, **shared).mean + 3


@pytest.mark.parametrize("statistics", ["running", "episode"])
def test_images_are_evaluated_with_their_unlabelled_set(statistics: Any) -> None:
    seen: list[Episode] = []
    model = tiny_model("soft-kmeans")
    answer = model.method.log_probabilities
    model.method.log_probabilities = lambda made: (seen.append(made), answer(made))[1]  # type: ignore[assignment, func-returns-value]
    shared: dict[str, Any] = {"ways": 3, "queries": 2, "episodes": 5, "statistics": statistics, "size": 32}
    evaluate_images(model.network, model.method, VALIDATION, unlabelled=4, **shared)
    assert all(made.unlabelled is not None and made.unlabelled.shape[1] == 12 for made in seen)


# --- training ---------------------------------------------------------------------------------------------------------


def test_pretraining_sees_labelled_images_only() -> None:
    objective = Pretraining(tiny_model(), PARTITIONED, tiny_images(4, 20, seed=1), tiny_pretraining())
    assert len(objective.train) == 8 * 8
    known = {image.numpy().tobytes() for image in PARTITIONED.images[PARTITIONED.labelled]}
    assert all(image.numpy().tobytes() in known for image in objective.train.images)
    assert objective.identity()["data"] == PARTITIONED.checksum


@pytest.mark.parametrize("name", SEMI)
def test_training_hands_the_method_its_unlabelled_set_and_answers_for_queries_only(name: str, tmp_path: Path) -> None:
    model = tiny_model(name, learn_temperature=True)
    settings = tiny_episodic(per_step=2, unlabelled=4, validation_unlabelled=5, queries=2)
    objective = EpisodicTraining(model, PARTITIONED, VALIDATION, settings)
    drawn = objective.draw(0)
    assert drawn["index"].shape == (2, 3 * (1 + 2 + 4))
    assert PARTITIONED.labelled is not None
    assert PARTITIONED.labelled[drawn["index"]].sum(1).tolist() == [9, 9]
    objective.module.train()
    loss, accuracy = objective.loss(drawn)
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(bool(p.grad.isfinite().all()) for p in objective.module.parameters() if p.grad is not None)
    assert 0 <= float(accuracy) <= 1
    outcome = train(objective, tmp_path, show=False)
    assert outcome.complete
    assert outcome.best > 33


def test_running_prototypes_never_see_the_label_of_an_unlabelled_image() -> None:
    settings = tiny_episodic(unlabelled=4, queries=2, seen_prototypes=True)
    objective = EpisodicTraining(tiny_model(), PARTITIONED, VALIDATION, settings)
    counted: list[int] = []
    assert objective.running is not None
    objective.running.update = lambda features, labels: counted.append(len(labels))  # type: ignore[assignment, method-assign]
    objective.module.train()
    objective.loss(objective.draw(0))
    assert counted == [3 * (1 + 2)]


def test_a_method_without_a_use_for_unlabelled_images_is_turned_away_before_training() -> None:
    for changes in ({"unlabelled": 1}, {"validation_unlabelled": 1}):
        with pytest.raises(ValueError, match="has no use for an unlabelled set"):
            EpisodicTraining(tiny_model("protonet"), PARTITIONED, VALIDATION, tiny_episodic(**changes))


def test_runs_from_before_there_were_unlabelled_sets_have_the_same_identity() -> None:
    identity = EpisodicTraining(tiny_model(), PARTITIONED, VALIDATION, tiny_episodic(queries=2)).identity()
    assert "unlabelled" not in json.dumps(identity["settings"])


# --- the table --------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The recipe on a small data set with three partitions; gives the list of parts that were read, in order."""
    parts: list[str] = []

    def load(name: str, part: str, **_: object) -> ImageSet:
        parts.append(part)
        return tiny_images(6, 50, size=32, seed=len(part))

    recipe = semi.MINIIMAGENET
    assert recipe.pretrain is not None
    made = replace(
        recipe,
        size=32,
        partitions=3,
        choice_episodes=5,
        pretrain=replace(recipe.pretrain, epochs=1, batch=48, validations=1, validation_episodes=5),
        episodic=replace(recipe.episodic, episodes=4, per_step=2, validate_every=4, validation_episodes=5),
    )
    monkeypatch.setattr(run, "load", load)
    monkeypatch.setitem(RECIPES, recipe.name, made)
    return parts


def test_a_cell_is_the_mean_over_partitions_however_they_were_run(
    small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes_main, "TEST_EPISODES", 60)
    cell, results = "miniimagenet-conv4-semi-1shot-team", tmp_path / "results"
    words = [cell, "--runs", str(tmp_path / "runs"), "--results", str(results), "--device", "cpu"]
    train_cells([*words, "--partitions", "2", "0"])
    row = next(row for row in reproduce.table_rows("semi", read_results(results)) if row.cell == cell)
    assert row.note == "(2 of 3 partitions)"
    assert small == ["train", "val", "test"], "every part is read once"
    monkeypatch.setattr(reproduce, "TEST_EPISODES", 60)
    reproduce.reproduce("semi", results=results, runs=tmp_path / "runs", only="1shot-team")
    facts = read_results(results)[cell].facts
    assert facts["averaged_over"] == {"models": 3, "of": 3, "what": "partitions"}
    assert [entry["partition"] for entry in facts["partitions"]] == [0, 1, 2]
    assert facts["episodes"] == 60
    assert facts["mean"] == pytest.approx(sum(entry["mean"] for entry in facts["partitions"]) / 3, abs=1e-3)
    assert len({entry["data"]["train"] for entry in facts["partitions"]}) == 3
    accuracies = json.loads(gzip.decompress((results / f"{cell}.accuracies.json.gz").read_bytes()))
    assert len(accuracies) == 60
    row = next(row for row in reproduce.table_rows("semi", read_results(results)) if row.cell == cell)
    assert (row.ours, row.paper, row.note) == (facts["mean"], 54.81, "")


def test_methods_of_a_partition_share_its_pretraining(small: list[str], tmp_path: Path) -> None:
    cells = [f"miniimagenet-conv4-semi-1shot-{variant}" for variant in semi.MINIIMAGENET.variants]
    train_cells([*cells, "--runs", str(tmp_path), "--partitions", "1", "--device", "cpu"])
    assert {path.name for path in (tmp_path / "partition-1").iterdir()} == {
        "miniimagenet-conv4-semi-pretrained",
        *cells,
    }


def test_a_job_that_runs_out_of_time_goes_on_and_gives_no_result_before(
    small: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["miniimagenet-conv4-semi-1shot-soft-kmeans", "--runs", str(tmp_path / "runs"), "--partitions", "0"]
    words += ["--results", str(tmp_path / "results"), "--device", "cpu"]
    said = []
    for _ in range(20):
        train_cells([*words, "--seconds", "0.001"])
        said.append(capsys.readouterr().out.splitlines()[-1])
        if "test" in said[-1]:
            break
        assert "out of time" in said[-1]
        assert not list(tmp_path.glob("results/**/*.json"))
    assert len(said) >= 3
    assert "over all partitions so far" in said[-1]


def test_a_partition_there_is_not_is_named(small: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="has the partitions 0 to 2, not 7"):
        train_cells(["miniimagenet-conv4-semi-1shot-team", "--partitions", "7", "--device", "cpu"])

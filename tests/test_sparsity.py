"""Claims about the paper's sparsity analysis: what is scaled, sorted and counted is what the figure says it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch import Tensor

from team.evaluation.sparsity import Sparsity, analyse_sparsity, neighbour_accuracy, plot_sparsity


@pytest.fixture(scope="module")
def task() -> tuple[Tensor, Tensor]:
    """A 5-way task of 5 shots and 15 queries in 256 dimensions, its classes hidden in noise."""
    random = torch.Generator().manual_seed(0)
    labels = torch.cat([torch.arange(5).repeat_interleave(5), torch.arange(5).repeat_interleave(15)])
    centres = 3 * torch.randn(5, 256, generator=random) / 4
    return centres[labels] + 3 * torch.randn(100, 256, generator=random), labels


@pytest.fixture(scope="module")
def sparsity(task: tuple[Tensor, Tensor]) -> Sparsity:
    return analyse_sparsity(*task)


def test_elements_are_scaled_and_split_without_loss(sparsity: Sparsity) -> None:
    assert float(sparsity.scaled.min()) == 0
    assert float(sparsity.scaled.max()) == 1
    assert sparsity.diagonal.shape == (256,)
    assert sparsity.off_diagonal.shape == (256 * 255,)
    assert torch.equal(sparsity.diagonal, sparsity.scaled.diagonal().sort(descending=True).values)
    both = torch.cat([sparsity.diagonal, sparsity.off_diagonal]).sort().values
    assert torch.equal(both, sparsity.scaled.flatten().sort().values)
    matrix = sparsity.oracle.matrix
    unscaled = (sparsity.scaled - sparsity.zero) * (matrix.max() - matrix.min())
    assert torch.allclose(unscaled, matrix, atol=1e-12)


def test_oracle_tells_all_samples_apart_and_its_diagonal_stands_out(sparsity: Sparsity) -> None:
    assert sparsity.euclidean_accuracy < 90
    assert sparsity.oracle_accuracy == 100
    assert sparsity.gap == float(sparsity.diagonal.min() - sparsity.off_diagonal.max())
    assert sparsity.gap > 0.1


def test_without_the_identity_outside_the_span_the_diagonal_does_not_stand_out(sparsity: Sparsity) -> None:
    assert sparsity.oracle.basis.shape == (256, 99)
    assert sparsity.learned_gap < 0


def test_with_more_samples_than_dimensions_all_of_the_metric_is_learned(task: tuple[Tensor, Tensor]) -> None:
    features, labels = task
    analysis = analyse_sparsity(features[:, :8], labels)
    assert analysis.oracle.basis.shape == (8, 8)
    assert analysis.learned_gap == pytest.approx(analysis.gap, abs=1e-9)


def test_three_neighbours_vote_and_the_nearest_breaks_ties() -> None:
    line = torch.tensor([[0.0], [1.0], [2.1], [3.3], [10.0], [10.5], [11.1]])
    labels = torch.tensor([0, 0, 1, 2, 7, 7, 7])
    # The first two each see three labels, and the nearest decides, rightly; the next two have no other of their label.
    assert neighbour_accuracy(line, labels) == pytest.approx(100 * 5 / 7)
    shuffled = torch.tensor([0, 1, 0, 1, 0, 1, 0])
    assert neighbour_accuracy(line, shuffled, torch.eye(1).double()) == neighbour_accuracy(line, shuffled)


def test_summary_is_json_of_finite_numbers(sparsity: Sparsity) -> None:
    summary = json.loads(json.dumps(sparsity.summary(), allow_nan=False))
    assert summary["gap"] == sparsity.gap
    assert summary["dimension"] == 256
    assert summary["span"] == 99
    assert summary["converged"] is True


def test_figure_is_a_picture_and_shows_any_metric(sparsity: Sparsity, tmp_path: Path) -> None:
    flat = replace(sparsity.oracle, matrix=torch.zeros(256, 256, dtype=torch.float64))
    for name, analysis in (("usual.png", sparsity), ("flat.png", replace(sparsity, oracle=flat))):
        plot_sparsity(analysis, tmp_path / name)
        with Image.open(tmp_path / name) as picture:
            assert picture.format == "PNG"
            assert picture.width > picture.height > 400
            assert len(picture.convert("RGB").getcolors(1 << 20) or []) > 50


def test_one_dimension_is_refused() -> None:
    with pytest.raises(ValueError, match="no element off the diagonal"):
        analyse_sparsity(torch.arange(6.0)[:, None], torch.tensor([0, 0, 0, 1, 1, 1]))

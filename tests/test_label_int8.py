"""Claims about the default embedder in bytes: near the one in floats, the same everywhere, never mixed with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from team.labelling import embed_folder as embedding
from team.labelling import embedders
from team.labelling.demo import draw_example
from team.labelling.embed_folder import embed_folder
from team.labelling.embedders import Embedder, efficientnet_lite0, find_embedder, run_torch
from team.labelling.images import decode
from team.labelling.int8 import Grid, Int8Conv, Int8Network, Spread
from team.labelling.int8_onnx import bytes_are_exact
from team.labelling.runtime import fast


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("drawn")
    draw_example(place)
    for path in sorted((place / "images").iterdir())[12:]:
        path.unlink()
    return place / "images"


@pytest.fixture(scope="module")
def pixels(folder: Path) -> NDArray[np.uint8]:
    return np.stack([decode(path.read_bytes(), 224) for path in sorted(folder.iterdir())])


def cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return (first * second).sum(1) / lengths


def test_features_in_bytes_are_near_those_in_floats(pixels: NDArray[np.uint8]) -> None:
    found, exact = (run_torch(efficientnet_lite0(precision), pixels) for precision in ("int8", "float32"))
    assert cosines(found, exact).mean() > 0.99
    found, exact = found - exact.mean(0), exact - exact.mean(0)
    assert cosines(found, exact).mean() > 0.97  # also of what tells pictures apart


def test_rounding_weights_moves_no_mean(pixels: NDArray[np.uint8]) -> None:
    """Bias correction: without it, features in bytes are several times as far from those in floats."""
    exact, embedder = run_torch(efficientnet_lite0("float32"), pixels), efficientnet_lite0("int8")
    corrected = 1 - cosines(run_torch(embedder, pixels), exact).mean()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Spread, "after_relu6", lambda spread: Spread(torch.zeros_like(spread.mean), spread.variance))
        without = 1 - cosines(run_torch(efficientnet_lite0("int8"), pixels), exact).mean()
    assert corrected < without / 2


def test_the_mean_after_relu6_is_that_of_a_sample() -> None:
    mean, deviation = torch.tensor([-3.0, 0.0, 2.0, 7.0]), torch.tensor([1.0, 2.0, 4.0, 1.5])
    sample = mean + deviation * torch.randn(400_000, 4, generator=torch.Generator().manual_seed(0))
    found = Spread(mean, deviation.square()).after_relu6().mean
    torch.testing.assert_close(found, sample.clamp(0, 6).mean(0), atol=0.01, rtol=0)


def test_zero_is_a_byte_of_every_grid_and_a_range_is_covered() -> None:
    for low, high in [(-3.0, 5.0), (1.0, 6.0), (-48.1, -2.0)]:
        grid = Grid.over(low, high)
        assert 0 <= grid.zero <= 255
        assert grid.scale * (255 - grid.zero) >= max(high, 0) - grid.scale
        assert grid.scale * grid.zero >= -min(low, 0) - grid.scale


def test_a_dead_channel_keeps_its_bias() -> None:
    conv, norm = nn.Conv2d(3, 2, 1, bias=False), nn.BatchNorm2d(2).eval()
    conv.static_padding = nn.Identity()
    with torch.no_grad():
        conv.weight[1] = 0
        norm.bias.copy_(torch.tensor([0.5, 3.0]))
    layer = Int8Conv(conv, norm, Spread(torch.zeros(3), torch.ones(3)), Grid(1 / 128, 127), relu6=True)
    answer = (layer(torch.full((1, 3, 4, 4), 200.0)) - layer.outgoing.zero) * layer.outgoing.scale
    torch.testing.assert_close(answer[0, 1], torch.full((4, 4), 3.0), atol=0.02, rtol=0)


def test_bytes_through_onnx_are_those_of_torch_to_the_last(pixels: NDArray[np.uint8]) -> None:
    embedder = efficientnet_lite0("int8")
    np.testing.assert_allclose(fast(embedder, 1)(pixels), run_torch(embedder, pixels), atol=1e-5)


def test_bytes_are_taken_only_where_they_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(efficientnet_lite0().network, Int8Network) == bytes_are_exact()
    monkeypatch.setattr(embedders, "bytes_are_exact", lambda: False)
    assert not isinstance(efficientnet_lite0().network, Int8Network)
    assert not isinstance(find_embedder("efficientnet-lite0").network, Int8Network)


def test_features_in_bytes_and_in_floats_are_kept_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("efficientnet-lite0", "efficientnet-lite0-float32")
    first, second = (embed_folder(folder, embedder=name).features for name in names)
    assert np.abs(first - second).max() > 1e-3
    keys = [find_embedder(name).key for name in names]
    monkeypatch.setattr(embedders, "DECODING", "nearest pixel")
    assert len({*keys, *(find_embedder(name).key for name in names)}) == 4


def test_features_do_not_depend_on_the_rest_of_the_folder(folder: Path, tmp_path: Path) -> None:
    whole = embed_folder(folder)
    alone = tmp_path / "alone"
    alone.mkdir()
    name = whole.paths[5]
    (alone / name).write_bytes((folder / name).read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEAM_CACHE", str(tmp_path / "another"))
        np.testing.assert_array_equal(embed_folder(alone).features[0], whole.features[5])


def test_a_network_runs_once_at_a_time_in_torch_and_answers_come_in_order(folder: Path) -> None:
    class Slow(nn.Module):
        dim, inside = 3, 0

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            Slow.inside += 1
            assert Slow.inside == 1
            answer = images.mean((2, 3)) + sum(float(images.std()) * 0 for _ in range(50))
            Slow.inside -= 1
            return answer

    embedder = Embedder(Slow(), 16, name="slow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedding, "_BATCH", 1)
        found = embed_folder(folder, embedder=embedder)
    pixels = np.stack([decode((folder / path).read_bytes(), 16) for path in found.paths])
    np.testing.assert_allclose(found.features, run_torch(embedder, pixels), atol=1e-4)


def test_onnx_runtime_leaves_no_identifier_and_has_nothing_to_send(tmp_path: Path) -> None:
    keep = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")  # not CI, which silences it by itself
    surroundings = {name: os.environ[name] for name in keep if name in os.environ} | {"HOME": str(tmp_path)}
    code = "from team.labelling.int8_onnx import bytes_are_exact; bytes_are_exact()"
    subprocess.run([sys.executable, "-c", code], env=surroundings, check=True)
    assert not [path for path in tmp_path.rglob("*") if "onnxruntime" in path.name or path.name == "Microsoft"]

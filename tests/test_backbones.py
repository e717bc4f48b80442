"""Claims about the backbones: the paper's widths, any sensible input size, and room for a network of one's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from team import create_backbone, list_backbones
from team.backbones import INPUT_SIZE, feature_dim
from team.backbones.fold import folded
from team.backbones.resnet18 import generalised_mean


@pytest.mark.parametrize(
    ("name", "options", "size", "dim"),
    [
        ("conv4", {}, 84, 256),
        ("conv4", {}, 32, 256),
        ("conv4", {"filters": 8}, 84, 32),
        ("resnet18", {}, 224, 512),
        ("resnet18", {}, 84, 512),
        ("resnet18", {"stem": "small"}, 84, 512),
        ("resnet18", {"pool": 3}, 64, 512),
        ("resnet18", {"blocks": 3, "pool": 2}, 64, 1280),
    ],
)
def test_a_network_gives_the_features_it_promises(name: str, options: dict[str, Any], size: int, dim: int) -> None:
    network = create_backbone(name, **options).eval()
    with torch.no_grad():
        features = network(torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0)))
    assert features.shape == (2, dim)
    assert feature_dim(network) == network.dim == dim
    assert bool(torch.isfinite(features).all())


def test_every_network_has_a_name_and_the_papers_input_size() -> None:
    assert {"conv4", "resnet18"} <= set(list_backbones())
    assert (INPUT_SIZE["conv4"], INPUT_SIZE["resnet18"]) == (84, 224)


@pytest.mark.parametrize("name", ["conv4", "resnet18"])
def test_every_parameter_receives_a_gradient(name: str) -> None:
    network = create_backbone(name)
    network(torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))).square().sum().backward()
    assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in network.parameters())


class Own(nn.Module):
    """A module such as a user brings: no ``dim``, and batch normalisation that must not see the probe."""

    def __init__(self, pooled: bool) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Conv2d(3, 7, 3), nn.BatchNorm2d(7))
        self.pooled = pooled

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layer(images)
        return features.mean((-2, -1)) if self.pooled else features


def test_a_network_of_ones_own_is_measured_and_left_as_it_was() -> None:
    network = Own(pooled=True).double()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert feature_dim(network, size=16) == 7
    assert network.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert feature_dim(nn.Sequential(nn.Flatten()), size=4) == 48, "a module without parameters"


def test_a_network_that_gives_a_feature_map_is_turned_away() -> None:
    with pytest.raises(
        ValueError, match=r"images \[n, 3, H, W\] into features \[n, d\]; this one gives \[1, 7, 14, 14\]"
    ):
        feature_dim(Own(pooled=False), size=16)


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("conv5", {}, ValueError, "no backbone is called 'conv5'; there are conv4, resnet18"),
        ("conv4", {"width": 3}, TypeError, "conv4 has no option width; it has filters"),
        ("resnet18", {"blocks": 9}, ValueError, "blocks must be at most 8, as many as there are, not 9"),
        ("resnet18", {"blocks": 0}, ValueError, "blocks must be a whole number, 1 or more, not 0"),
        ("resnet18", {"pool": 0.5}, ValueError, "pool must be at least 1 and finite, not 0.5"),
        ("resnet18", {"stem": "none"}, ValueError, "stem must be 'large' or 'small', not 'none'"),
        ("resnet18", {"width": 3}, TypeError, "resnet18 has no option width; it has blocks, mirror, pool, stem, zoom"),
    ],
)
def test_unknown_names_and_options_are_turned_away(
    name: str, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        create_backbone(name, **options)


@pytest.mark.parametrize("name", ["conv4", "resnet18"])
def test_a_folded_network_gives_the_same_features_without_normalising(name: str) -> None:
    network = create_backbone(name, mirror=True)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.5, 2.0)
            nn.init.normal_(module.bias)
            nn.init.normal_(module.running_mean)
            nn.init.uniform_(module.running_var, 0.5, 2.0)
    before = {key: value.clone() for key, value in network.state_dict().items()}
    images = torch.randn(3, 3, 40, 40)
    plain = folded(network)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in plain.modules())
    network.eval()
    torch.testing.assert_close(plain(images), network(images), rtol=1e-4, atol=1e-4)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_what_cannot_be_folded_is_left_alone() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1), nn.Flatten())
    images = torch.randn(2, 3, 8, 8)
    assert isinstance(folded(network)[2], nn.BatchNorm2d)
    assert torch.equal(folded(network)(images), network.eval()(images))


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, 7.5])
def test_a_generalised_mean_is_its_formula_and_has_its_slope(order: float) -> None:
    places = torch.rand(3, 4, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 9
    places.requires_grad_()
    expected = (places**order).mean((-2, -1)) ** (1 / order)
    mean = generalised_mean(places, order)
    torch.testing.assert_close(mean, expected, rtol=1e-5, atol=1e-6)
    slopes = [torch.autograd.grad(value.square().sum(), places)[0] for value in (mean, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1.0, 1e4])
def test_a_generalised_mean_of_any_scale_is_finite_and_so_is_its_slope(dtype: torch.dtype, scale: float) -> None:
    places = (torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * scale).to(dtype).requires_grad_()
    mean = generalised_mean(places, 12.0)
    assert mean.dtype == dtype
    mean.float().sum().backward()
    assert bool(mean.isfinite().all())
    assert places.grad is not None
    assert bool(places.grad.isfinite().all())
    low, high = places.detach().mean((-2, -1)), places.detach().amax((-2, -1))
    assert bool((mean >= low * 0.99).all())
    assert bool((mean <= high * 1.01 + 1e-6).all())


def test_features_of_several_blocks_end_with_those_of_the_last() -> None:
    one, two = create_backbone("resnet18").eval(), create_backbone("resnet18", blocks=2).eval()
    two.load_state_dict(one.state_dict())
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        last, both = one(images), two(images)
    assert torch.equal(both[:, 512:], last)
    assert not torch.equal(both[:, :512], last)
    torch.testing.assert_close(folded(two)(images), both, rtol=1e-3, atol=1e-4)

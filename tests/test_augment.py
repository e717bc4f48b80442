"""Claims about augmentation: it does what was drawn and no more, and doing nothing is normalisation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from team.data.augment import Augmentation, normalise

NOTHING = Augmentation(crop=1, flip=False, colour=0)
MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def some_images(count: int = 6, size: int = 16) -> Tensor:
    return torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=seeded(9))


def pixels(inputs: Tensor) -> Tensor:
    """Network input as intensities in 0..1 again."""
    return inputs * STD + MEAN


def gradient_images(count: int, size: int = 16) -> Tensor:
    """Red is the column, green the row, in steps large enough to survive rounding; blue is constant."""
    ramp = torch.arange(size) * (255 // (size - 1))
    image = torch.stack([ramp.expand(size, size), ramp[:, None].expand(size, size), torch.full((size, size), 128)])
    return image.to(torch.uint8).expand(count, 3, size, size)


def test_normalisation_centres_and_scales_each_channel() -> None:
    images = some_images()
    torch.testing.assert_close(normalise(images), (images.float() / 255 - MEAN) / STD)
    assert normalise(images, 16).shape == (6, 3, 16, 16)
    assert normalise(images, 20).shape == (6, 3, 20, 20)


def test_augmentation_by_nothing_is_normalisation() -> None:
    images = some_images()
    drawn = NOTHING.draw(6, seeded())
    torch.testing.assert_close(drawn, torch.tensor([[1.0, 1, 0, 0, 1, 1, 1]]).expand(6, 7))
    torch.testing.assert_close(NOTHING.apply(images, drawn), normalise(images))


def test_a_flip_mirrors_left_and_right_and_half_of_the_images() -> None:
    flips = Augmentation(crop=1, flip=True, colour=0)
    images = some_images(400)
    drawn = flips.draw(400, seeded())
    mirrored = drawn[:, 0] < 0
    assert 160 < int(mirrored.sum()) < 240
    expected = torch.where(mirrored[:, None, None, None], normalise(images).flip(-1), normalise(images))
    torch.testing.assert_close(flips.apply(images, drawn), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("crop", [0.2, 0.5, 0.8, 0.99])
def test_a_crop_stays_within_the_image(crop: float) -> None:
    drawn = Augmentation(crop=crop).draw(5000, seeded())
    scale, offset = drawn[:, :2].abs(), drawn[:, 2:4]
    assert float(scale.max()) <= 1
    assert bool((offset.abs() + scale <= 1 + 1e-6).all())
    assert float(scale.prod(1).min()) < crop + 0.02, "and small crops do occur"
    assert float(offset.max()) > 0 > float(offset.min())


def test_what_is_cropped_is_the_drawn_part_of_the_image() -> None:
    crops = Augmentation(crop=0.25, flip=False, colour=0)
    images = gradient_images(50)
    drawn = crops.draw(50, seeded())
    result = pixels(crops.apply(images, drawn)) * 255 / 17
    centre = torch.arange(16) * 2 / 16 - 1 + 1 / 16  # of each pixel, from -1 to 1
    column = (drawn[:, :1] * centre + drawn[:, 2:3] + 1) * 8 - 0.5
    row = (drawn[:, 1:2] * centre + drawn[:, 3:4] + 1) * 8 - 0.5
    inner = slice(1, -1)
    expected = column[:, None, inner].expand(50, 14, 14)
    torch.testing.assert_close(result[:, 0, inner, inner], expected, rtol=0, atol=1e-3)
    torch.testing.assert_close(result[:, 1, inner, inner], row[:, inner, None].expand(50, 14, 14), rtol=0, atol=1e-3)


def test_colour_moves_no_further_than_asked() -> None:
    colours = Augmentation(crop=1, flip=False, colour=0.3)
    drawn = colours.draw(5000, seeded())[:, 4:]
    assert 0.7 <= float(drawn.min()) < 0.71
    assert 1.29 < float(drawn.max()) <= 1.3
    grey = torch.full((1, 3, 8, 8), 100, dtype=torch.uint8)
    only_brightness = torch.tensor([[1.0, 1, 0, 0, 1.2, 1.1, 0.8]])
    torch.testing.assert_close(pixels(colours.apply(grey, only_brightness)), torch.full((1, 3, 8, 8), 120 / 255))
    result = pixels(colours.apply(some_images(), colours.draw(6, seeded())))
    assert -1e-6 <= float(result.min()) <= float(result.max()) <= 1 + 1e-6, "still colours"


def test_what_a_shift_moves_in_is_black() -> None:
    shifts = Augmentation(crop=1, flip=False, colour=0, shift=0.5)
    white = torch.full((1, 3, 8, 8), 255, dtype=torch.uint8)
    result = pixels(shifts.apply(white, torch.tensor([[1.0, 1, 0.5, 0, 1, 1, 1]])))  # half of one side is two pixels
    torch.testing.assert_close(result[..., :6], torch.ones(1, 3, 8, 6))
    torch.testing.assert_close(result[..., 6:], torch.zeros(1, 3, 8, 2))
    drawn = shifts.draw(2000, seeded())
    assert 0.49 < float(drawn[:, 2:4].abs().max()) <= 0.5


def test_the_generator_alone_decides_what_is_drawn_and_settings_do_not_move_it() -> None:
    augmentation = Augmentation()
    first = augmentation.draw(10, seeded(1))
    torch.manual_seed(5)
    assert torch.equal(first, augmentation.draw(10, seeded(1)))
    assert not torch.equal(first, augmentation.draw(10, seeded(2)))
    images = some_images(10)
    assert torch.equal(augmentation.apply(images, first), augmentation.apply(images, first)), "nothing else is random"
    one, other = seeded(3), seeded(3)
    augmentation.draw(10, one), NOTHING.draw(10, other)
    assert torch.equal(torch.rand(3, generator=one), torch.rand(3, generator=other)), "the same amount is drawn"


def test_the_network_gets_the_size_it_asks_for() -> None:
    images = some_images(size=16)
    enlarged = NOTHING.apply(images, NOTHING.draw(6, seeded()), 42)
    assert enlarged.shape == (6, 3, 42, 42)
    inner = slice(2, -2)  # at the border, half a pixel of the small image is black
    torch.testing.assert_close(enlarged[..., inner, inner], normalise(images, 42)[..., inner, inner], rtol=0, atol=1e-4)
    assert Augmentation().apply(images, Augmentation().draw(6, seeded()), 8).shape == (6, 3, 8, 8)


def test_each_image_is_treated_by_its_own_row() -> None:
    augmentation = Augmentation(crop=0.3, colour=0.4)
    images, drawn = some_images(), augmentation.draw(6, seeded())
    together = augmentation.apply(images, drawn, 20)
    for number in range(6):
        alone = augmentation.apply(images[number : number + 1], drawn[number : number + 1], 20)
        torch.testing.assert_close(together[number], alone[0])


@pytest.mark.parametrize(
    "change",
    [{"crop": 0}, {"crop": 1.1}, {"crop": float("nan")}, {"colour": -0.1}, {"colour": 1}, {"shift": -1}, {"shift": 1}],
)
def test_amounts_without_a_meaning_are_turned_away(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=rf"need 0 < crop <= 1.*{next(iter(change))}={next(iter(change.values()))}"):
        Augmentation(**change)

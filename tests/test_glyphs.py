"""Claims about the glyphs: the same for a seed, split by script, without twins, safe against broken files."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.functional import avg_pool2d, conv2d, normalize

from team.data.glyphs import REGULAR_FONTS, SCRIPTS, load_glyphs, render_masters
from team.data.images import ImageSet


def small(part: str, cache: Path, **settings: int) -> ImageSet:
    return load_glyphs(part, cache=cache, **{"size": 16, "per_class": 2, **settings})  # type: ignore[arg-type]


def cached_file(cache: Path, part: str) -> Path:
    (path,) = cache.rglob(f"{part}.safetensors")
    return path


@pytest.mark.parametrize(("part", "at_least"), [("train", 150), ("val", 30), ("test", 40)])
def test_a_part_has_the_promised_images_of_many_classes(part: str, at_least: int, tmp_path: Path) -> None:
    glyphs = small(part, tmp_path, per_class=3, size=20)
    assert len(glyphs.classes) >= at_least
    assert glyphs.images.shape == (3 * len(glyphs.classes), 3, 20, 20)
    assert glyphs.counts.tolist() == [3] * len(glyphs.classes)
    assert len(set(glyphs.classes)) == len(glyphs.classes)
    assert all(name.split(": ")[0] in SCRIPTS[part] for name in glyphs.classes)


def test_the_default_is_large_enough_for_five_shots_and_fifteen_queries(tmp_path: Path) -> None:
    glyphs = load_glyphs("val", cache=tmp_path)
    assert int(glyphs.counts.min()) >= 5 + 15
    assert glyphs.images.shape[2:] == (32, 32)
    contrast = glyphs.images.float().std((1, 2, 3))
    assert float(contrast.min()) > 10, "every image shows something"


def test_no_script_and_no_character_is_in_two_parts() -> None:
    scripts = [script for part in SCRIPTS.values() for script in part]
    characters = [c for part in SCRIPTS.values() for text in part.values() for c in text]
    assert len(scripts) == len(set(scripts))
    assert len(characters) == len(set(characters))


def test_no_two_characters_of_any_parts_look_alike() -> None:
    """The largest cosine between blurred masters of two characters, over every pair of regular fonts."""
    characters = "".join(text for part in SCRIPTS.values() for text in part.values())
    masks, owners = render_masters(characters, REGULAR_FONTS)
    bell = torch.exp(-(torch.arange(-4, 5) ** 2) / (2 * 1.2**2))
    bell = bell / bell.sum()
    blurred = conv2d(masks[:, None], bell.view(1, 1, -1, 1), padding="same")
    blurred = conv2d(blurred, bell.view(1, 1, 1, -1), padding="same")
    looks = normalize(avg_pool2d(blurred, 2).flatten(1))
    cosines = (looks @ looks.T).masked_fill(owners[:, None] == owners, 0)
    first, second = divmod(int(cosines.argmax()), len(owners))
    pair = characters[int(owners[first])] + characters[int(owners[second])]
    assert float(cosines.max()) < 0.88, f"{pair} look alike"


def test_the_same_seed_gives_the_same_bytes_whatever_was_drawn_before(tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    alone = small("test", tmp_path / "a")
    assert torch.equal(state, torch.random.get_rng_state()), "global randomness is left alone"
    torch.manual_seed(7)
    small("val", tmp_path / "b")
    after = small("test", tmp_path / "b")
    assert torch.equal(alone.images, after.images)
    assert alone.checksum == after.checksum


def test_seeds_and_settings_change_images_and_checksum(tmp_path: Path) -> None:
    base = small("val", tmp_path)
    others = [small("val", tmp_path, **change) for change in ({"seed": 1}, {"size": 17})]
    assert not torch.equal(base.images, others[0].images)
    assert len({base.checksum, *(other.checksum for other in others)}) == 3


def test_a_cached_part_is_read_and_not_drawn_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = small("val", tmp_path)
    monkeypatch.setattr("team.data.glyphs._draw", None)
    read = small("val", tmp_path)
    assert torch.equal(drawn.images, read.images)
    assert (drawn.checksum, drawn.classes, drawn.name) == (read.checksum, read.classes, read.name)


@pytest.mark.parametrize("damage", ["truncated", "emptied", "one byte changed"])
def test_a_broken_cached_file_is_rebuilt(damage: str, tmp_path: Path) -> None:
    drawn = small("val", tmp_path)
    path = cached_file(tmp_path, "val")
    whole = path.read_bytes()
    changed = whole[:-1] + bytes([whole[-1] ^ 1])
    path.write_bytes({"truncated": whole[: len(whole) // 2], "emptied": b"", "one byte changed": changed}[damage])
    again = small("val", tmp_path)
    assert torch.equal(drawn.images, again.images)
    assert path.read_bytes() == whole


def test_the_cache_is_the_users_unless_one_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path))
    load_glyphs("val", size=8, per_class=1)
    assert cached_file(tmp_path / "glyphs", "val").is_file()


def test_a_folder_that_cannot_be_written_costs_only_the_cache(tmp_path: Path) -> None:
    (tmp_path / "glyphs").write_text("a file where a folder should be")
    with pytest.warns(UserWarning, match="could not be cached"):
        assert len(small("val", tmp_path)) > 0


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"part": "dev"}, ValueError, "'train', 'val' or 'test', not 'dev'"),
        ({"size": 4}, ValueError, "size must be between 8 and 256, not 4"),
        ({"size": 32.0}, TypeError, "size must be a whole number"),
        ({"per_class": 0}, ValueError, "per_class must be between 1"),
        ({"per_class": True}, TypeError, "per_class must be a whole number"),
        ({"seed": -1}, ValueError, "seed must be between 0"),
    ],
)
def test_bad_arguments_are_refused_before_any_work(settings: dict, error: type, says: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=says):
        load_glyphs(**{"part": "val", "cache": tmp_path, **settings})
    assert not list(tmp_path.iterdir())

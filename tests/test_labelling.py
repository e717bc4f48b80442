"""Claims about labelling a folder: what is read, what is found, what is never touched."""

from __future__ import annotations

import hashlib
import io
import socket
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

import team
from team.labelling import embed_folder as embedding
from team.labelling.embed_folder import embed_folder
from team.labelling.embedders import Embedder, Precision, efficientnet_lite0, find_embedder, run_torch
from team.labelling.images import decode
from team.labelling.predict import Predictor, predict
from team.labelling.runtime import _run_session, fast

COLOURS = {"red": (220, 30, 40), "green": (20, 200, 60), "blue": (40, 40, 210)}


class Colours(nn.Module):
    """The mean colour of each quarter of a picture: an embedder that costs nothing."""

    dim = 12

    def forward(self, images: Tensor) -> Tensor:
        return nn.functional.adaptive_avg_pool2d(images, 2).flatten(1)


def blocked(*arguments: object, **options: object) -> None:
    raise AssertionError("something asked for the network")


@pytest.fixture(autouse=True)
def _own_cache_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(socket.socket, "connect", blocked)
    monkeypatch.setattr(socket, "getaddrinfo", blocked)


@pytest.fixture
def cheap() -> Embedder:
    return Embedder(Colours(), size=16, name="colours")


def picture(colour: str, seed: int, size: tuple[int, int] = (40, 30)) -> Image.Image:
    noise = np.random.default_rng(seed).normal(0, 25, (size[1], size[0], 3))
    return Image.fromarray((np.array(COLOURS[colour]) + noise).clip(0, 255).astype(np.uint8))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twelve pictures of each of three colours; the first of each lies in a sub-folder of that name."""
    root = tmp_path / "photos"
    for colour in COLOURS:
        for number in range(12):
            path = root / (colour if number == 0 else "unlabelled/more") / f"{colour}-{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            picture(colour, number).save(path)
    return root


def digest(root: Path) -> dict[str, tuple[str, int]]:
    """Content and time of change of every file below ``root``."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def right(rows: list[team.labelling.rows.LabelledImage]) -> float:
    return float(np.mean([row.label == Path(row.path).name.split("-")[0] for row in rows]))


# Reading


@pytest.mark.parametrize(
    ("ending", "options"),
    [
        ("jpg", {"quality": 95}),
        ("png", {}),
        ("webp", {"lossless": True}),
        ("gif", {}),
        ("bmp", {}),
        ("tiff", {}),
        ("ppm", {}),
        ("JPEG", {"quality": 95}),
    ],
)
def test_common_formats_give_the_same_picture(ending: str, options: dict[str, object], tmp_path: Path) -> None:
    flat = Image.new("RGB", (60, 50), (200, 100, 50))
    path = tmp_path / f"x.{ending}"
    flat.save(path, **options)
    np.testing.assert_allclose(decode(path.read_bytes(), 16), np.broadcast_to((200, 100, 50), (16, 16, 3)), atol=6)


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "CMYK", "1", "I;16"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    out = io.BytesIO()
    image = Image.fromarray(np.full((20, 20), 40_000, np.uint16)) if mode == "I;16" else Image.new(mode, (20, 20))
    image.save(out, "TIFF" if mode == "CMYK" else "PNG")
    assert decode(out.getvalue(), 16).shape == (16, 16, 3)


def test_pictures_are_turned_upright() -> None:
    half = np.zeros((64, 64, 3), np.uint8)
    half[:, :32] = 255  # bright on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise: bright on top
    out = io.BytesIO()
    Image.fromarray(half).save(out, "JPEG", quality=95, exif=exif)
    pixels = decode(out.getvalue(), 16)
    assert pixels[:4].min() > 200
    assert pixels[-4:].max() < 50


def test_a_large_jpeg_decoded_at_reduced_size_is_the_same_picture() -> None:
    random = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    large = Image.fromarray(random).resize((1600, 1200), Image.Resampling.BICUBIC)
    out = io.BytesIO()
    large.save(out, "JPEG", quality=95)
    whole = np.asarray(large.resize((224, 224), Image.Resampling.BICUBIC)).astype(float)
    assert np.abs(decode(out.getvalue(), 224) - whole).mean() < 3


@pytest.mark.parametrize("size", [(500, 375), (300, 1100), (100, 80), (224, 224), (2000, 1500)])
def test_pictures_are_resized_as_pillow_does(size: tuple[int, int]) -> None:
    random = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    image = Image.fromarray(random).resize(size, Image.Resampling.BICUBIC)
    out = io.BytesIO()
    image.save(out, "PNG")
    expected = np.asarray(image.resize((224, 224), Image.Resampling.BICUBIC)).astype(float)
    apart = np.abs(decode(out.getvalue(), 224) - expected)
    assert apart.mean() < 0.5
    assert (apart > 2).mean() < 0.01


def bomb() -> bytes:
    """A PNG of a few hundred bytes that says it has 40 000 × 40 000 pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


def test_bad_files_are_reported_and_skipped(folder: Path, cheap: Embedder) -> None:
    good = embed_folder(folder, embedder=cheap).paths
    content = (folder / "red/red-0.png").read_bytes()
    (folder / "cut.png").write_bytes(content[: len(content) // 2])
    (folder / "text.jpg").write_text("not a picture")
    (folder / "empty.gif").touch()
    (folder / "bomb.png").write_bytes(bomb())
    (folder / "program.png").write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    (folder / "phone.heic").write_bytes(b"\0\0\0\x18ftypheic")
    (folder / "notes.txt").write_text("left alone")
    (folder / ".hidden.png").write_bytes(content)
    (folder / "loop").symlink_to(folder)
    found = embed_folder(folder, embedder=cheap)
    assert found.paths == good
    reasons = dict(found.skipped)
    assert sorted(reasons) == ["bomb.png", "cut.png", "empty.gif", "phone.heic", "program.png", "text.jpg"]
    assert "pixels" in reasons["bomb.png"]
    assert "truncated" in reasons["cut.png"]


# Embedding


def test_features_stand_in_the_order_of_sorted_paths(folder: Path, cheap: Embedder) -> None:
    found = embed_folder(folder, embedder=cheap)
    assert found.paths == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.png"))
    pixels = np.stack([decode((folder / path).read_bytes(), 16) for path in found.paths])
    np.testing.assert_allclose(found.features, run_torch(cheap, pixels), atol=1e-4)


def test_what_was_embedded_is_not_embedded_again_until_it_is_edited(
    folder: Path, cheap: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []

    def counted(content: bytes, size: int) -> np.ndarray:
        decoded.append(1)
        return decode(content, size)

    monkeypatch.setattr(embedding, "decode", counted)
    before = embed_folder(folder, embedder=cheap)
    assert len(decoded) == 36
    (folder / "red").rename(folder / "rot")  # the same content elsewhere is known
    embed_folder(folder, embedder=cheap)
    assert len(decoded) == 36
    picture("blue", 99).save(folder / "rot/red-0.png")
    after = embed_folder(folder, embedder=cheap)
    assert len(decoded) == 37
    changed = np.abs(
        after.features[after.paths.index("rot/red-0.png")] - before.features[before.paths.index("red/red-0.png")]
    )
    assert changed.max() > 0.5
    embed_folder(folder, embedder=Embedder(Colours(), size=24, name="colours"))  # another embedder shares nothing
    assert len(decoded) == 37 + 36


def test_an_interrupted_run_goes_on(folder: Path, cheap: Embedder, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def interrupted(network: Embedder, images: int) -> object:
        def run(pixels: np.ndarray) -> np.ndarray:
            calls.append(len(pixels))
            if len(calls) == 2:
                raise KeyboardInterrupt
            return run_torch(network, pixels)

        return run

    monkeypatch.setattr(embedding, "fast", interrupted)
    with pytest.raises(KeyboardInterrupt):
        embed_folder(folder, embedder=cheap)
    assert len(embed_folder(folder, embedder=cheap).paths) == 36
    assert calls[0] + sum(calls[2:]) == 36


def test_two_modules_that_differ_only_in_code_do_not_share_features(folder: Path) -> None:
    class Brightness(nn.Module):
        def __init__(self, sign: float) -> None:
            super().__init__()
            self.sign = sign

        def forward(self, images: Tensor) -> Tensor:
            return self.sign * images.mean((2, 3))

    first, second = (embed_folder(folder, embedder=Embedder(Brightness(sign), 16)) for sign in (1.0, -1.0))
    np.testing.assert_allclose(first.features, -second.features, atol=1e-5)


def test_checkpoints_of_ours_embed(folder: Path) -> None:
    name = team.list_weights()[0]
    found = embed_folder(folder, embedder=name)
    model = team.load_model(team.weights_path(name))
    pixels = torch.from_numpy(np.stack([decode((folder / path).read_bytes(), model.size) for path in found.paths[:3]]))
    from team.evaluation.embed import embed

    expected = embed(model.network, pixels.permute(0, 3, 1, 2))
    np.testing.assert_allclose(found.features[:3], expected.numpy(), atol=1e-3 * float(expected.abs().max()))
    with pytest.raises(TypeError, match="an embedder must be"):
        find_embedder(3)


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_the_default_embedder_gives_the_same_features_through_onnx(precision: Precision) -> None:
    embedder = efficientnet_lite0(precision)
    run = fast(embedder)
    assert getattr(run, "func", None) is _run_session, "ONNX Runtime is not in use"
    pixels = np.random.default_rng(1).integers(0, 256, (3, 224, 224, 3), dtype=np.uint8)  # not the batch of the export
    features = run(pixels)
    assert features.shape == (3, 1280)
    np.testing.assert_allclose(features, run_torch(embedder, pixels), atol=1e-4)


# Labelling


def test_sub_folder_names_label_the_rest(folder: Path, cheap: Embedder) -> None:
    result = team.label_folder(folder, embedder=cheap)
    assert result.classes == ["blue", "green", "red"]
    assert right(result.rows) == 1
    assert [row.source for row in result.rows].count("human") == 3
    assert all(0 <= row.confidence <= 1 for row in result.rows)


def test_a_table_labels_the_rest_and_sub_folders_add_to_it(folder: Path, cheap: Embedder, tmp_path: Path) -> None:
    table = tmp_path / "few.csv"
    table.write_text(
        "path;label\nunlabelled/more/red-1.png;rot\n./unlabelled/more/blue-2.png;blau\n", encoding="utf-8-sig"
    )
    assert team.label_folder(folder, table, embedder=cheap).classes == ["blau", "rot"]
    both = team.label_folder(folder, table, subfolders=True, embedder=cheap)
    assert both.classes == ["blau", "blue", "green", "red", "rot"]


def test_fixing_a_label_changes_the_answer_for_others(folder: Path, cheap: Embedder) -> None:
    labels = {"red/red-0.png": "warm", "blue/blue-0.png": "cold"}
    result = team.label_folder(folder, labels, embedder=cheap)
    assert {row.label for row in result.rows if "green" in row.path} <= {"warm", "cold"}
    assert result.fix("green/green-0.png", "grass") is result
    assert {row.label for row in result.rows if "green" in row.path} == {"grass"}
    fixed = {row.path: row for row in result.rows}["green/green-0.png"]
    assert (fixed.source, fixed.confidence) == ("human", 1.0)
    with pytest.raises(ValueError, match="not among the images"):
        result.fix("green.png", "grass")


def test_the_least_sure_come_first_and_are_never_a_persons(folder: Path, cheap: Embedder) -> None:
    result = team.label_folder(folder, embedder=cheap)
    doubtful = result.least_sure(10)
    assert len(doubtful) == 10
    assert [row.confidence for row in doubtful] == sorted(
        row.confidence for row in result.rows if row.source != "human"
    )[:10]
    frame = result.to_frame()
    assert list(frame.columns) == ["path", "label", "confidence", "source"]
    assert len(frame) == 36


def test_labels_that_fit_no_image_are_refused_before_any_work(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'nowhere\.png'; paths must be relative"):
        team.label_folder(folder, {"nowhere.png": "x"})
    with pytest.raises(ValueError, match="must not be empty"):
        team.label_folder(folder, {"red/red-0.png": " "})
    with pytest.raises(ValueError, match="no method is called"):
        team.label_folder(folder, method="magic")
    with pytest.raises(ValueError, match="is not a folder"):
        team.label_folder(tmp_path / "nothing")
    (tmp_path / "flat").mkdir()
    picture("red", 0).save(tmp_path / "flat/a.png")
    with pytest.raises(ValueError, match="there are no labels"):
        team.label_folder(tmp_path / "flat")
    (tmp_path / "twice.csv").write_text("path,label\nred/red-0.png,a\nred/red-0.png,b\n")
    with pytest.raises(ValueError, match="both the label 'a' and 'b'"):
        team.label_folder(folder, tmp_path / "twice.csv")
    (tmp_path / "other.csv").write_text("file,class\nred/red-0.png,a\n")
    with pytest.raises(ValueError, match="columns path and label; it names 'file', 'class'"):
        team.label_folder(folder, tmp_path / "other.csv")


def test_predictions_keep_labels_and_leave_unlabelled_classes_out() -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(60, 300)).astype(np.float32)
    features[:30, 0] += 20
    labels = np.full(60, -1)
    labels[[0, 30]] = [2, 0]
    probabilities = predict(features, labels, 4)
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
    assert (probabilities.argmax(1) == np.repeat([2, 0], 30)).all()
    assert (probabilities[[0, 30], [2, 0]] == 1).all()
    assert (probabilities[:, [1, 3]] == 0).all()
    nothing = Predictor(features).predict(np.full(60, -1), 4)
    assert (nothing == 0.25).all()
    with pytest.raises(ValueError, match=r"labels must be -1\.\.1"):
        predict(features, labels, 2)


# What must hold of it all


def test_the_folder_is_left_as_it_was(folder: Path, cheap: Embedder, tmp_path: Path) -> None:
    before = digest(folder)
    result = team.label_folder(folder, embedder=cheap)
    result.fix("unlabelled/more/red-3.png", "red")
    for form, name in (
        ("csv", "a.csv"),
        ("coco", "b.json"),
        ("label-studio", "c.json"),
        ("folders", "d"),
        ("imagefolder", "e"),
    ):
        result.export(tmp_path / name, form)  # type: ignore[arg-type]
    result.export(tmp_path / "linked", "folders", link=True)
    assert digest(folder) == before


_WITHOUT_NETWORK = """
import socket, sys

def blocked(*arguments, **options):
    raise AssertionError("something asked for the network")

socket.socket.connect = socket.socket.bind = socket.getaddrinfo = blocked
from team.cli import main
sys.argv = ["team", "label", "--demo", "--out", sys.argv[1]]
main()
"""


def test_the_example_runs_without_a_network(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_NETWORK, str(tmp_path / "demo")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "labels that are right: " in done.stdout
    accuracy = float(done.stdout.split("labels that are right: ")[1].split(" %")[0])
    assert accuracy > 85
    assert len((tmp_path / "demo/all.csv").read_text().splitlines()) == 201


def test_the_command_labels_a_folder(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "team.cli", "label", str(folder), "--out"]
    weights = ["--embedder", team.list_weights()[0]]
    (folder / "broken.jpg").write_text("no image")
    done = subprocess.run([*command, str(tmp_path / "all.csv"), *weights], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "36 images of 3 classes, 3 of them labelled by you" in done.stdout
    assert "skipped 'broken.jpg'" in done.stderr
    assert (tmp_path / "all.csv").read_text().startswith("path,label,confidence,source\n")
    refused = [*command, str(folder / "inside"), "--to", "folders"]
    done = subprocess.run(refused, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "contain one another" in done.stderr

"""Glyphs: a data set that needs no download, characters of many scripts drawn from the fonts matplotlib carries.

Its parts are split by script, so that the characters of the test part come from writing systems never seen in training.
Each image shows one character in a font of its own, bent, turned and slanted, thicker or thinner, in colours of its
own, before and behind clutter.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Generator, Tensor
from torch.nn.functional import affine_grid, avg_pool2d, grid_sample, interpolate, max_pool2d

from team.data.images import ImageSet
from team.files import atomic_path, cache_folder

Part = Literal["train", "val", "test"]

# Of the pictures: whoever changes a pixel below raises it, and so leaves old caches behind.
VERSION = 1

# Chosen by comparing renderings: of characters whose slightly blurred masters have a cosine above 0.88 in any two
# regular fonts (tests/test_glyphs.py measures it), or which match when stretched or bold, one was kept, in any part.
SCRIPTS: dict[str, dict[str, str]] = {
    "train": {
        "latin": "RSVWafkyÆÞßæħŒŧƁƄƅƇƌƎƝƢƣƤƦƧƪƫƳƷƸƺƾǂǤǶǷȜȡȣȤȴȵȸȻȾȿɀɂ",
        "cyrillic": "ЂЉЋЏДЖЛЩЪЫЭЯђѠѣѤѦѨѪѬѮѰѸѹѼѾҊҎҐғҘҚҠҤҦҨҪҲҴҶ",
        "phonetic": "ɕɚɝɠɤɮɱɳɹɻʁʇʍʎʐʑʔʕʝʞʣʤʦʧʨʩʪʫʮ",
        "operators": "∁∅∔√∞∠∢∮∵∹∻∽≅≎≐≒≖≙≞≤≦≨≪≷≻≽≿⊇⊋⊏⊟⊢⊨⊪⊰⊲⊶⊹⊼⋄⋇⋋⋐⋒⋕⋙⋛⋝⋟⋧⋩⋳⋷⋺⋽",
        "arrows": "←↖↗↜↝↠↣↥↪↫↭↯↰↱↲↳↴↵↶↷↸↹↺↼↽↾↿⇄⇅⇐⇑⇖⇗⇙⇚⇞⇣⇤⇥⇫⇰⇱⇲⇳⇶",
        "syllabics": "ᐂᐋᐒᐚᐫᐾᑆᑕᑛᑢᑬᑴᑺᒁᒐᒖᒝᒫᒳᓀᓇᓓᓚᓠᓦᓮᓴᓺᔐᔖᔜᔢᔩᔯᔵᔻᕊᕓᕙᕵᖀᖊᖐᖖᖧᙇᙴ",
    },
    "val": {
        "greek": "ΑΓΕΖΗΚΜΝΞΣΤΧΨαβζλμνξςϘϝϞϟϠϡ",
        "lao": "ຂຄຈຊຍຕຖນປຜພມຣສຮເແໂໃ",
    },
    "test": {
        "armenian": "ԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՃՄՅՆՇՈՉՊՌՎՓՔՖաէթիխծկճյշչպռցփօֆ",
        "georgian": "გდეთკლნჟრტფქცძჭჯჰႠႡႤႥႦႧႨႪႫႬႮႯႰႱႲႴႵႺႼႽႿჃჄჅ",
        "hebrew": "אבגדוזךכלםמעפץצקשת",
        "arabic": "ءبةتثجخدذرزسشضطعغفقكمهوىي",
    },
}

# Slanted fonts are left to the shear: true italics change the letter itself (Cyrillic т becomes a Latin m).
REGULAR_FONTS = ("DejaVuSans", "DejaVuSansMono", "DejaVuSerif", "STIXGeneral")
FONTS = (*REGULAR_FONTS, "DejaVuSans-Bold", "DejaVuSansMono-Bold", "DejaVuSerif-Bold", "STIXGeneralBol")

MASTER = 64  # side of a master mask
GLYPH = 44  # longer side of the character in it
CHUNK_PIXELS = 2**17  # of the images drawn at a time: few enough to stay in the processor's cache


def load_glyphs(
    part: Part, *, size: int = 32, per_class: int = 50, seed: int = 0, cache: Path | None = None
) -> ImageSet:
    """The glyphs of ``part`` ("train", "val" or "test"): ``per_class`` images of each class, ``[n, 3, size, size]``.

    Classes are named like ``"greek: α"`` and stand one after another. The same arguments give the same bytes. Images
    are drawn once (seconds) and kept in ``cache``, by default the folder of ``team.files.cache_folder``.
    """
    _check(part, size, per_class, seed)
    folder = cache_folder() if cache is None else Path(cache)
    path = folder / "glyphs" / f"v{VERSION}-{size}px-{per_class}each-seed{seed}" / f"{part}.safetensors"
    classes = tuple(f"{script}: {character}" for script, text in SCRIPTS[part].items() for character in text)
    labels = torch.arange(len(classes)).repeat_interleave(per_class)
    settings = f"glyphs v{VERSION} {part} size={size} per_class={per_class} seed={seed} {' '.join(classes)}"
    images = _read(path, settings, labels, size)
    if images is None:
        key = hashlib.sha256(f"glyphs v{VERSION} {part} {seed}".encode()).digest()
        images = _draw(part, labels, size, torch.Generator().manual_seed(int.from_bytes(key[:7], "big")))
        try:
            with atomic_path(path) as temporary:
                save_file({"images": images}, temporary, {"checksum": _checksum(images, labels, settings)})
        except (OSError, SafetensorError) as error:
            warnings.warn(f"glyphs could not be cached, so will be drawn again next time: {error}", stacklevel=2)
    name = f"glyphs {part} ({size} px, {per_class} per class, seed {seed})"
    return ImageSet(images, labels, classes, name, _checksum(images, labels, settings))


def render_masters(characters: Sequence[str], fonts: Sequence[str] = FONTS) -> tuple[Tensor, Tensor]:
    """Each character in each font that has it, cropped, scaled to one size and centred.

    Returns masks ``[V, 64, 64]`` in 0..1, and the index of each mask's character ``[V]``, ascending.
    """
    from matplotlib import get_data_path
    from matplotlib.ft2font import FT2Font

    files = [str(Path(get_data_path(), "fonts", "ttf", f"{font}.ttf")) for font in fonts]
    covered = [FT2Font(file).get_charmap() for file in files]
    faces = [ImageFont.truetype(file, 96, layout_engine=ImageFont.Layout.BASIC) for file in files]
    masks, owners = [], []
    for owner, character in enumerate(characters):
        usable = [face for face, points in zip(faces, covered, strict=True) if ord(character) in points]
        if not usable:
            raise RuntimeError(f"none of matplotlib's fonts has {character!r} (U+{ord(character):04X})")
        for face in usable:
            canvas = Image.new("L", (320, 320))
            ImageDraw.Draw(canvas).text((96, 96), character, fill=255, font=face)
            ink = canvas.crop(canvas.getbbox())
            width, height = (max(1, round(side * GLYPH / max(ink.size))) for side in ink.size)
            master = Image.new("L", (MASTER, MASTER))
            resized = ink.resize((width, height), Image.Resampling.LANCZOS)
            master.paste(resized, ((MASTER - width) // 2, (MASTER - height) // 2))
            masks.append(np.asarray(master, dtype=np.float32) / 255)
            owners.append(owner)
    return torch.from_numpy(np.stack(masks)), torch.tensor(owners)


def _draw(part: Part, labels: Tensor, size: int, generator: Generator) -> Tensor:
    """Images ``[n, 3, size, size]`` of the classes ``labels [n]``, each in a random font of those that have it."""
    masks, owners = render_masters("".join(SCRIPTS[part].values()))
    fonts = torch.bincount(owners)
    first = fonts.cumsum(0) - fonts
    strokes = torch.stack((-max_pool2d(-masks, 3, 1, 1), masks, max_pool2d(masks, 5, 1, 2)), 1)  # thin, plain, thick
    chosen = first[labels] + (torch.rand(len(labels), generator=generator) * fonts[labels]).long()
    chunks = torch.split(chosen, CHUNK_PIXELS // size**2)
    return torch.cat([_picture(strokes[rows], masks, size, generator) for rows in chunks])


def _picture(strokes: Tensor, masks: Tensor, size: int, generator: Generator) -> Tensor:
    """Pictures, uint8 ``[n, 3, size, size]``, of characters ``strokes [n, 3, 64, 64]`` (thin, plain, thick)."""
    n = len(strokes)

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return torch.empty(n, *shape).uniform_(low, high, generator=generator)

    # The character: a stroke between thin and thick, an affine map, and a smooth bending.
    thin, plain, thick = strokes.unbind(1)
    weight = uniform(-1, 1, 1, 1)
    stroke = torch.where(weight < 0, torch.lerp(plain, thin, -weight), torch.lerp(plain, thick, weight))
    scale, stretch = uniform(0.8, 1.25), uniform(-0.2, 0.2).exp()
    affine = _affine(uniform(-25, 25), uniform(-0.3, 0.3), scale * stretch, scale / stretch, uniform(-0.15, 0.15, 2))
    bend = interpolate(uniform(-0.12, 0.12, 2, 4, 4), 2 * size, mode="bicubic", align_corners=False)
    character = avg_pool2d(_warp(stroke, affine, 2 * size, bend), 2)

    # Clutter: pieces of other characters that reach in from the border, a line, a blob.
    angle, reach = uniform(0, 2 * math.pi, 1), uniform(0.75, 1.05, 1)
    away = torch.cat((angle.cos(), angle.sin()), 1) * reach
    others = masks[torch.randint(len(masks), (n,), generator=generator)]
    affine = _affine(uniform(-180, 180), uniform(-0.3, 0.3), uniform(0.7, 1.1), uniform(0.7, 1.1), away)
    fragment = _warp(others, affine, size)
    axis = torch.linspace(-1, 1, size)
    angle, offset = uniform(0, 2 * math.pi, 1, 1), uniform(-0.9, 0.9, 1, 1)
    across = (axis * angle.cos() + axis[:, None] * angle.sin() - offset).abs()
    line = (1 - (across - uniform(0.0, 0.06, 1, 1)) * size / 2).clamp(0, 1)
    centre = uniform(-1, 1, 2, 1, 1)
    squared = (axis - centre[:, 0]) ** 2 + (axis[:, None] - centre[:, 1]) ** 2
    blob = torch.exp(-squared / uniform(0.02, 0.2, 1, 1))

    # Colours: a paper that shades from one side to the other, ink that differs from it in lightness, tinted clutter.
    dark, light, swap = uniform(0, 0.35), uniform(0.55, 1), uniform(0, 1) < 0.5
    paper = _tint(torch.where(swap, dark, light), uniform(-0.25, 0.25, 3))
    ink = _tint(torch.where(swap, light, dark), uniform(-0.25, 0.25, 3))
    image = paper + uniform(-0.2, 0.2, 3, 1, 1) * axis + uniform(-0.2, 0.2, 3, 1, 1) * axis[:, None]
    for layer, colour, opacity in (
        (blob, uniform(0, 1, 3, 1, 1), uniform(0, 0.6, 1, 1, 1)),
        (fragment, uniform(0, 1, 3, 1, 1), uniform(0, 0.7, 1, 1, 1)),
        (character, ink, uniform(0.9, 1, 1, 1, 1)),
        (line, uniform(0, 1, 3, 1, 1), uniform(0, 0.7, 1, 1, 1)),
    ):
        image = torch.lerp(image, colour, layer[:, None] * opacity)
    image = image + 0.03 * torch.randn(image.shape, generator=generator)
    return (image.clamp(0, 1) * 255).round().to(torch.uint8)


def _affine(degrees: Tensor, shear: Tensor, wide: Tensor, tall: Tensor, shift: Tensor) -> Tensor:
    """Maps ``[n, 2, 3]`` from picture to master: shifted by ``shift [n, 2]``, turned, slanted, ``wide`` by ``tall``."""
    angle = degrees * (math.pi / 180)
    cos, sin = angle.cos(), angle.sin()
    turn = torch.stack((torch.stack((cos, sin), 1), torch.stack((-sin, cos), 1)), 1)
    slant = torch.stack((torch.stack((1 / wide, shear), 1), torch.stack((torch.zeros_like(tall), 1 / tall), 1)), 1)
    linear = slant @ turn
    return torch.cat((linear, -linear @ shift[:, :, None]), 2)


def _warp(masks: Tensor, affine: Tensor, size: int, bend: Tensor | None = None) -> Tensor:
    """``masks [n, 64, 64]`` seen through ``affine [n, 2, 3]`` and a displacement ``[n, 2, size, size]``."""
    grid = affine_grid(affine, [len(masks), 1, size, size], align_corners=False)
    if bend is not None:
        grid = grid + bend.movedim(1, -1)
    return grid_sample(masks[:, None], grid, align_corners=False)[:, 0]


def _tint(tone: Tensor, tint: Tensor) -> Tensor:
    """Colours ``[n, 3, 1, 1]`` of lightness ``tone [n]``, tinted by ``tint [n, 3]`` less its mean."""
    return (tone[:, None] + tint - tint.mean(1, keepdim=True)).clamp(0, 1)[:, :, None, None]


def _read(path: Path, settings: str, labels: Tensor, size: int) -> Tensor | None:
    """The images at ``path``, or nothing where they are absent, broken, or not what ``settings`` asks for."""
    try:
        with safe_open(path, "pt") as file:
            images, checksum = file.get_tensor("images"), (file.metadata() or {}).get("checksum")
    except (OSError, SafetensorError):
        return None
    right = images.dtype == torch.uint8 and images.shape == (len(labels), 3, size, size)
    return images if right and checksum == _checksum(images, labels, settings) else None


def _checksum(images: Tensor, labels: Tensor, settings: str) -> str:
    digest = hashlib.sha256(settings.encode())
    for tensor in (labels, images):
        digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def _check(part: str, size: int, per_class: int, seed: int) -> None:
    if part not in list(SCRIPTS):
        raise ValueError(f"part must be 'train', 'val' or 'test', not {part!r}")
    for name, value, low, high in (
        ("size", size, 8, 256),
        ("per_class", per_class, 1, 1000),
        ("seed", seed, 0, 2**63 - 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be a whole number, not {value!r}")
        if not low <= value <= high:
            raise ValueError(f"{name} must be between {low} and {high}, not {value}")

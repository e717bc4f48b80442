"""Labelled images as the JSON of COCO and of Label Studio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from team.data.parallel import parallel
from team.labelling.images import image_size
from team.labelling.rows import LabelledImage


def coco(rows: Sequence[LabelledImage], folder: Path) -> dict[str, Any]:
    """Image classification as COCO annotations: one per image, with its category and no box.

    ``file_name`` is relative to the labelled folder; numbers of images and categories begin at 1, as COCO's do.
    """
    labels = sorted({row.label for row in rows})
    numbers = {label: number for number, label in enumerate(labels, 1)}
    sizes = parallel(lambda row: image_size(folder / row.path), rows)
    images, annotations = [], []
    for number, (row, (width, height)) in enumerate(zip(rows, sizes, strict=True), 1):
        images.append({"id": number, "file_name": row.path, "width": width, "height": height})
        category = {"id": number, "image_id": number, "category_id": numbers[row.label]}
        annotations.append(category | {"score": round(row.confidence, 4), "source": row.source})
    return {
        "info": {"description": "image labels"},
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": label} for label, number in numbers.items()],
    }


def label_studio(rows: Sequence[LabelledImage]) -> list[dict[str, Any]]:
    """Tasks for Label Studio, with local files served from the labelled folder.

    What a person said stands under annotations, what was predicted under predictions with its score. The labelling
    interface needs ``<Image name="image" value="$image"/>`` and ``<Choices name="label" toName="image">``.
    """
    tasks = []
    for number, row in enumerate(rows, 1):
        choice = {"from_name": "label", "to_name": "image", "type": "choices", "value": {"choices": [row.label]}}
        answer: dict[str, Any] = {"result": [choice]}
        kind = "annotations"
        if row.source == "predicted":
            kind = "predictions"
            answer |= {"score": round(row.confidence, 4), "model_version": "team"}
        data = {"image": f"/data/local-files/?d={quote(row.path)}", "path": row.path}
        tasks.append({"id": number, "data": data, "meta": {"source": row.source}, kind: [answer]})
    return tasks

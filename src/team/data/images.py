"""A set of labelled images in memory: what every data set becomes before anything else looks at it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class ImageSet:
    """The images of some classes, as bytes.

    images: uint8 ``[n, 3, H, W]``
    labels: int64 ``[n]``, the index of each image's class in ``classes``
    classes: class names; every class has at least one image
    name: which data set, part and settings this is, for a person
    checksum: of the content and the settings that made it, for a machine; keys caches and stands in result files
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    name: str
    checksum: str

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4 or self.images.shape[1] != 3:
            raise ValueError(f"images must be uint8 [n, 3, H, W], not {self.images.dtype} {list(self.images.shape)}")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise ValueError(f"labels must be int64 [{len(self.images)}], one per image, not {list(self.labels.shape)}")
        counts = torch.bincount(self.labels, minlength=len(self.classes)) if len(self.labels) else torch.zeros(1)
        if len(counts) != len(self.classes) or bool((counts == 0).any()):
            raise ValueError(f"labels must use each of the {len(self.classes)} classes of {self.name} and no other")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def counts(self) -> Tensor:
        """Images per class, int64 ``[C]``."""
        return torch.bincount(self.labels, minlength=len(self.classes))

    def to(self, device: torch.device | str) -> ImageSet:
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

"""A set of labelled images in memory: what every data set becomes before anything else looks at it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from team.seeding import generator


@dataclass(frozen=True, eq=False)
class ImageSet:
    """The images of some classes, as bytes.

    images: uint8 ``[n, 3, H, W]``
    labels: int64 ``[n]``, the index of each image's class in ``classes``
    classes: class names; every class has at least one image
    name: which data set, part and settings this is, for a person
    checksum: of the content and the settings that made it, for a machine; keys caches and stands in result files
    labelled: bool ``[n]``, the images whose label may be used, where training is semi-supervised; None: all of them
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    name: str
    checksum: str
    labelled: Tensor | None = None

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
        labelled = None if self.labelled is None else self.labelled.to(device)
        return replace(self, images=self.images.to(device), labels=self.labels.to(device), labelled=labelled)

    def partitioned(self, share: float, seed: int) -> ImageSet:
        """The same images, of which this share of every class, drawn by the seed, counts as labelled."""
        if not 0 < share < 1:
            raise ValueError(f"the labelled share of a class must lie between 0 and 1, not {share}")
        labels = self.labels.cpu()
        keys = torch.rand(len(labels), generator=generator(seed, "partition"))
        order = keys.argsort()
        order = order[labels[order].argsort(stable=True)]  # by class, in random order within a class
        counts = torch.bincount(labels)
        first = counts.cumsum(0) - counts
        rank = torch.arange(len(labels)) - first[labels[order]]
        wanted = (share * counts.double()).round().clamp_min(1)
        labelled = torch.empty(len(labels), dtype=torch.bool)
        labelled[order] = rank < wanted[labels[order]]
        about = f"{share:g} of every class labelled, partition {seed}"
        return replace(
            self,
            name=f"{self.name}, {about}",
            checksum=f"{self.checksum}, {about}",
            labelled=labelled.to(self.labels.device),
        )

    def supervised(self) -> ImageSet:
        """The labelled images alone."""
        if self.labelled is None:
            return self
        return replace(self, images=self.images[self.labelled], labels=self.labels[self.labelled], labelled=None)

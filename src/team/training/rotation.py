"""Turned copies of images, and telling how far they are turned, beside the classes.

Gidaris, Bursuc, Komodakis, Pérez and Cord, "Boosting few-shot visual learning with self-supervision", ICCV 2019. They
show every image in all four positions; here each is shown upright and in one other, drawn at random.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

QUARTERS = 4


def with_turned(images: Tensor, quarters: Tensor) -> Tensor:
    """Square images ``[n, c, s, s]``, followed by copies turned left by 0 to 3 quarters ``[n]``: ``[2n, c, s, s]``."""
    quarters = quarters[:, None, None, None]
    turned = torch.where(quarters % 2 == 1, images.transpose(-1, -2), images)
    turned = torch.where((quarters == 1) | (quarters == 2), turned.flip(-2), turned)
    turned = torch.where(quarters >= 2, turned.flip(-1), turned)
    return torch.cat([images, turned])


def rotation_loss(scores: Tensor, quarters: Tensor) -> Tensor:
    """Cross-entropy of scores ``[2n, 4]`` for images and their turned copies."""
    return F.cross_entropy(scores, torch.cat([torch.zeros_like(quarters), quarters]))

"""Data sets from their official files: splits, the cache, images in memory.

``prepare`` reads a data set once into the cache, ``load`` gives one part of it as an :class:`ImageSet`.
"""

from __future__ import annotations

from team.data.download import download
from team.data.images import ImageSet
from team.data.info import DataInfo, PartInfo, contact_sheet, info
from team.data.load import load
from team.data.prepare import prepare
from team.data.request import DATASETS
from team.data.source import DataError

__all__ = [
    "DATASETS",
    "DataError",
    "DataInfo",
    "ImageSet",
    "PartInfo",
    "contact_sheet",
    "download",
    "info",
    "load",
    "prepare",
]

"""One line of an answer: an image and the label it has, from whom, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["human", "accepted", "predicted"]


@dataclass(frozen=True)
class LabelledImage:
    """path: relative to the labelled folder, with forward slashes; label: a class name, any text; confidence: 0 to 1.

    source: "human" for a label given by a person, "accepted" for a prediction a person agreed to, "predicted".
    """

    path: str
    label: str
    confidence: float
    source: Source

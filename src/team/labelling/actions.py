"""What the page may ask for: the forms of its actions, checked at the door. Images are numbers here, never paths."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[int, Field(ge=0, strict=True)]
Name = Annotated[str, Field(max_length=1000)]


class _Action(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LabelItems(_Action):
    """labels: class number -> images; the class 0 is a new one called ``name``. audit: an answer to the check."""

    do: Literal["label"]
    source: Literal["human", "accepted"] = "human"
    labels: dict[int, list[Number]]
    name: Name | None = None
    audit: bool = False


class ClearItems(_Action):
    do: Literal["clear"]
    items: list[Number]


class AddClass(_Action):
    do: Literal["add"]
    name: Name


class RenameClass(_Action):
    do: Literal["rename"]
    number: Number
    name: Name


class MergeClasses(_Action):
    do: Literal["merge"]
    number: Number
    into: Number


class StartAudit(_Action):
    do: Literal["audit"]


class Plain(_Action):
    do: Literal["end_audit", "undo", "redo"]


Action = Annotated[
    LabelItems | ClearItems | AddClass | RenameClass | MergeClasses | StartAudit | Plain, Field(discriminator="do")
]


class ExportRequest(_Action):
    form: Literal["csv", "folders", "imagefolder", "coco", "label-studio"]
    predicted: bool = True

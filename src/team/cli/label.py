"""``team label``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro


def label(
    folder: Annotated[Path | None, tyro.conf.Positional] = None,
    labels: Path | None = None,
    out: Path | None = None,
    to: Literal["csv", "folders", "imagefolder", "coco", "label-studio"] = "csv",
    link: bool = False,
    subfolders: bool = False,
    embedder: str | None = None,
    method: str | None = None,
    demo: bool = False,
    session: Path | None = None,
    port: int = 0,
    browser: bool = True,
) -> None:
    """Label a folder of images from a few labels: on a local page, or, with --out, at once.

    Args:
        folder: Folder of images of any kind, sub-folders included; its files are only read.
        labels: Table (CSV) of the labels there are: path, label. With --out, names of sub-folders serve without it.
        out: Write all labels here and open no page: a file, or a new folder for folders and imagefolder.
        to: Form of the output; folders: one per class; imagefolder: Hugging Face's; the others are files.
        link: Links in place of copies of the images.
        subfolders: Names of sub-folders are labels beside those of the table.
        embedder: Name or file of weights of ours, in place of EfficientNet-Lite0; efficientnet-lite0-float32 is that
            one in floats, slower and without a byte's rounding.
        method: Any method, by name, in place of the default.
        demo: Show all this on pictures drawn for it, in the folder --out (team-label-demo).
        session: File in which the page keeps every action; one per folder in the user's data folder, if not given.
        port: Of the page; 0 takes a free one.
        browser: Open the page in a browser.
    """
    from team.labelling.embedders import find_embedder
    from team.labelling.export import check_destination
    from team.labelling.folder import label_folder

    if demo:
        from team.labelling.demo import run_demo

        run_demo(out or Path("team-label-demo"), method=method)
        return
    if folder is None:
        raise ValueError("give the folder of images to label, or --demo to see an example")
    network = None if embedder is None else find_embedder(embedder)
    if out is None:
        try:
            from team.labelling.server import serve
        except ModuleNotFoundError as error:
            raise ValueError(f"the page needs {error.name}: pip install 'team[label]'") from error
        serve(
            folder,
            labels=labels,
            subfolders=subfolders,
            session=session,
            port=port,
            open_browser=browser,
            embedder=network,
            method=method,
        )
        return
    check_destination(folder, out, to)
    result = label_folder(folder, labels, subfolders=subfolders or None, embedder=network, method=method)
    result.export(out, to, link=link)
    for path, reason in result.skipped:
        print(f"skipped {path!r}: {reason}", file=sys.stderr)
    given = sum(row.source == "human" for row in result.rows)
    print(f"{len(result.rows)} images of {len(result.classes)} classes, {given} of them labelled by you: {out}")

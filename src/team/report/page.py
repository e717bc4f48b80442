"""A page that stands alone: text, tables and pictures in one HTML file that loads nothing from anywhere."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from team.files import write_text

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2126; --soft: #59636e; --paper: #fbfbf9; --card: #fff; --line: #d9dde1;
  --accent: #0b6b4f; --mark: #e8f4ee; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a3adb8; --paper: #15181b; --card: #1e2327;
  --line: #363d44; --accent: #6fd3ab; --mark: #1d332b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 17px/1.55 system-ui, sans-serif; }
main { max-width: 920px; margin: 0 auto; padding: 32px 20px 64px; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .6rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .5rem; }
p { margin: .5rem 0 1rem; max-width: 72ch; }
.headline { font-size: 1.15rem; background: var(--mark); border-left: 4px solid var(--accent); padding: .8rem 1rem;
  border-radius: 0 8px 8px 0; max-width: none; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; background: var(--card); }
th, td { text-align: left; padding: .5rem .8rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
tr.strong td { font-weight: 700; }
.facts { font-size: .92rem; }
.facts th { white-space: nowrap; }
.facts td { overflow-wrap: anywhere; }
img { display: block; width: 100%; height: auto; background: #fff; border: 1px solid var(--line); border-radius: 8px;
  padding: 8px; }
@media (max-width: 620px) { body { font-size: 16px; } main { padding: 20px 14px 48px; } .wide img { min-width: 560px; }
  th, td { padding: .4rem; } td.number, th.number { white-space: normal; } }
"""


@dataclass(frozen=True)
class Section:
    """text: paragraphs, plain; picture: a PNG and what it shows, in words; html: ready markup, e.g. a table."""

    title: str
    text: Sequence[str] = ()
    picture: tuple[Path, str] | None = None
    html: str = ""


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: int = 0, strong: int = -1) -> str:
    """A table of plain texts; the last ``numbers`` columns are numbers, the row ``strong`` stands out."""
    words = len(header) - numbers

    def cells(tag: str, values: Sequence[str]) -> str:
        kinds = ["" if column < words else ' class="number"' for column in range(len(values))]
        return "".join(f"<{tag}{kind}>{escape(value)}</{tag}>" for kind, value in zip(kinds, values, strict=True))

    marks = [' class="strong"' if number == strong else "" for number in range(len(rows))]
    body = "".join(f"<tr{mark}>{cells('td', row)}</tr>" for mark, row in zip(marks, rows, strict=True))
    return f'<div class="wide"><table><thead><tr>{cells("th", header)}</tr></thead><tbody>{body}</tbody></table></div>'


def html_facts(facts: Sequence[tuple[str, str]]) -> str:
    """A table of names and what they are."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in facts)
    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def write_page(path: Path, title: str, headline: str, sections: Sequence[Section]) -> None:
    """Write the page; its pictures are inside it, so it can be sent as one file."""
    body = "\n".join(_section(section) for section in sections)
    write_text(
        path,
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{escape(title)}</h1>\n<p class="headline">{escape(headline)}</p>\n{body}\n</main>\n</body>\n</html>\n',
    )


def _section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>", *(f"<p>{escape(paragraph)}</p>" for paragraph in section.text)]
    if section.picture is not None:
        picture, words = section.picture
        content = picture.read_bytes()
        width, height = (int.from_bytes(content[start : start + 4], "big") for start in (16, 20))  # of a PNG's header
        source = "data:image/png;base64," + base64.b64encode(content).decode()
        parts.append(
            f'<div class="wide"><img src="{source}" alt="{escape(words)}" width="{width}" height="{height}" '
            f'style="max-width: {2 * width // 3}px"></div>'
        )
    return "<section>" + "\n".join([*parts, section.html]) + "</section>"

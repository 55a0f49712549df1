"""A page of HTML that opens offline: text, tables and pictures, all in one file.

The page loads nothing, and has no scripts unless `block` adds one. Text is escaped; `Cell(text,
bold=True)` makes the text of a cell bold, `tone="better"` or `tone="worse"` colours it.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any, Literal

from rlfd_gym._files import write

COLOURS = {"better": "#0b5cad", "worse": "#b34a00"}  # blue and orange, which the colour-blind tell apart
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid #ddd; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; margin: .8rem 0; font-variant-numeric: tabular-nums; font-size: .9rem; }}
th, td {{ padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #e4e4e4; white-space: nowrap; }}
th {{ background: #f6f6f6; }} th:first-child, td:first-child {{ text-align: left; }}
tr.reference td {{ color: #666; font-style: italic; }}
@media print {{ .scroll {{ overflow: visible; }} th, td {{ white-space: normal; padding: .2rem .4rem; }}
  tr, figure {{ break-inside: avoid; }} }}
figure {{ margin: 1.2rem 0; }} img {{ max-width: 100%; height: auto; }} figcaption {{ color: #555; font-size: .9rem; }}
pre {{ background: #f6f6f6; padding: .6rem; overflow-x: auto; font-size: .85rem; }}
{style}</style></head><body>
{body}
</body></html>
"""


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: the text, which is escaped on the page.
        bold: whether the text is bold.
        tone: what the colour of the text says, if anything.

    Example:
        >>> Cell("<91%", bold=True).text
        '<91%'
    """

    text: str
    bold: bool = False
    tone: Literal["", "better", "worse"] = ""


@dataclass
class Report:
    """A page that grows from top to bottom; `write` puts it into a file.

    Attributes:
        title: the heading of the page.
        parts: what has been added so far, as HTML.
        style: rules of CSS that are added to those of every page.

    >>> page = Report("Costs & policies").heading("First").text("a < b")
    >>> "<h2>First</h2>" in page.html() and "a &lt; b" in page.html()
    True
    """

    title: str
    parts: list[str] = field(default_factory=list)
    style: str = ""

    def heading(self, text: str, anchor: str = "") -> Report:
        """Start a section, to which `links` can lead by its anchor."""
        name = f' id="{escape(anchor)}"' if anchor else ""
        return self._add(f"<h2{name}>{escape(text)}</h2>")

    def links(self, before: str, anchors: Mapping[str, str]) -> Report:
        """Add a line of links to sections of this page: {anchor: text}."""
        listed = " · ".join(f'<a href="#{escape(name)}">{escape(text)}</a>' for name, text in anchors.items())
        return self._add(f"<p>{escape(before)} {listed}</p>")

    def key(self, parts: Sequence[Cell]) -> Report:
        """Add a line that explains what bold and coloured text means, by examples of it."""
        return self._add(f"<p>{''.join(map(_styled, parts))}</p>")

    def text(self, text: str) -> Report:
        """Add a paragraph."""
        return self._add(f"<p>{escape(text)}</p>")

    def code(self, text: str) -> Report:
        """Add lines without changing them, such as settings or a command."""
        return self._add(f"<pre>{escape(text)}</pre>")

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[Cell | str]], reference: Sequence[int] = ()
    ) -> Report:
        """Add a table; the rows whose numbers are in `reference` are set apart."""
        lines = ["".join(f"<th>{escape(name)}</th>" for name in header)]
        for number, row in enumerate(rows):
            style = ' class="reference"' if number in reference else ""
            lines.append(f"</tr><tr{style}>" + "".join(map(_cell, row)))
        return self._add(f'<div class="scroll"><table><tr>{"".join(lines)}</tr></table></div>')

    def picture(self, png: bytes, caption: str) -> Report:
        """Embed a PNG, with its caption."""
        data = base64.b64encode(png).decode("ascii")
        note = escape(caption)
        return self._add(
            f'<figure><img src="data:image/png;base64,{data}" alt="{note}"><figcaption>{note}</figcaption></figure>'
        )

    def details(self, summary: str, inner: Report) -> Report:
        """Add what another page holds, folded up behind a line of text."""
        body = "\n".join(inner.parts)
        return self._add(f'<details class="more"><summary>{escape(summary)}</summary>\n{body}\n</details>')

    def block(self, html: str) -> Report:
        """Add HTML, in which the caller has escaped all text."""
        return self._add(html)

    def html(self) -> str:
        """Return the whole page."""
        body = "\n".join([f"<h1>{escape(self.title)}</h1>", *self.parts])
        return PAGE.format(title=escape(self.title), body=body, style=self.style)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, completely or not at all."""
        write(path, self.html().encode())

    def _add(self, part: str) -> Report:
        self.parts.append(part)
        return self


def asset(name: str) -> str:
    """Return a file of this package that is put into a page: a script or rules of CSS."""
    return files("rlfd_gym.report").joinpath(name).read_text(encoding="utf-8")


def embedded(values: Any) -> str:
    r"""Return values as JSON that no text in them can end: `</script>` has no angle brackets there.

    >>> embedded({"state": "</script>"})
    '{"state": "\\u003c/script\\u003e"}'
    """
    text = json.dumps(values, ensure_ascii=False, allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _cell(cell: Cell | str) -> str:
    return f"<td>{_styled(cell if isinstance(cell, Cell) else Cell(cell))}</td>"


def _styled(cell: Cell) -> str:
    text = f"<b>{escape(cell.text)}</b>" if cell.bold else escape(cell.text)
    return f'<span style="color:{COLOURS[cell.tone]}">{text}</span>' if cell.tone else text

"""Follow every link within the built documentation, and see that no page needs the network.

    python scripts/check_site.py build/docs

A link within the site must lead to a file, and its fragment to an element there. A page may link to
other sites, but must not load a script, a style or a picture from one: it has to work offline.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from rlfd_gym.report import run_script

LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "manifest"}


class Page(HTMLParser):
    """What a page links to, what it loads, and where it can be linked to."""

    def __init__(self, text: str) -> None:
        """Read the page."""
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag says."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found:
            self.loads.append(found[LOADED[tag]])
        if tag == "link" and LOADING_LINKS & set(found.get("rel", "").split()):
            self.loads.append(found.get("href", ""))


@cache
def read(path: Path) -> Page:
    """Read a page once."""
    return Page(path.read_text(encoding="utf-8"))


def faults(site: Path) -> Iterator[str]:
    """Return what is wrong, a line each."""
    for path in sorted(site.rglob("*.html")):
        page, name = read(path), path.relative_to(site)
        for target in page.loads:
            parts = urlsplit(target)
            if parts.scheme not in ("", "data") or parts.netloc:
                yield f"{name} loads {target}, which is not of this site"
            elif parts.scheme == "" and not (path.parent / unquote(parts.path)).is_file():
                yield f"{name} loads {target}, which is not there"
        for target in page.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            goal = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if not goal.is_file():
                yield f"{name} links to {target}, which is not there"
            elif parts.fragment and goal.suffix == ".html" and unquote(parts.fragment) not in read(goal).anchors:
                yield f"{name} links to {target}, but the page has no such place"


def main(arguments: list[str] | None = None) -> None:
    """Print what is wrong, and end with an error if anything is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path, help="the folder of the built site")
    site = parser.parse_args(arguments).site
    pages = list(site.rglob("*.html"))
    if not pages:
        parser.error(f"there is no page in {site}")
    found = sorted(set(faults(site.resolve())))
    print("\n".join(found) or f"{len(pages)} pages: every link leads somewhere, and nothing is loaded from elsewhere")
    if found:
        raise SystemExit(1)


if __name__ == "__main__":
    run_script(main)

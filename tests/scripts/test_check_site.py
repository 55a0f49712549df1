"""Links of the built documentation are followed, and nothing may come from the network."""

from __future__ import annotations

import check_site
import pytest


def site(folder, **pages):
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(f"<html><body>{text}</body></html>")
    return folder


def test_a_whole_site_has_no_fault(tmp_path, capsys):
    links = '<a href="b.html#x">b</a> <a href="#here">here</a> <p id="here"></p> <a href="https://example.org">away</a>'
    check_site.main([str(site(tmp_path, a=links, b='<p id="x"></p><img src="data:image/png;base64,AA">'))])
    assert "2 pages: every link leads somewhere" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('<a href="c.html">c</a>', "a.html links to c.html, which is not there"),
        ('<a href="b.html#y">b</a>', "a.html links to b.html#y, but the page has no such place"),
        ('<a href="#y">here</a>', "a.html links to #y, but the page has no such place"),
        ('<img src="c.png">', "a.html loads c.png, which is not there"),
        ('<script src="https://cdn.example.org/x.js"></script>', "which is not of this site"),
        ('<link rel="stylesheet" href="//cdn.example.org/x.css">', "which is not of this site"),
    ],
)
def test_a_fault_is_named_and_ends_the_build(tmp_path, capsys, text, fault):
    with pytest.raises(SystemExit) as end:
        check_site.main([str(site(tmp_path, a=text, b='<p id="x"></p>'))])
    assert end.value.code == 1
    assert fault in capsys.readouterr().out


def test_a_folder_without_pages_is_refused(tmp_path):
    with pytest.raises(SystemExit) as end:
        check_site.main([str(tmp_path)])
    assert end.value.code == 2

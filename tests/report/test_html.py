"""Pages: text is escaped, pictures are inside."""

from __future__ import annotations

from rlfd_gym.report import Cell, Report


def test_the_page_escapes_text_and_embeds_pictures(tmp_path):
    page = Report("A & B").text("<script>").table(["x"], [[Cell("1", bold=True)], ["2"]], reference=[1])
    page.picture(b"png", "a < b").write(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    for expected in ("&lt;script&gt;", "<td><b>1</b></td>", 'class="reference"', "data:image/png;base64,cG5n"):
        assert expected in text
    for unwanted in ("<script>", "http"):
        assert unwanted not in text

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


def test_links_lead_to_headings_and_colours_have_a_key():
    page = Report("A page").links("See", {"b & c": "<here>"}).heading("There", anchor="b & c")
    page.key([Cell("good", tone="better"), Cell(" & "), Cell("bad", bold=True, tone="worse")])
    assert page.parts[0] == '<p>See <a href="#b &amp; c">&lt;here&gt;</a></p>'
    assert page.parts[1] == '<h2 id="b &amp; c">There</h2>'
    assert page.parts[2] == (
        '<p><span style="color:#0b5cad">good</span> &amp; <span style="color:#b34a00"><b>bad</b></span></p>'
    )

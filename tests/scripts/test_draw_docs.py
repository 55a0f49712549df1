"""The pictures of the documentation: each is drawn, and those that are stored are small."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import draw_docs
import pytest

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def test_the_stored_flow_chart_is_the_one_that_is_drawn_and_is_well_formed():
    chart = draw_docs.flow_chart()
    assert ElementTree.fromstring(chart).tag.endswith("svg")
    assert chart == (PICTURES / "flow.svg").read_text()


def test_the_overview_shows_what_the_readme_says():
    pytest.importorskip("matplotlib")
    texts = {text.get_text() for axis in draw_docs.overview().axes for text in axis.texts}
    assert {"8.7", "36", "holding: 0.3 to 3"} <= texts


def test_an_animation_is_a_small_gif_of_several_frames():
    pytest.importorskip("pygame")  # FrozenLake draws with it
    films = draw_docs.animations()
    assert {f"{name}.gif" for name in films} == {path.name for path in PICTURES.glob("*.gif")}
    for film in films.values():
        assert film.startswith(b"GIF89a")
        assert 3_000 < len(film) < 300_000

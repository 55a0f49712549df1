from __future__ import annotations

import pytest
from small_comparison import SMALL

from rlfd_gym import compare


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A small comparison, and the folder it is stored in."""
    out = tmp_path_factory.mktemp("compare") / "run"
    return compare.run(**SMALL, out=out), out


@pytest.fixture
def no_page(monkeypatch):
    """Leave the page and its pictures out: they take most of the time."""
    monkeypatch.setattr("rlfd_gym.compare.page.write_page", lambda *_: None)

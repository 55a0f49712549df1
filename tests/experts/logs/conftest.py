from __future__ import annotations

from functools import partial

import pytest
from small_logs import written


@pytest.fixture
def csv(tmp_path):
    """Writes a CSV file and returns its path."""
    return partial(written, tmp_path)

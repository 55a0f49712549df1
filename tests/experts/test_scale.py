from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlfd_gym.experts.scale import CostScale


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.lists(st.floats(-2, 2), min_size=1))
def test_the_way_back_undoes_the_way_there(low, width, costs):
    scale = CostScale(low, low + width)
    np.testing.assert_allclose(scale.to_box(scale.from_box(costs)), costs, atol=1e-6)


def test_the_ends_of_the_range_are_the_ends_of_the_box():
    scale = CostScale.spanning([3.0, -7.0, 1.0])
    assert scale == CostScale(-7.0, 3.0)
    assert scale.to_box([-7.0, 3.0, 8.0]).tolist() == [-1.0, 1.0, 2.0]


def test_bad_ranges_are_refused():
    with pytest.raises(ValueError, match="low must be below high"):
        CostScale(1.0, 1.0)
    with pytest.raises(ValueError, match="raw costs must differ"):
        CostScale.spanning([2.0, 2.0])
    with pytest.raises(ValueError, match="high must be a finite number"):
        CostScale(0.0, np.inf)

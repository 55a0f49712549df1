from __future__ import annotations

import numpy as np
import pytest

from rlfd_gym import SampledExpert


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e200, 1e308])
def test_weights_count_on_any_scale(scale):
    expert = SampledExpert([0, 1], [0, 0], [1, 0], weights=[scale, scale])
    assert expert.weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"weights": [0.0, 0.0]}, ValueError, "weights must not all be zero"),
        ({"weights": [1.0, -0.1]}, ValueError, "weights must not be negative; entry 1 is -0.1"),
        ({"weights": [np.inf, 1.0]}, ValueError, "weights must be finite; entry 0 is inf"),
        ({"states": [-1, 0]}, ValueError, "states must not be negative; entry 0 is -1"),
        ({"next_states": [0.7, 0.0]}, TypeError, "next_states must hold integers"),
        ({"actions": [0]}, ValueError, r"actions has shape \(1,\), expected \(2,\)"),
    ],
)
def test_bad_transitions_are_refused_by_name(changes, error, message):
    arguments = {"states": [0, 1], "actions": [0, 0], "next_states": [1, 0], "weights": [1.0, 1.0]}
    with pytest.raises(error, match=message):
        SampledExpert(**(arguments | changes))

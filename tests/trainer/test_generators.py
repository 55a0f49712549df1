"""States of random generators, as they come from files."""

from __future__ import annotations

import numpy as np
import pytest
from trainer_data import MARKS

pytestmark = MARKS
KINDS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_taken_over_in_the_middle_of_a_draw(kind):
    from rlfd_gym.trainer.generators import generator_in

    before = np.random.Generator(getattr(np.random, kind)(3))
    before.integers(2**31, size=3, dtype=np.int32)  # leaves half a word
    after = generator_in(before.bit_generator.state)
    draws = [generator.integers(2**31, size=1000, dtype=np.int32) for generator in (before, after)]
    assert (draws[0] == draws[1]).all()


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("MT19937", ("state", "pos"), 10**9),
        ("MT19937", ("state", "pos"), 625),
        ("MT19937", ("state", "pos"), -1),
        ("MT19937", ("state", "key"), [1] * 623),
        ("MT19937", ("state", "key"), [0] * 624),
        ("MT19937", ("state", "key"), [2**32] * 624),
        ("Philox", ("buffer_pos",), 5),
        ("Philox", ("buffer_pos",), -(2**31)),
        ("Philox", ("buffer",), [0, 0, 0]),
        ("Philox", ("state", "counter"), [-1, 0, 0, 0]),
        ("PCG64", ("state", "inc"), 2),
        ("PCG64", ("state", "state"), 2**128),
        ("PCG64", ("has_uint32",), 2),
        ("PCG64", ("uinteger",), 2**32),
        ("PCG64", ("uinteger",), 0.5),
        ("PCG64DXSM", ("state", "state"), True),
        ("SFC64", ("state", "state"), [1, 2, 3]),
        ("SFC64", ("state", "state"), [[1, 2], [3, 4]]),
    ],
)
def test_a_state_that_numpy_could_not_have_come_to_is_refused(kind, place, value):
    from rlfd_gym.trainer.generators import generator_in

    state = getattr(np.random, kind)(3).state
    inner = state
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match=f"^{kind}: "):
        generator_in(state)

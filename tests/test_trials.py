"""Nothing fails in any of the trials, whose counts docs/reliability.md tells."""

from __future__ import annotations

import pytest
import reliability
from trials import TRIALS


@pytest.mark.slow
@pytest.mark.needs_imitation
@pytest.mark.parametrize("name", TRIALS)
def test_nothing_fails_in_a_trial_and_whatever_may_come_of_it_does(name):
    result = reliability.run(name, TRIALS[name].tries)
    assert result.failures == []
    assert result.tried > 0
    assert all(result.came.values()), result.came

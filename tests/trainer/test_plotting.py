from __future__ import annotations

import numpy as np
import pytest
from trainer_data import MARKS

pytestmark = MARKS


def test_a_trainer_draws_its_cost_and_policy_and_writes_them_whole(make, inventory, careful, guess, tmp_path):
    from PIL import Image

    trainer = make(careful, inventory, prior=guess, alpha=0.1, solver="exact")
    with pytest.raises(RuntimeError, match="call train"):
        trainer.plot()
    trainer.train()
    figure = trainer.plot(tmp_path / "new" / "learned.png")
    cost, policy = (axis.images[0].get_array().filled(np.nan) for axis in figure.axes[:2])
    np.testing.assert_array_equal(cost, trainer.cost_table)
    np.testing.assert_allclose(np.nan_to_num(policy), trainer.policy.probabilities.numpy(), atol=1e-15)
    assert figure.get_suptitle().startswith("learned with α = 0.1, duality gap ")
    with Image.open(tmp_path / "new" / "learned.png") as image:
        image.load()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["learned.png"]


def test_a_grid_is_drawn_as_one_and_a_simulator_without_a_gap(make, gridworld, tmp_path):
    trainer = make(gridworld.mdp.optimal(gridworld.cost).occupancy, gridworld, solver="exact")
    trainer.train()
    assert trainer.plot().axes[1].collections
    with pytest.raises((TypeError, ValueError), match="path"):
        trainer.plot(3)
    with pytest.raises(ValueError, match=r"path must end in \.png, since a PNG is written, got .*learned\.pdf"):
        trainer.plot(tmp_path / "learned.pdf")
    assert list(tmp_path.iterdir()) == []

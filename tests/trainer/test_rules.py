"""α chosen by a rule when the trainer is trained."""

from __future__ import annotations

import numpy as np
import pytest
from trainer_data import MARKS, rows_of

pytestmark = MARKS


def test_a_rule_chooses_alpha_and_the_trainer_says_why(inventory, careful, guess, tmp_path):
    from imitation.util import logger

    from rlfd_gym import RLfDProblem, RLfDTrainer, alpha_path, select_alpha

    log = logger.configure(tmp_path, ["csv", "log"])
    trainer = RLfDTrainer(careful, inventory, prior=guess, alpha="regret-budget:0.05", custom_logger=log)
    assert np.isnan(trainer.alpha)
    with pytest.raises(RuntimeError, match=r"no alpha has been chosen: call train\(\) first"):
        trainer.alpha_choice  # noqa: B018
    trainer.train()
    expected = select_alpha(alpha_path(RLfDProblem(inventory.mdp, careful, guess)), "regret-budget:0.05")
    assert trainer.alpha == trainer.alpha_choice.alpha == expected.alpha
    assert trainer.alpha_choice.reason == expected.reason
    np.testing.assert_allclose(trainer.solution.cost, expected.solution.cost, atol=1e-9)
    log.close()
    assert expected.reason in (tmp_path / "log.txt").read_text()
    assert float(rows_of(tmp_path / "progress.csv")[-1]["rlfd/alpha"]) == pytest.approx(expected.alpha)


def test_the_discrepancy_rule_measures_the_noise_of_the_trainers_trajectories(make, inventory, guess):
    from rlfd_gym import RLfDProblem, alpha_path, demonstrate, occupancy_from_demonstrations, occupancy_noise

    mdp = inventory.mdp
    policy = mdp.optimal(inventory.cost_for(5, 8, 15)).policy
    few, many = (demonstrate(mdp, policy, number, 66, seed=0) for number in (3, 60))
    trainer = make(few, inventory, prior=guess, alpha="discrepancy", solver="exact")
    trainer.train()
    first = trainer.alpha
    expert = occupancy_from_demonstrations(few, mdp, prior=guess)
    (point,) = alpha_path(RLfDProblem(mdp, expert, guess), [first])
    assert point.departure == pytest.approx(
        occupancy_noise(few, mdp, prior=guess), rel=0.1
    )  # another seed of the bootstrap
    trainer.set_demonstrations(many)
    assert np.isnan(trainer.alpha)
    trainer.train()
    assert trainer.alpha < first  # better data: the prior weighs less


@pytest.mark.parametrize("rule", ["evidence", "held-out"])
def test_rules_of_the_likelihood_see_the_trainers_trajectories(make, inventory, guess, rule):
    from rlfd_gym import RLfDProblem, alpha_path, demonstrate, occupancy_from_demonstrations, select_alpha

    mdp = inventory.mdp
    walks = demonstrate(mdp, mdp.optimal(inventory.cost_for(5, 8, 15)).policy, 4, 66, seed=0)
    trainer = make(walks, inventory, prior=guess, alpha=rule, solver="exact")
    trainer.train()
    path = alpha_path(RLfDProblem(mdp, occupancy_from_demonstrations(walks, mdp, prior=guess), guess))
    assert trainer.alpha == pytest.approx(select_alpha(path, rule, demonstrations=walks).alpha)


def test_rules_of_the_likelihood_refuse_an_occupancy(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=guess, alpha="evidence", solver="exact")
    with pytest.raises(ValueError, match='rule "evidence" needs demonstrations'):
        trainer.train()


def test_a_trainer_under_a_rule_is_saved_before_and_after_its_choice(make, inventory, guess, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer, demonstrate

    walks = demonstrate(inventory.mdp, inventory.mdp.uniform_policy(), 5, 66, seed=0)
    trainer = make(walks, inventory, prior=guess, alpha="discrepancy", solver="exact")
    trainer.save(tmp_path / "before.npz")
    trainer.train()
    trainer.save(tmp_path / "after.npz")
    before, after = (
        RLfDTrainer.load(tmp_path / f"{name}.npz", inventory, custom_logger=quiet) for name in ("before", "after")
    )
    assert (after.alpha, after.alpha_rule) == (trainer.alpha, "discrepancy")
    assert after.alpha_choice.reason == trainer.alpha_choice.reason
    np.testing.assert_array_equal(after.cost_table, trainer.cost_table)
    before.train()
    assert before.alpha == trainer.alpha
    np.testing.assert_allclose(before.cost_table, trainer.cost_table, atol=1e-9)


def test_rules_that_cannot_be_followed_are_refused(make, inventory, careful, guess):
    from rlfd_gym import demonstrate

    for settings, message in (
        ({"alpha": "regret-budgt", "prior": guess}, "did you mean 'regret-budget'"),
        ({"alpha": "l-curve"}, "prior is None, so alpha must be 0, got 'l-curve'"),
        ({"alpha": "l-curve", "prior": guess, "solver": "smd"}, 'solver="exact" with tables.*got .smd'),
        ({"alpha": "l-curve", "prior": guess, "regulariser": "l1"}, 'regulariser="l2"; got .exact. and .l1'),
    ):
        with pytest.raises(ValueError, match=message):
            make(careful, inventory, **{"solver": "exact"} | settings)
    with pytest.raises(ValueError, match="needs trajectories, to see how much they vary"):
        make(careful, inventory, prior=guess, alpha="discrepancy", solver="exact").train()
    make(careful, inventory, prior=guess, alpha="discrepancy:0.1", solver="exact").train()
    one = demonstrate(inventory.mdp, inventory.mdp.uniform_policy(), 1, 66, seed=0)
    with pytest.raises(ValueError, match="at least two trajectories"):
        make(one, inventory, prior=guess, alpha="discrepancy", solver="exact")
    with pytest.raises(RuntimeError, match="alpha was given as a number"):
        make(careful, inventory, prior=guess, solver="exact").alpha_choice  # noqa: B018

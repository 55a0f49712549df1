"""A trainer takes any belief about the cost as its prior, says what it guarantees, and keeps both in files."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import rlfd_gym
from rlfd_gym import demonstrate, guarantee, solve_exact
from rlfd_gym.beliefs import Ball, Hull, Intervals, NearPrior, Prices, scale_basis
from rlfd_gym.problem import examples

pytestmark = pytest.mark.needs_imitation

ENV = examples.inventory_env()
EXPERT, PRIOR = examples.inventory().expert, examples.inventory().prior
RANGES = ENV.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
BELIEFS = {
    "prices": RANGES,
    "intervals": Intervals(PRIOR - 0.05, PRIOR + 0.05),
    "intervals in money": Intervals(ENV.raw_cost - 1, ENV.raw_cost + 1, scale=ENV.scale),
    "ball": Ball(PRIOR, 0.1),
    "hull": Hull(scale_basis(ENV.features)),
    "l1": NearPrior(PRIOR, 0.01, "l1", weights=np.ones(len(PRIOR))),
}


def quiet():
    """A logger that prints nothing; imitation is imported when it is made, not when tests are collected."""
    from rlfd_gym.trainer import quiet_logger

    return quiet_logger()


def trained(demonstrations, **options):
    trainer = rlfd_gym.RLfDTrainer(demonstrations, ENV, custom_logger=quiet(), **options)
    trainer.train()
    return trainer


@pytest.mark.parametrize("name", BELIEFS)
def test_a_trainer_solves_the_problem_of_its_belief_and_keeps_it_in_a_file(name, tmp_path):
    belief = BELIEFS[name]
    trainer = trained(EXPERT, prior=belief)
    expected = solve_exact(trainer.problem)
    assert type(trainer.problem.belief) is type(belief)
    np.testing.assert_array_equal(trainer.solution.cost, expected.cost)
    assert trainer.solution.guarantee.improvement == expected.guarantee.improvement
    trainer.save(tmp_path / "trainer.npz")
    again = rlfd_gym.RLfDTrainer.load(tmp_path / "trainer.npz", ENV, custom_logger=quiet())
    assert type(again.belief) is type(belief)
    assert again.belief.scale == belief.scale
    np.testing.assert_array_equal(again.solution.cost, trainer.solution.cost)
    assert again.solution.guarantee.improvement == pytest.approx(expected.guarantee.improvement, abs=1e-12)
    assert str(again.solution.guarantee) == str(trainer.solution.guarantee)
    assert again.train() == pytest.approx(trainer.train())


def test_prices_of_a_file_that_do_not_make_its_cost_are_refused(tmp_path):
    trainer = trained(EXPERT, prior=RANGES)
    trainer.save(tmp_path / "trainer.npz")
    with np.load(tmp_path / "trainer.npz") as archive:
        arrays = dict(archive)
    arrays["solution.mixture"] = arrays["solution.mixture"] - 0.5
    np.savez(tmp_path / "other.npz", **arrays)
    with pytest.raises(ValueError, match="its cost is not that of its mixture or prices"):
        rlfd_gym.RLfDTrainer.load(tmp_path / "other.npz", ENV, custom_logger=quiet())


def test_the_guarantee_of_an_occupancy_is_certain_and_that_of_the_function():
    trainer = trained(EXPERT, prior=RANGES)
    promise = trainer.guarantee()
    assert promise.confidence is None
    expected = guarantee(ENV.mdp, trainer.solution.policy, EXPERT, RANGES).improvement
    assert promise.improvement == pytest.approx(expected, abs=1e-12)
    assert promise.improvement == pytest.approx(0.0872, abs=5e-5)


def test_the_guarantee_from_demonstrations_is_about_a_policy_learned_from_the_other_half():
    policy = ENV.mdp.policy_of(EXPERT)
    shown = demonstrate(ENV.mdp, policy, 40, ENV.mdp.horizon(), seed=0)
    trainer = trained(shown, prior=RANGES)
    promise = trainer.guarantee(confidence=0.9)
    assert promise.confidence == 0.9
    assert promise.n_trajectories == 20
    truth = guarantee(ENV.mdp, promise.policy, EXPERT, RANGES).improvement
    assert promise.improvement < promise.bootstrap < promise.estimate
    assert promise.improvement < truth
    assert trainer.guarantee().confidence == 0.95
    with pytest.raises(ValueError, match="needs two trajectories"):
        trained(shown[:1], prior=RANGES).guarantee()


def test_a_rule_that_knows_how_wrong_the_prior_may_be_covers_that_distance():
    trainer = trained(EXPERT, prior=PRIOR, alpha="prior-error:0.1")
    assert np.linalg.norm(trainer.solution.cost - PRIOR) == pytest.approx(0.1, rel=2e-3)
    assert trainer.solution.guarantee.improvement > 0.1


def test_a_belief_brings_its_own_alpha_and_needs_a_solver_that_takes_it():
    with pytest.raises(ValueError, match="alpha and regulariser belong to the belief that prior is, Prices"):
        rlfd_gym.RLfDTrainer(EXPERT, ENV, prior=RANGES, alpha=0.1, custom_logger=quiet())
    with pytest.raises(TypeError, match="Algorithm 1 has no estimator for the belief Prices; use solve_exact"):
        rlfd_gym.RLfDTrainer(EXPERT, ENV, prior=RANGES, solver="smd", custom_logger=quiet())
    wrong = Prices(ENV.features[:-1], [1, 1, 1], [2, 2, 2])
    with pytest.raises(ValueError, match="features has shape"):
        rlfd_gym.RLfDTrainer(EXPERT, ENV, prior=wrong, custom_logger=quiet())


def test_intervals_are_trained_by_algorithm_1_too(tmp_path):
    belief = Intervals(PRIOR - 0.05, PRIOR + 0.05)
    trainer = rlfd_gym.RLfDTrainer(EXPERT, ENV, prior=belief, solver="smd", custom_logger=quiet())
    trainer.train(20_000)
    assert (trainer.solution.cost >= belief.low - 1e-12).all()
    trainer.save(tmp_path / "trainer.npz")
    again = rlfd_gym.RLfDTrainer.load(tmp_path / "trainer.npz", ENV, custom_logger=quiet())
    trainer.train(1_000)
    again.train(1_000)
    np.testing.assert_array_equal(again.solution.cost, trainer.solution.cost)


def test_training_logs_what_is_guaranteed(tmp_path):
    from imitation.util.logger import configure

    logger = configure(str(tmp_path), ["csv"])
    trainer = rlfd_gym.RLfDTrainer(EXPERT, ENV, prior=RANGES, custom_logger=logger)
    trainer.train()
    logger.close()
    (row,) = csv.DictReader((tmp_path / "progress.csv").read_text().splitlines())
    assert float(row["rlfd/guarantee"]) == pytest.approx(trainer.solution.guarantee.improvement, abs=1e-6)

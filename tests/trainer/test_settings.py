"""The options of a trainer: their defaults, their checks, and that they have an effect."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from trainer_data import MARKS, QUICK, Simulator, rows_of, trajectory, walks

pytestmark = MARKS


def test_a_prior_may_be_a_vector_a_table_or_a_function(make, inventory, careful, guess):
    table = inventory.mdp.table(guess)
    forms = (guess, table, lambda state, action: table[state, action])
    costs = [make(careful, inventory, prior=prior).train(5000) for prior in forms]
    assert (costs[0] == costs[1]).all()
    assert (costs[0] == costs[2]).all()


def test_alpha_is_a_hundredth_with_a_prior_and_zero_without(make, inventory, careful, guess):
    assert make(careful, inventory).alpha == 0
    assert make(careful, inventory, prior=guess).alpha == 0.01
    assert make(careful, inventory, prior=guess, alpha=2).alpha == 2


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"alpha": 0.1}, ValueError, "prior is None, so alpha must be 0"),
        ({"alpha": -1.0, "prior": np.zeros(136)}, ValueError, "alpha must be"),
        ({"prior": np.zeros(256)}, ValueError, r"prior has shape \(256,\), expected \(136,\)"),
        ({"prior": np.zeros((15, 16))}, ValueError, r"prior has shape \(15, 16\), expected \(136,\).* or \(16, 16\)"),
        ({"prior": lambda s, a: float("nan")}, ValueError, "prior must be finite"),
        ({"prior": "low"}, TypeError, "prior must be an array"),
        ({"solver": "magic"}, ValueError, "solver must be one of exact, smd, sampled; got 'magic'"),
        ({"policy_kind": "best"}, ValueError, "policy_kind must be one of"),
        ({"discounting": "some"}, ValueError, "discounting must be one of"),
        ({"discount": 1.0}, ValueError, "discount must be"),
        ({"n_runs": 0}, ValueError, "n_runs must be at least 1"),
        ({"reward_net": "net"}, TypeError, "reward_net must be an imitation RewardNet"),
        ({"venv": 1}, TypeError, "pass either env or venv"),
    ],
)
def test_bad_settings_are_refused(make, inventory, careful, settings, error, message):
    with pytest.raises(error, match=message):
        make(careful, inventory, **settings)


def test_a_trainer_needs_an_environment_with_tables_or_draws(make, careful):
    with pytest.raises(TypeError, match="pass either env or venv"):
        make(careful)
    with pytest.raises(TypeError, match="env must be tabular, got CartPoleEnv"):
        make(None, gym.make("CartPole-v1"))


def test_an_order_that_was_cut_counts_as_what_it_was_cut_to(make, inventory):
    # Agents that know no masks ask for anything, and rollouts record what they asked for.
    asked, made = (make([trajectory([11, 3, 5], [order, 2])], inventory) for order in (15, 4))
    assert (asked.problem.expert == made.problem.expert).all()
    with pytest.raises(ValueError, match="trajectory 0, step 0 has action 16"):
        make([trajectory([11, 3], [16])], inventory)


def test_transitions_without_times_cannot_be_counted_discounted(make, inventory):
    from imitation.data.types import TransitionsMinimal

    transitions = TransitionsMinimal(obs=np.array([0, 1]), acts=np.array([3, 4]), infos=np.array([{}, {}]))
    with pytest.raises(ValueError, match="transitions without times"):
        make(transitions, inventory, estimator="count")
    for settings in ({"estimator": "count", "discounting": "none"}, {}):
        assert make(transitions, inventory, **settings).train(1000).sum() == pytest.approx(1)


def test_with_tables_the_exact_solver_is_the_default(make, inventory, careful, guess):
    trainer = make(careful, inventory, solver=None, prior=guess)
    assert trainer.solver == "exact"
    seen = []
    states = trainer.train(callback=seen.append)
    assert trainer.duality_gap < 1e-6
    assert len(seen) == 1
    np.testing.assert_allclose(trainer.train(), states, atol=1e-12)


@pytest.mark.parametrize("solver", ["exact", "smd"])
def test_the_regulariser_reaches_the_problem_and_is_saved(make, inventory, careful, guess, tmp_path, quiet, solver):
    from rlfd_gym import RLfDProblem, RLfDTrainer, solve_exact

    trainer = make(careful, inventory, prior=guess, alpha=0.01, regulariser="l1", solver=solver)
    trainer.train(QUICK)
    problem = RLfDProblem(inventory.mdp, careful, guess, 0.01, "l1")
    if solver == "exact":
        np.testing.assert_array_equal(trainer.solution.cost, solve_exact(problem).cost)
    point = (getattr(trainer.solution, name) for name in ("cost", "value", "occupancy"))
    assert trainer.duality_gap == pytest.approx(problem.duality_gap(*point), abs=1e-12)
    trainer.save(tmp_path / "trainer.npz")
    loaded = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    assert loaded.regulariser == "l1"
    if solver == "smd":
        for one in (trainer, loaded):
            one.train(QUICK)
    np.testing.assert_array_equal(loaded.solution.cost, trainer.solution.cost)


def test_l1_has_no_default_alpha(make, inventory, careful, guess):
    with pytest.raises(ValueError, match='alpha has no default with regulariser="l1"'):
        make(careful, inventory, prior=guess, regulariser="l1")
    with pytest.raises(ValueError, match="regulariser must be one of l2, l1; got 'lasso'"):
        make(careful, inventory, prior=guess, regulariser="lasso")


def test_settings_can_be_read_but_not_changed(make, inventory, careful):
    trainer = make(careful, inventory, n_runs=2, step_size=[1e-3, 1e-4], epsilon=0.5)
    assert (trainer.solver, trainer.policy_kind, trainer.discounting) == ("smd", "occupancy", "trajectory")
    assert (trainer.regulariser, trainer.alpha_rule, trainer.prior) == ("l2", None, None)
    assert (trainer.n_runs, trainer.n_jobs, trainer.step_size, trainer.epsilon) == (2, 1, (1e-3, 1e-4), 0.5)
    assert trainer.settings.discount == inventory.mdp.discount
    with pytest.raises(AttributeError):
        trainer.n_runs = 3


def test_the_problem_is_public_once_there_are_demonstrations(make, inventory, careful, guess):
    trainer = make(None, inventory, prior=guess)
    with pytest.raises(RuntimeError, match="no demonstrations yet: pass them to the constructor"):
        trainer.problem  # noqa: B018
    trainer.set_demonstrations(careful)
    assert (trainer.problem.prior == guess).all()
    assert trainer.problem.alpha == trainer.alpha == 0.01


def half_way(problem):
    """A solver that blends the prior with the cost of the exact solution, and proves nothing."""
    from rlfd_gym import Solution, solve_exact

    exact = solve_exact(problem)
    cost = (exact.cost + np.clip(problem.prior, -1, 1)) / 2
    plan = problem.mdp.optimal(cost)
    return Solution(policy=plan.policy, occupancy=plan.occupancy, cost=cost, method="half way", n_iterations=7)


def test_a_solver_may_be_a_function(inventory, careful, guess, tmp_path):
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer

    log, seen = logger.configure(tmp_path, ["csv"]), []
    trainer = RLfDTrainer(careful, inventory, prior=guess, solver=half_way, custom_logger=log)
    states = trainer.train(callback=seen.append)
    log.close()
    expected = half_way(trainer.problem)
    np.testing.assert_array_equal(inventory.mdp.pairs(trainer.cost_table), expected.cost)
    np.testing.assert_allclose(states, inventory.mdp.sum_by_state(expected.occupancy), atol=1e-12)
    assert trainer.solver is half_way
    assert trainer.solution.method == "half way"
    assert seen == [7]
    (row,) = rows_of(tmp_path / "progress.csv")
    assert float(row["rlfd/expert_cost"]) == pytest.approx(careful @ expected.cost, rel=1e-6)
    assert "rlfd/duality_gap" not in row


def test_a_function_solves_problems_without_tables_too(make):
    from rlfd_gym import solve_smd

    env = Simulator()
    shown = walks(env.grid, env.grid.mdp.uniform_policy(), 5)
    trainer = make(shown, env, solver=lambda problem: solve_smd(problem, 500, seed=1))
    assert trainer.train().sum() == pytest.approx(1)
    np.testing.assert_array_equal(trainer.solution.cost, solve_smd(trainer.problem, 500, seed=1).cost)


def test_a_function_that_returns_no_solution_is_refused(make, inventory, careful):
    with pytest.raises(TypeError, match="what solver returns must be a Solution, got ndarray"):
        make(careful, inventory, solver=lambda problem: problem.expert).train()


def test_a_rule_for_alpha_does_not_go_with_a_function(make, inventory, careful, guess):
    with pytest.raises(ValueError, match='is a rule, which needs solver="exact"'):
        make(careful, inventory, prior=guess, alpha="l-curve", solver=half_way)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"step_size": (0.1, 0.2, 0.3)}, "step_size must be a number or a pair"),
        ({"step_size": 2**128}, "step_size must be at most"),
        ({"epsilon": 0.0}, "epsilon must be a finite number in"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_no_training_could_use_are_refused_at_once(make, inventory, careful, setting, message):
    with pytest.raises(ValueError, match=message):
        make(careful, inventory, **setting)

"""Algorithm 1 without a model: a simulator is asked, once a step for all runs."""

from __future__ import annotations

import numpy as np
import pytest
from checks import Interrupter
from scipy import stats
from strategies import black_box, small_shop

from rlfd_gym import BlackBoxProblem, SampledExpert, solve_smd
from rlfd_gym.problem import examples
from rlfd_gym.solvers.smd import solve


@pytest.fixture(scope="module")
def env():
    return small_shop()


class Counting:
    """An oracle that counts how often it is called."""

    def __init__(self, env):
        self.env, self.calls, self.shapes = env, 0, set()

    def sample_next(self, states, actions, rng):
        self.calls += 1
        self.shapes.add(np.shape(states))
        return self.env.sample_next(states, actions, rng)


def test_one_batched_call_a_step_serves_all_runs(env):
    box, _ = black_box(env)
    object.__setattr__(box, "oracle", Counting(env))
    solve_smd(box, n_iterations=50, n_runs=7)
    assert box.oracle.calls == 50
    assert box.oracle.shapes == {(7, 2)}


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_runs_on_a_simulator_agree_with_runs_on_the_model_in_distribution(env, alpha):
    # The same estimators with other random numbers: means over many runs agree within their standard errors.
    box, model = black_box(env, n=60_000, alpha=alpha)
    arguments = {"n_iterations": 400, "step_size": 2e-2, "n_runs": 300, "variant": "paper"}
    runs = [solve_smd(problem, seed=seed, **arguments).state.runs for seed, problem in enumerate((box, model))]
    black, white = (np.array([np.concatenate(state.average) for state in states]) for states in runs)
    error = np.sqrt((black.var(axis=0) + white.var(axis=0)) / 300)
    # The expert's observed next states are a sample of P: over 60,000 of them this moves means far less than the rest.
    assert (np.abs(black.mean(axis=0) - white.mean(axis=0)) < 4.5 * error).all()
    p_values = [stats.ks_2samp(one, other).pvalue for one, other in zip(black.T, white.T, strict=True)]
    assert min(p_values) > 1e-3 / len(p_values)


def test_a_step_moves_at_most_three_costs_four_values_and_one_weight(env):
    box, _ = black_box(env, alpha=0.1)
    previous = solve_smd(box, n_iterations=1, step_size=0.05, seed=3)
    for _ in range(20):
        following = solve_smd(box, n_iterations=1, step_size=0.05, initial=previous)
        old, new = previous.state.last, following.state.last
        assert np.count_nonzero(np.abs(new.x - old.x) > 1e-15) <= 3
        assert np.count_nonzero(np.abs(new.value - old.value) > 1e-15) <= 4
        ratio = new.occupancy / old.occupancy
        assert np.count_nonzero(np.abs(ratio / np.median(ratio) - 1) > 1e-12) <= 1
        previous = following


def test_the_gap_shrinks_without_a_model_and_is_not_known(env):
    box, model = black_box(env, n=20_000, alpha=0.1)
    start = solve_smd(box, n_iterations=10, n_runs=4)
    later = solve_smd(box, n_iterations=20_000, n_runs=4)
    gaps = [model.duality_gap(s.cost, s.value, s.occupancy) for s in (start, later)]
    assert gaps[1] < 0.3 * gaps[0]
    assert np.isnan(later.duality_gap)  # without a model nobody knows it
    assert later.policy.shape == (model.n_pairs,)
    np.testing.assert_allclose(np.add.reduceat(later.policy, box.state_starts[:-1]), 1.0)


def test_the_same_seed_gives_the_same_result_on_a_simulator(env):
    box, _ = black_box(env)
    first, again, other = (solve_smd(box, n_iterations=300, n_runs=2, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.cost, again.cost)
    assert (first.cost != other.cost).any()


def test_an_interrupt_leaves_as_many_steps_of_each_run_as_there_are(env, monkeypatch):
    monkeypatch.setattr(solve, "_progress_bar", lambda wanted, total: Interrupter(99))
    box, _ = black_box(env)
    solution = solve_smd(box, n_iterations=1000, n_runs=2)
    assert not solution.finished
    assert solution.n_iterations == 50


def test_a_history_needs_a_model(env):
    with pytest.raises(ValueError, match="record_every needs a model"):
        solve_smd(black_box(env)[0], n_iterations=10, record_every=5)


def test_an_oracle_that_answers_nonsense_is_caught(env):
    class Wrong:
        def sample_next(self, states, actions, rng):
            return np.full(np.shape(states), 99)

    box, _ = black_box(env)
    object.__setattr__(box, "oracle", Wrong())
    with pytest.raises(ValueError, match=r"oracle: sample_next must return states 0\.\.4"):
        solve_smd(box, n_iterations=10)


@pytest.mark.parametrize("answer", [np.nan, 1.9])
def test_an_oracle_that_answers_no_integers_is_caught(env, answer):
    class Wrong:
        def sample_next(self, states, actions, rng):
            return np.full(np.shape(states), answer)

    box, _ = black_box(env)
    object.__setattr__(box, "oracle", Wrong())
    with pytest.raises(TypeError, match="oracle: what sample_next returns must hold integers"):
        solve_smd(box, n_iterations=10)


def test_transitions_of_no_weight_are_never_drawn(env):
    # α = 0: the expert's draws are all that lowers a cost; the pair without weight is only ever raised.
    mdp = env.mdp
    sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "discount": mdp.discount, "feasible": mdp.feasible}
    expert = SampledExpert([0, 1], [0, 0], [0, 0], [1.0, 0.0])
    solution = solve_smd(BlackBoxProblem(env, expert, **sizes), n_iterations=3000, step_size=1e-2, n_runs=4)
    drawn, never = mdp.pair_index([0, 1], [0, 0])
    assert solution.state.last.x[drawn] < -0.9
    assert solution.state.last.x[never] > -0.5


def test_a_black_box_pulls_with_the_sign():
    # With no step for the occupancy and an expert seen in one pair only, costs walk to the prior in steps of αnη.
    env = examples.gridworld_env(3)
    expert = SampledExpert([4], [0], env.sample_next([4], [0], np.random.default_rng(0)))
    sizes = {"n_states": 9, "n_actions": 4, "discount": 0.7}
    problem = BlackBoxProblem(env, expert, prior=np.full(36, 0.25), alpha=0.5, regulariser="l1", **sizes)
    stride = 0.5 * 36 * 3e-3
    last = solve_smd(problem, 1500, step_size=(3e-3, 0.0)).state.last.x
    assert np.mean(np.abs(last - 0.25) <= stride + 0.01) > 0.9
    assert problem.second_moments()[0] == pytest.approx(18**2 + 4 * 0.5 + 2 + 2 * (1.7 / 0.3) ** 2)
    with pytest.raises(ValueError, match="regulariser must be one of l2, l1; got 'l3'"):
        BlackBoxProblem(env, expert, regulariser="l3", **sizes)

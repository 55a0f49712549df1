from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from scipy import stats

from rlfd_gym import BlackBoxProblem, RLfDProblem, SampledExpert, solve_smd
from rlfd_gym.solvers.smd import solve as smd
from rlfd_gym.solvers.smd.kernels import Point


@pytest.fixture(scope="module")
def env():
    return gym.make("rlfd_gym/Inventory-v0", max_inventory=4, demand_mean=2.0).unwrapped


def feasible(mdp):
    mask = np.zeros((mdp.n_states, mdp.n_actions), dtype=bool)
    mask[mdp.pair_states, mdp.pair_actions] = True
    return mask


def black_box(env, n=4000, alpha=0.1, seed=0):
    """A problem known by its simulator alone, and the model-based problem with the same (empirical) expert."""
    mdp, rng = env.mdp, np.random.default_rng(seed)
    pairs = rng.choice(mdp.n_pairs, size=n, p=mdp.occupancy_of(mdp.uniform_policy()))
    states, actions = mdp.pair_states[pairs], mdp.pair_actions[pairs]
    expert = SampledExpert(states, actions, env.sample_next(states, actions, rng))
    sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "discount": mdp.discount}
    box = BlackBoxProblem(env, expert, **sizes, prior=env.cost, alpha=alpha, feasible=feasible(mdp))
    counts = np.bincount(pairs, minlength=mdp.n_pairs) / n
    return box, RLfDProblem(mdp, counts, env.cost, alpha)


class Counting:
    """An oracle that counts how often it is called."""

    def __init__(self, env):
        self.env, self.calls, self.shapes = env, 0, set()

    def sample_next(self, states, actions, rng):
        self.calls += 1
        self.shapes.add(np.shape(states))
        return self.env.sample_next(states, actions, rng)


def test_pairs_are_numbered_as_in_the_mdp(env):
    box, model = black_box(env)
    np.testing.assert_array_equal(box.pair_states, env.mdp.pair_states)
    np.testing.assert_array_equal(box.pair_actions, env.mdp.pair_actions)
    np.testing.assert_array_equal(box.state_starts, env.mdp.state_starts)
    assert box.step_sizes(0.1) == model.step_sizes(0.1)
    assert box.iterations(0.1) == model.iterations(0.1)


def test_one_batched_call_a_step_serves_all_runs(env):
    box, _ = black_box(env)
    object.__setattr__(box, "oracle", Counting(env))
    solve_smd(box, n_iterations=50, n_runs=7)
    assert box.oracle.calls == 50
    assert box.oracle.shapes == {(7, 2)}


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_it_agrees_with_the_model_in_distribution(env, alpha):
    # The same estimators with other random numbers: means over many runs agree within their standard errors.
    box, model = black_box(env, n=60_000, alpha=alpha)
    arguments = {"n_iterations": 400, "step_size": 2e-2, "n_runs": 300}
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
        assert np.count_nonzero(np.abs(new.cost - old.cost) > 1e-15) <= 3
        assert np.count_nonzero(np.abs(new.value - old.value) > 1e-15) <= 4
        ratio = new.occupancy / old.occupancy
        assert np.count_nonzero(np.abs(ratio / np.median(ratio) - 1) > 1e-12) <= 1
        previous = following


def test_it_learns(env):
    box, model = black_box(env, n=20_000, alpha=0.1)
    start = solve_smd(box, n_iterations=10, n_runs=4)
    later = solve_smd(box, n_iterations=20_000, n_runs=4)
    gaps = [model.duality_gap(s.cost, s.value, s.occupancy) for s in (start, later)]
    assert gaps[1] < 0.3 * gaps[0]
    assert np.isnan(later.duality_gap)  # without a model nobody knows it
    assert later.policy.shape == (model.n_pairs,)
    np.testing.assert_allclose(np.add.reduceat(later.policy, box.state_starts[:-1]), 1.0)


def test_the_same_seed_gives_the_same_result(env):
    box, _ = black_box(env)
    first, again, other = (solve_smd(box, n_iterations=300, n_runs=2, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.cost, again.cost)
    assert (first.cost != other.cost).any()


def test_an_interrupt_returns_what_there_is(env, monkeypatch):
    class Stop:
        steps = 0

        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def update(self, steps):
            self.steps += steps
            if self.steps >= 100:
                raise KeyboardInterrupt

    monkeypatch.setattr(smd, "_progress", lambda wanted, total: Stop())
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


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"oracle": object()}, TypeError, "oracle must have a method sample_next"),
        ({"expert": [1, 2]}, TypeError, "expert must be a SampledExpert"),
        ({"n_states": 0}, ValueError, "n_states must be at least 1"),
        ({"discount": 1.0}, ValueError, "discount"),
        ({"prior": None}, ValueError, "prior is None, so alpha must be 0"),
        ({"prior": [0.0]}, ValueError, "prior has shape"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"feasible": np.zeros((5, 5), dtype=bool)}, ValueError, "feasible must be a boolean array"),
        ({"expert": SampledExpert([0], [9], [0])}, ValueError, r"expert: transition 0 is \(state 0, action 9"),
        ({"expert": SampledExpert([0, 4], [0, 3], [0, 0])}, ValueError, r"expert: transition 1 is \(state 4, action 3"),
        ({"expert": SampledExpert([0], [0], [7])}, ValueError, "next state 7"),
    ],
)
def test_bad_problems_are_refused_by_name(env, changes, error, message):
    mdp = env.mdp
    arguments = {
        "oracle": env,
        "expert": SampledExpert([0], [0], [0]),
        "n_states": mdp.n_states,
        "n_actions": mdp.n_actions,
        "discount": 0.9,
        "prior": env.cost,
        "alpha": 0.1,
        "feasible": feasible(mdp),
    } | changes
    with pytest.raises(error, match=message):
        BlackBoxProblem(arguments.pop("oracle"), arguments.pop("expert"), **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], [], []), ValueError, "at least one transition"),
        (([0, 1], [0], [0, 1]), ValueError, r"actions has shape \(1,\), expected \(2,\)"),
        (([0.5], [0], [0]), TypeError, "states must hold integers"),
        (([0], [0], [0], [-1.0]), ValueError, "weights must not be negative"),
        (([0], [0], [0], [0.0]), ValueError, "weights must not all be zero"),
    ],
)
def test_bad_experts_are_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        SampledExpert(*arguments)


def test_weights_are_drawn_in_proportion(env):
    assert SampledExpert([0, 1], [0, 0], [0, 0], [1.0, 3.0]).weights.tolist() == [0.25, 0.75]
    assert isinstance(solve_smd(black_box(env)[0], n_iterations=5).state.last, Point)


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
    sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "discount": mdp.discount, "feasible": feasible(mdp)}
    expert = SampledExpert([0, 1], [0, 0], [0, 0], [1.0, 0.0])
    solution = solve_smd(BlackBoxProblem(env, expert, **sizes), n_iterations=3000, step_size=1e-2, n_runs=4)
    drawn, never = mdp.pair_index([0, 1], [0, 0])
    assert solution.state.last.cost[drawn] < -0.9
    assert solution.state.last.cost[never] > -0.5


def test_a_pickled_problem_is_still_locked(env):
    import pickle

    _, model = black_box(env)
    assert not pickle.loads(pickle.dumps(model)).prior.flags.writeable
    assert not pickle.loads(pickle.dumps(SampledExpert([0], [0], [0]))).weights.flags.writeable

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from strategies import make_mdp, mdps, random_policy, seeds

from rlfd_gym import TabularMDP, demonstrate
from rlfd_gym import occupancy_from_demonstrations as estimated
from rlfd_gym.experts.demonstrations import absorbing_states, read_demonstrations
from rlfd_gym.experts.sampled import sampled_expert
from rlfd_gym.experts.states import occupancy_from_states

occupancy_from_demonstrations = partial(estimated, estimator="count")  # most of these tests are about the count
pytestmark = pytest.mark.filterwarnings("ignore:demonstrations end early")


def trajectory(obs, acts, terminal=False):
    return SimpleNamespace(obs=np.array(obs), acts=np.array(acts), terminal=terminal)


def simulate(mdp, policy, n, length, seed):
    """n trajectories of a policy, all steps at once."""
    rng = np.random.default_rng(seed)
    cdf_next = mdp.transitions.toarray().cumsum(axis=1)
    table = np.zeros((mdp.n_states, mdp.n_actions))
    table[mdp.pair_states, mdp.pair_actions] = policy
    cdf_action = table.cumsum(axis=1)
    state = np.minimum(np.searchsorted(mdp.initial.cumsum(), rng.random(n), side="right"), mdp.n_states - 1)
    obs, acts = [state], []
    for _ in range(length):
        draw = rng.random(n)[:, None] * cdf_action[state][:, -1:]
        action = (cdf_action[state] <= draw).sum(axis=1)
        pair = mdp.pair_index(state, action)
        state = (cdf_next[pair] <= rng.random(n)[:, None] * cdf_next[pair][:, -1:]).sum(axis=1)
        acts.append(action)
        obs.append(state)
    return [trajectory(o, a) for o, a in zip(np.stack(obs, axis=1), np.stack(acts, axis=1), strict=True)]


@pytest.fixture
def chain():
    """Stay in 0 or move on to the absorbing 1, which offers two actions."""
    return TabularMDP([[1, 0], [0, 1], [0, 1], [0, 1]], [0, 0, 1, 1], [0, 1, 0, 1], initial=[1, 0], discount=0.5)


def test_a_terminated_trajectory_stays_in_its_last_state(chain):
    # (1-γ) on each of the first two steps, γ on the second, the rest spread over the two actions of state 1.
    mu = occupancy_from_demonstrations([trajectory([0, 0, 1], [0, 1], terminal=True)], chain)
    np.testing.assert_allclose(mu, [0.5, 0.25, 0.125, 0.125], atol=1e-15)


def test_the_end_is_read_off_the_model_not_off_the_flag(chain):
    # imitation's rollouts set `terminal` at time limits as well.
    for flag in (True, False):
        mu = occupancy_from_demonstrations([trajectory([0, 0, 0], [0, 0], terminal=flag)], chain)
        np.testing.assert_allclose(mu, [1, 0, 0, 0], atol=1e-15)
    seen_there = [trajectory([0, 1, 1], [1, 1], terminal=True)]
    np.testing.assert_allclose(occupancy_from_demonstrations(seen_there, chain), [0, 0.5, 0, 0.5], atol=1e-15)


def test_trajectories_count_equally_whatever_their_length(chain):
    short, long = trajectory([0, 1], [1], terminal=True), trajectory([0, 0, 0, 1], [0, 0, 1], terminal=True)
    one, other, both = (occupancy_from_demonstrations(d, chain) for d in ([short], [long], [short, long]))
    np.testing.assert_allclose(both, (one + other) / 2, atol=1e-15)


def test_a_generator_is_read_once(chain):
    items = [trajectory([0, 1], [1]), trajectory([0, 0, 1], [0, 1])]
    expected = occupancy_from_demonstrations(items, chain)
    np.testing.assert_array_equal(occupancy_from_demonstrations((t for t in items), chain), expected)


@given(mdps(max_discount=0.95), seeds)
def test_the_estimate_is_a_distribution(mdp, seed):
    mu = occupancy_from_demonstrations(simulate(mdp, random_policy(mdp, seed), 3, 4, seed), mdp)
    assert mu.sum() == pytest.approx(1, abs=1e-12)
    assert mu.min() >= 0


@given(mdps(max_discount=0.9), seeds)
def test_trajectories_of_one_step_that_cover_everything_give_the_exact_tail(mdp, seed):
    # A deterministic policy on a deterministic MDP is known after one visit to each state: no sampling error is left.
    rng = np.random.default_rng(seed)
    following = rng.integers(mdp.n_states, size=mdp.n_pairs)
    sure = TabularMDP(
        np.eye(mdp.n_states)[following], mdp.pair_states, mdp.pair_actions, None, mdp.discount, mdp.n_actions
    )
    pairs = sure.state_starts[:-1]
    policy = np.zeros(sure.n_pairs)
    policy[pairs] = 1.0
    demonstrations = [
        trajectory([s, following[p]], [sure.pair_actions[p]]) for s, p in zip(range(sure.n_states), pairs, strict=True)
    ]
    np.testing.assert_allclose(
        occupancy_from_demonstrations(demonstrations, sure), sure.occupancy_of(policy), atol=1e-12
    )


def test_the_estimate_converges_to_the_occupancy_at_the_monte_carlo_rate():
    mdp = make_mdp(3, n_states=6, n_actions=3, discount=0.8)
    policy = random_policy(mdp, 4)
    exact = mdp.occupancy_of(policy)
    sizes = np.array([50, 500, 5000])
    errors = [
        np.mean(
            [
                np.abs(occupancy_from_demonstrations(simulate(mdp, policy, n, 40, seed), mdp) - exact).sum()
                for seed in range(10)
            ]
        )
        for n in sizes
    ]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4
    assert errors[-1] < 0.02


def test_cut_trajectories_are_not_biased():
    # After three steps 51% of the mass is left. Dropping it, or staying put, errs by a fixed amount; going on does not.
    mdp = make_mdp(5, n_states=6, n_actions=3, discount=0.8)
    policy = random_policy(mdp, 6)
    exact = mdp.occupancy_of(policy)
    cut = simulate(mdp, policy, 40_000, 3, 0)
    error = np.abs(occupancy_from_demonstrations(cut, mdp) - exact).sum()
    read = read_demonstrations(cut)
    dropped = np.bincount(mdp.pair_index(read.states, read.actions), weights=read.weights(0.8), minlength=mdp.n_pairs)
    assert error < 0.02
    assert np.abs(dropped / dropped.sum() - exact).sum() > 4 * error


@pytest.mark.filterwarnings("default:demonstrations end early")
def test_a_large_unknown_tail_is_announced_with_its_size(chain):
    with pytest.warns(UserWarning, match=r"25\.0% of the discounted mass"):
        occupancy_from_demonstrations([trajectory([0, 0, 0], [0, 0])], chain)


@pytest.mark.filterwarnings("error")
def test_a_small_tail_and_a_termination_are_not(chain):
    occupancy_from_demonstrations([trajectory([0] * 9, [0] * 8)], chain)
    occupancy_from_demonstrations([trajectory([0, 1], [1])], chain)


def test_an_unvisited_part_of_the_world_gets_nothing():
    mdp = make_mdp(7, n_states=50, n_actions=3, discount=0.5)
    mu = occupancy_from_demonstrations(simulate(mdp, random_policy(mdp, 8), 1, 20, 1), mdp)
    assert np.isfinite(mu).all()
    assert (mu < 1e-6).sum() > mdp.n_pairs / 2


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("column", [False, True])
def test_whole_numbers_of_any_type_and_shape_are_states(chain, dtype, column):
    obs, acts = np.array([0, 0, 1], dtype), np.array([0, 1], dtype)
    if column:
        obs, acts = obs[:, None], acts[:, None]
    mu = occupancy_from_demonstrations([trajectory(obs, acts)], chain)
    np.testing.assert_allclose(mu, [0.5, 0.25, 0.125, 0.125])


def test_transitions_have_no_times(chain):
    minimal = SimpleNamespace(obs=np.array([0, 0, 1]), acts=np.array([0, 1, 1]))
    batches = [{"obs": np.array([0, 0]), "acts": np.array([0, 1])}, {"obs": np.array([1]), "acts": np.array([1])}]
    for kind in (minimal, batches, iter(batches)):
        mu = occupancy_from_demonstrations(kind, chain, discounting="none")
        np.testing.assert_allclose(mu, [1 / 3, 1 / 3, 0, 1 / 3])
    for kind in (minimal, batches):
        with pytest.raises(ValueError, match="transitions without times"):
            occupancy_from_demonstrations(kind, chain)


def test_undiscounted_frequencies_of_trajectories_on_request(chain):
    mu = occupancy_from_demonstrations([trajectory([0, 0, 0, 1], [0, 0, 1])], chain, discounting="none")
    np.testing.assert_allclose(mu, [2 / 3, 1 / 3, 0, 0])


def test_an_occupancy_is_taken_as_it_is():
    mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=None, discount=0.5)
    expected = [0.5, 0.25, 0.25]
    assert occupancy_from_demonstrations(np.array(expected), mdp).tolist() == expected
    assert occupancy_from_demonstrations(np.array([[0.5, 0.25], [0.25, 0.0]]), mdp).tolist() == expected
    with pytest.raises(ValueError, match="state 1, action 1, which is not feasible"):
        occupancy_from_demonstrations(np.array([[0.5, 0.25], [0.0, 0.25]]), mdp)
    with pytest.raises(ValueError, match=r"has shape \(3, 2\), expected \(2, 2\)"):
        occupancy_from_demonstrations(np.full((3, 2), 1 / 6), mdp)
    with pytest.raises(ValueError, match="must sum to 1"):
        occupancy_from_demonstrations(np.array([0.5, 0.5, 0.5]), mdp)
    with pytest.raises(ValueError, match=r"has shape \(4,\), expected \(3,\)"):
        occupancy_from_demonstrations(np.full(4, 0.25), mdp)


def test_an_array_over_states_is_an_occupancy_whose_actions_are_inferred():
    mdp = make_mdp(3, n_states=5, n_actions=2, discount=0.8)
    policy = random_policy(mdp, 4)
    states = mdp.sum_by_state(mdp.occupancy_of(policy)) / (1 - mdp.discount)  # expected visits, as MCEIRL has them
    inferred = occupancy_from_demonstrations(states, mdp)
    np.testing.assert_array_equal(inferred, occupancy_from_states(states, mdp))
    table = states[:, None] / states.sum() * mdp.table(policy, 0.0)
    np.testing.assert_allclose(occupancy_from_demonstrations(table, mdp), mdp.occupancy_of(policy), atol=1e-12)
    lonely = TabularMDP([[0, 1], [1, 0]], [0, 1], [0, 0], initial=None, discount=0.5)  # one action: states are pairs
    assert occupancy_from_demonstrations(np.array([0.5, 0.5]), lonely).tolist() == [0.5, 0.5]


def test_the_policy_estimate_of_transitions_in_no_order_is_what_was_done_in_each_state():
    mdp = make_mdp(3, n_states=5, n_actions=2, discount=0.8)
    pairs = np.repeat(np.arange(mdp.n_pairs), np.arange(1, mdp.n_pairs + 1))  # in no order, with counts of their own
    shown = np.random.default_rng(0).permutation(pairs)
    read = SimpleNamespace(obs=mdp.pair_states[shown], acts=mdp.pair_actions[shown])
    policy = np.arange(1.0, mdp.n_pairs + 1)
    policy /= mdp.sum_by_state(policy)[mdp.pair_states]
    mu = estimated(read, mdp)
    np.testing.assert_allclose(mu, mdp.occupancy_of(policy), atol=1e-12)


def test_the_policy_estimate_does_not_care_where_actions_led(chain):
    moved = SimpleNamespace(obs=[0, 0], acts=[0, 1], next_obs=[1, 1], dones=[True, True])  # 0 stays where it is
    stayed = SimpleNamespace(obs=[0, 0], acts=[0, 1])
    one, other = (estimated(kind, chain, discounting="none") for kind in (moved, stayed))
    assert (one == other).all()


@pytest.mark.parametrize(
    ("obs", "acts", "message"),
    [
        ([0, 7, 1], [0, 1], "trajectory 1, step 0 has next state 7, but the environment has states 0..1"),
        ([-1, 0, 1], [0, 1], "trajectory 1, step 0 has state -1"),
        ([0, 0, 1], [0, 5], "trajectory 1, step 1 has action 5, but the environment has actions 0..1"),
        ([0, 1, 1], [1, 1], "trajectory 1, step 1 has action 1, which is not feasible in state 1"),
    ],
)
def test_what_the_environment_does_not_have_is_named_by_trajectory_and_step(obs, acts, message):
    mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=None, discount=0.5)
    with pytest.raises(ValueError, match=message):
        occupancy_from_demonstrations([trajectory([0, 0, 1], [0, 1]), trajectory(obs, acts)], mdp)
    transitions = SimpleNamespace(obs=[0, 9], acts=[0, 0])
    with pytest.raises(ValueError, match="transition 1 has state 9"):
        occupancy_from_demonstrations(transitions, mdp, discounting="none")


@pytest.mark.parametrize(
    ("demonstrations", "error", "message"),
    [
        ([], ValueError, "is empty"),
        ([{"obs": [], "acts": []}], ValueError, "is empty"),
        ([trajectory([0], [])], ValueError, "trajectory 0 has 1 observations and 0 actions"),
        ([trajectory([0, 0], [0, 0])], ValueError, "trajectory 0 has 2 observations and 2 actions"),
        ([trajectory([0.5, 1], [0])], TypeError, "trajectory 0: obs, must be whole numbers"),
        ([trajectory([0, np.nan], [0])], TypeError, "trajectory 0: obs, must be whole numbers"),
        ([trajectory(np.eye(2), [0])], TypeError, r"got float64 of shape \(2, 2\)"),
        ([trajectory(["a", "b"], [0])], TypeError, "must be whole numbers"),
        ([trajectory([0, 1], [1]), {"obs": [0], "acts": [0]}], TypeError, "of one kind; item 0"),
        ([{"obs": [0]}], TypeError, "item 0 is a dict"),
        ([{"obs": [0, 1], "acts": [0]}], ValueError, "batch 0 of unequal lengths: 2 obs, 1 acts"),
        (trajectory([0, 1], [1]), TypeError, "put it in a list"),
        (7, TypeError, "got int"),
        ("demos", TypeError, "got str"),
        (None, TypeError, "got NoneType"),
    ],
)
def test_bad_demonstrations_are_refused(chain, demonstrations, error, message):
    with pytest.raises(error, match=message):
        occupancy_from_demonstrations(demonstrations, chain, discounting="none")


def test_bad_settings_are_refused(chain):
    with pytest.raises(ValueError, match="discounting must be one of trajectory, none"):
        occupancy_from_demonstrations([trajectory([0, 1], [1])], chain, discounting="some")
    with pytest.raises(ValueError, match="discounting must be one of"):
        occupancy_from_demonstrations(np.full(4, 0.25), chain, discounting="some")
    with pytest.raises(TypeError, match="mdp must be a TabularMDP"):
        occupancy_from_demonstrations([trajectory([0, 1], [1])], "mdp")


def test_absorbing_states_are_those_that_no_action_leaves(chain):
    assert absorbing_states(chain).tolist() == [False, True]


def as_occupancy(expert, mdp):
    return np.bincount(mdp.pair_index(expert.states, expert.actions), weights=expert.weights, minlength=mdp.n_pairs)


def test_the_sampled_expert_stays_where_it_terminated(chain):
    read = read_demonstrations([trajectory([0, 0, 1], [0, 1], terminal=True)])
    feasible = np.ones((2, 2), dtype=bool)
    for absorbing in (None, np.array([False, True])):
        expert = sampled_expert(read, 0.5, feasible=feasible, absorbing=absorbing)
        np.testing.assert_allclose(as_occupancy(expert, chain), [0.5, 0.25, 0.125, 0.125])
        assert (expert.next_states[expert.states == 1] == 1).all()


@pytest.mark.filterwarnings("default:demonstrations end early")
def test_the_sampled_expert_drops_an_unknown_tail_and_says_so(chain):
    read = read_demonstrations([trajectory([0, 0, 0], [0, 1])])
    with pytest.warns(UserWarning, match=r"25\.0% .* dropped"):
        expert = sampled_expert(read, 0.5, feasible=np.ones((2, 2), dtype=bool))
    np.testing.assert_allclose(as_occupancy(expert, chain), [2 / 3, 1 / 3, 0, 0])


def test_the_sampled_expert_needs_next_states(chain):
    feasible = np.ones((2, 2), dtype=bool)
    minimal = read_demonstrations(SimpleNamespace(obs=[0, 0], acts=[0, 1]))
    with pytest.raises(ValueError, match="must tell the next states"):
        sampled_expert(minimal, 0.5, feasible=feasible, discounting="none")
    full = read_demonstrations(SimpleNamespace(obs=[0, 0], acts=[0, 1], next_obs=[0, 1]))
    expert = sampled_expert(full, 0.5, feasible=feasible, discounting="none")
    assert expert.weights.tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="transitions without times"):
        sampled_expert(full, 0.5, feasible=feasible)


@pytest.mark.needs_imitation
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:keys will default:DeprecationWarning")
def test_everything_imitation_calls_demonstrations_is_read(chain, tmp_path):
    from imitation.algorithms.base import make_data_loader
    from imitation.data import rollout, serialize, types

    plain = types.Trajectory(obs=np.array([0, 0, 1]), acts=np.array([0, 1]), infos=None, terminal=True)
    rewarded = types.TrajectoryWithRew(obs=plain.obs, acts=plain.acts, infos=None, terminal=True, rews=np.zeros(2))
    expected = [0.5, 0.25, 0.125, 0.125]
    for items in ([plain], [rewarded], (t for t in [plain, rewarded])):
        np.testing.assert_allclose(occupancy_from_demonstrations(items, chain), expected)
    serialize.save(tmp_path / "demos", [rewarded, rewarded])
    loaded = serialize.load(tmp_path / "demos")
    assert not isinstance(loaded, list)  # a TrajectoryDatasetSequence, read lazily
    np.testing.assert_allclose(occupancy_from_demonstrations(loaded, chain), expected)

    transitions = rollout.flatten_trajectories([plain, plain])
    minimal = types.TransitionsMinimal(obs=transitions.obs, acts=transitions.acts, infos=transitions.infos)
    loader = make_data_loader(transitions, batch_size=2)
    for kind in (transitions, minimal, loader):
        mu = occupancy_from_demonstrations(kind, chain, discounting="none")
        np.testing.assert_allclose(mu, [0.5, 0.5, 0, 0])
    for kind in (transitions, loader):
        np.testing.assert_allclose(occupancy_from_demonstrations(kind, chain), expected)
    with pytest.raises(ValueError, match="transitions without times"):
        occupancy_from_demonstrations(minimal, chain)


@pytest.mark.parametrize("n_trajectories", [1, 1000])
def test_states_beyond_the_horizon_are_guessed_and_the_warning_says_how_much(n_trajectories):
    """The expert always leaves state 1 again, but no demonstration is long enough to show it."""
    mdp = TabularMDP([[0, 1], [1, 0], [0, 1]], [0, 1, 1], [0, 0, 1], initial=[1, 0], discount=0.5)
    expert = mdp.occupancy_of([1, 1, 0])
    short = SimpleNamespace(obs=[0, 1], acts=[0], terminal=False)
    with pytest.warns(UserWarning, match=r"50.0% of the discounted mass .* 40.0% in states that none of them leaves"):
        estimate = occupancy_from_demonstrations([short] * n_trajectories, mdp)
    assert estimate[2] == pytest.approx(0.2)  # half of the 40%
    assert expert[2] == 0


@given(mdps(max_discount=0.95), seeds)
def test_the_policy_estimate_is_the_occupancy_of_what_was_done_from_the_own_start(mdp, seed):
    walks = simulate(mdp, random_policy(mdp, seed), 3, 4, seed)
    counts = np.zeros(mdp.n_pairs)
    for walk in walks:
        np.add.at(counts, mdp.pair_index(walk.obs[:-1], walk.acts), 1)
    mu = estimated(walks, mdp)
    np.testing.assert_allclose(mdp.flow(mu), mdp.initial, atol=1e-9)
    np.testing.assert_allclose(mu, mdp.occupancy_of(mdp.policy_of(counts)), atol=1e-12)


def test_the_policy_estimate_needs_no_times_and_warns_about_no_ends(chain):
    transitions = SimpleNamespace(obs=np.array([0, 0, 1]), acts=np.array([0, 1, 1]))
    # Half of the time it moves on: 2/3 of the mass is in state 0, and state 1 takes action 1.
    np.testing.assert_allclose(estimated(transitions, chain), [1 / 3, 1 / 3, 0, 1 / 3])
    with np.errstate(all="raise"):
        np.testing.assert_allclose(estimated([trajectory([0, 0, 0], [0, 0])], chain), [1, 0, 0, 0])


def test_in_unseen_states_the_expert_is_uniform_or_optimal_for_the_prior():
    # From state 0 one gets to state 1, which no demonstration leaves; there action 0 is free and action 1 costs.
    mdp = TabularMDP([[0, 1], [1, 0], [1, 0]], [0, 1, 1], [0, 0, 1], initial=[1, 0], discount=0.5)
    short = [trajectory([0, 1], [0])]
    uniform, planned = estimated(short, mdp), estimated(short, mdp, prior=[0.0, 0.0, 1.0])
    np.testing.assert_allclose(uniform[1], uniform[2])
    np.testing.assert_allclose(planned, mdp.occupancy_of([1, 1, 0]))
    with pytest.raises(ValueError, match="prior is for estimator"):
        estimated(short, mdp, estimator="count", prior=np.zeros(3))
    with pytest.raises(ValueError, match="estimator must be one of policy, count"):
        estimated(short, mdp, estimator="mean")


def test_the_policy_estimate_is_nearer_to_the_expert_than_the_count():
    mdp = make_mdp(9, n_states=8, n_actions=3, discount=0.9)
    policy = random_policy(mdp, 10)
    exact = mdp.occupancy_of(policy)
    samples = [demonstrate(mdp, policy, 20, 60, seed=seed) for seed in range(8)]
    errors = {how: [np.abs(estimated(walks, mdp, estimator=how) - exact).sum() for walks in samples]
              for how in ("policy", "count")}  # fmt: skip
    assert np.mean(errors["policy"]) < 0.8 * np.mean(errors["count"])

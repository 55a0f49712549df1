from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from small_logs import EPISODES, NAMES, TINY, bad_rows, early_ends
from strategies import mdps, random_policy, seeds

from rlfd_gym import (
    RLfDProblem,
    TabularMDP,
    demonstrate,
    noisy_expert,
    occupancy_from_demonstrations,
    read_log,
    solve_exact,
)
from rlfd_gym.experts.logs import read_costs


def test_the_estimated_model_is_the_counts_of_the_rows():
    log = read_log(TINY, discount=0.5)
    assert log.pair_labels() == [(0, 0), (0, 1), (1, 0), (2, 0)]
    np.testing.assert_allclose(log.mdp.transitions.toarray(), [[2 / 3, 1 / 3, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]])
    np.testing.assert_allclose(log.policy, [3 / 4, 1 / 4, 1, 1])
    np.testing.assert_allclose(log.mdp.initial, [1 / 2, 1 / 2, 0])
    assert log.visits.tolist() == [3, 1, 1, 0]
    # From 0: 3/4 · (2/3 stay + 1/3 to 1) + 1/4 to 2; from 1 back to 0; 2 stays. ν = (1-γ)ν₀ + γ Pᵀν, γ = 1/2.
    chain = np.array([[1 / 2, 1 / 4, 1 / 4], [1, 0, 0], [0, 0, 1]])
    nu = np.linalg.solve(np.eye(3) - 0.5 * chain.T, 0.5 * np.array([1 / 2, 1 / 2, 0]))
    np.testing.assert_allclose(log.expert, [nu[0] * 3 / 4, nu[0] / 4, nu[1], nu[2]], atol=1e-14)


def test_smoothing_adds_pseudo_counts_on_the_states_that_were_seen_to_follow():
    # Of state 0 the followers are 0, 1 and 2, of state 1 only 0; state 2 stays.
    kappa = 0.5
    mdp = TabularMDP.from_transitions(TINY, discount=0.5, smoothing=kappa)
    expected = [
        [(2 + kappa) / (3 + 3 * kappa), (1 + kappa) / (3 + 3 * kappa), kappa / (3 + 3 * kappa)],
        [kappa / (1 + 3 * kappa), kappa / (1 + 3 * kappa), (1 + kappa) / (1 + 3 * kappa)],
        [1, 0, 0],
        [0, 0, 1],
    ]
    np.testing.assert_allclose(mdp.transitions.toarray(), expected)


@pytest.mark.parametrize("smoothing", [0.0, 2.0])
@pytest.mark.parametrize(("unvisited", "guess"), [("self", [0, 1, 0]), ("uniform", [1, 0, 0])])
def test_pairs_that_were_never_seen_do_what_the_caller_says(unvisited, guess, smoothing):
    log = read_log(TINY, discount=0.5, unvisited=unvisited, smoothing=smoothing)
    assert log.mdp.n_pairs == 6
    assert log.mdp.transitions.toarray()[3:].tolist() == [guess, [0, 0, 1], [0, 0, 1]]  # (1, 1), (2, 0), (2, 1)
    assert log.visits.tolist() == [3, 1, 1, 0, 0, 0]


def test_feasible_pairs_limit_what_is_guessed_and_expose_rows_that_cannot_be():
    feasible = [(0, 0), (0, 1), (1, 0), (2, 1)]
    for unvisited in ("infeasible", "uniform"):
        log = read_log(TINY, discount=0.5, unvisited=unvisited, feasible=feasible)
        assert log.pair_labels() == feasible  # the end, 2, stays in the one action that it has
        assert log.report.n_unvisited == 1
    with pytest.warns(UserWarning, match=r"1 of 5 .* not among the feasible pairs, 1 \(row 4: 0\)"):
        log = read_log(TINY, discount=0.5, feasible=feasible[:2], max_dropped=0.5)
    assert log.report.ends == (1, 2)


@given(mdps(max_discount=0.9), seeds)
@early_ends
def test_the_estimate_explains_exactly_the_episodes_it_came_from(mdp, seed):
    # Under maximum likelihood, P̂ and π̂ agree with a plain count of the rows, whatever they are.
    episodes = demonstrate(mdp, random_policy(mdp, seed), 4, 6, seed=seed)
    log = read_log(episodes, discount=mdp.discount, expert="episodes")
    rows = [(*step,) for e in episodes for step in zip(e.obs[:-1], e.acts, e.obs[1:], strict=True)]
    for (s, a), visits, row in zip(log.pair_labels(), log.visits, log.mdp.transitions.toarray(), strict=True):
        following = [s_next for i, j, s_next in rows if (i, j) == (s, a)]
        assert visits == len(following)
        if following:
            np.testing.assert_allclose(row, np.bincount(following, minlength=log.mdp.n_states) / visits)
    first = np.bincount([e.obs[0] for e in episodes], minlength=log.mdp.n_states) / 4
    np.testing.assert_allclose(log.mdp.initial, first)
    np.testing.assert_allclose(
        log.expert, occupancy_from_demonstrations(episodes, log.mdp, estimator="count"), atol=1e-12
    )


@early_ends
def test_trajectories_arrays_tables_csv_and_parquet_give_the_same(inventory, csv, tmp_path):
    pandas = pytest.importorskip("pandas")
    mdp = inventory.mdp
    episodes = demonstrate(mdp, mdp.uniform_policy(), 20, 50, seed=1)
    frame = pandas.DataFrame(
        {
            "day": np.tile(np.arange(50), 20),
            "shop": np.repeat(np.arange(20), 50),
            "stock": np.concatenate([e.obs[:-1] for e in episodes]),
            "order": np.concatenate([e.acts for e in episodes]),
            "next_stock": np.concatenate([e.obs[1:] for e in episodes]),
        }
    )
    mixed = frame.sample(frac=1, random_state=0)  # time and episode put it in order again
    mixed.to_csv(tmp_path / "log.csv", index=False)
    mixed.to_csv(tmp_path / "log.csv.gz", index=False)
    mixed.to_csv(tmp_path / "semicolons.csv", index=False, sep=";")
    mixed.to_parquet(tmp_path / "log.parquet")
    options = {"discount": 0.9, "state_labels": range(16), "action_labels": range(16), "ends": "stay"}
    reference = read_log(episodes, **options, expert="episodes")
    paths = [tmp_path / name for name in ("log.csv", "log.csv.gz", "semicolons.csv", "log.parquet")]
    for source in (frame, mixed, mixed.astype(str), {name: mixed[name].to_numpy() for name in mixed}, *paths):
        log = read_log(source, **options, **NAMES, **EPISODES, expert="episodes")
        np.testing.assert_array_equal(log.mdp.transitions.toarray(), reference.mdp.transitions.toarray())
        np.testing.assert_array_equal(log.mdp.initial, reference.mdp.initial)
        np.testing.assert_allclose(log.expert, reference.expert, atol=1e-14)
    arrays = tuple(frame[name].to_numpy() for name in ("stock", "order", "next_stock"))
    one_by_one = SimpleNamespace(obs=arrays[0][:, None], acts=arrays[1], next_obs=arrays[2])
    batches = [
        {"obs": s, "acts": a, "next_obs": n}
        for s, a, n in zip(*(np.split(array, [100, 500]) for array in arrays), strict=True)
    ]
    policies = read_log(episodes, **options, expert="policy", initial=np.full(16, 1 / 16))
    for source in (arrays, [list(array) for array in arrays], one_by_one, batches):
        log = read_log(source, **options, initial=np.full(16, 1 / 16))
        np.testing.assert_array_equal(log.mdp.transitions.toarray(), reference.mdp.transitions.toarray())
        np.testing.assert_allclose(log.expert, policies.expert, atol=1e-14)


@bad_rows
def test_the_expert_is_the_policy_of_all_rows_even_with_episodes(csv):
    path = csv("1,a,0,1,1\n2,a,1,0,0\n1,b,?,0,1\n")
    log = read_log(path, discount=0.5, **NAMES, **EPISODES, max_dropped=0.5)
    np.testing.assert_allclose(log.expert, log.mdp.occupancy_of(log.policy))
    np.testing.assert_allclose(log.mdp.flow(log.expert), log.mdp.initial, atol=1e-12)
    with pytest.raises(ValueError, match="the log has no episodes"):
        read_log(path, discount=0.5, **NAMES, expert="episodes", max_dropped=0.5)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"state": "stok"}, ValueError, r"state='stok': .*log.csv has no such column, .* did you mean 'stock'\?"),
        ({"next_state": "zzz"}, ValueError, r"it has day, shop, stock, order, next_stock$"),
        ({"time": "day"}, ValueError, "time='day' orders the rows of episodes, but no episode column"),
        ({"smoothing": -1}, ValueError, "smoothing must be"),
        ({"discount": 1.0}, ValueError, "discount must be"),
        ({"unvisited": "drop"}, ValueError, "unvisited must be one of infeasible, self, uniform; got 'drop'"),
        ({"expert": "best"}, ValueError, "expert must be one of policy, episodes; got 'best'"),
        ({"initial": [1.0]}, ValueError, "initial has shape"),
        ({"state_labels": [1, 1]}, ValueError, "state_labels must hold .* none twice"),
        ({"action_labels": []}, ValueError, "action_labels must hold"),
        ({"action_labels": 3}, TypeError, "action_labels must be a sequence"),
        (
            {"action_labels": [77]},
            ValueError,
            r"no good row is left of 2: order .* labels given, 2 \(line 2, 3: '1', '0'\)",
        ),
    ],
)
def test_mistakes_in_the_arguments_of_read_log_are_named(csv, changes, error, message):
    with pytest.raises(error, match=message):
        read_log(csv("1,a,0,1,1\n2,a,1,0,0\n"), **({"discount": 0.9} | NAMES | changes))


def test_what_is_no_log_is_refused_with_a_reason(tmp_path, csv):
    for source, error, message in (
        (csv(""), ValueError, "no good row is left of 0: it is empty"),
        (tmp_path / "none.csv", FileNotFoundError, "none.csv is not a file"),
        (tmp_path / "log.xlsx", ValueError, "expected one of .csv, .csv.gz, .tsv, .txt, .parquet"),
        (([0, 1], [0], [1, 0]), ValueError, "columns must have one length"),
        ((np.zeros((2, 2)), [0, 0], [0, 0]), ValueError, "one entry per row"),
        ((["1e12", "0"], ["0", "0"], ["0", "0"]), ValueError, "which is no index"),
        ([], ValueError, "empty"),
        (7, TypeError, "demonstrations must be"),
        (SimpleNamespace(obs=[0], acts=[0]), ValueError, "must tell the next states"),
    ):
        with pytest.raises(error, match=message):
            read_log(source, discount=0.9, **(NAMES if isinstance(source, type(tmp_path)) else {}))


def test_costs_are_read_by_label_and_must_be_whole(csv):
    log = read_log(TINY, discount=0.5)
    costs = read_costs(csv("0,0,1.5\n0,1,-2\n1,0,1e2\n2,0,0\n5,5,5\n", header="state,action,cost\n"))
    assert log.pair_values("prior", costs).tolist() == [1.5, -2, 100, 0]
    assert read_costs({"state": [0], "action": [0], "cost": [1e20]}) == {(0, 0): 1e20}
    del costs[0, 1], costs[2, 0]
    with pytest.raises(ValueError, match=r"prior lacks 2 of the 4 state-action pairs of the log: \(0, 1\), \(2, 0\)$"):
        log.pair_values("prior", costs)
    for body, message in (
        ("0,0,1\n0,0,2\n", "line 3 repeats state 0, action 0"),
        ("0,0,1\n0,1,much\n", "line 3 must have .* a number as cost"),
        ("0,0,1\n0,,1\n", "line 3 must have"),
        ("0,0,1\n0,1\n", "line 3 must have"),
        ("0,0,nan\n", "line 2 must have"),
        ("0,0,-inf\n", "line 2 must have"),
        (f"0,0,{10**400}\n", "line 2 must have"),
        ("", "at least one row"),
    ):
        with pytest.raises(ValueError, match=message):
            read_costs(csv(body, header="state,action,cost\n"))


def logged(env, policy, shops, weeks, seed):
    """(states, actions, next states) of many shops at once."""
    mdp, rng = env.mdp, np.random.default_rng(seed)
    cumulative = mdp.table(policy, fill=0.0).cumsum(axis=1)
    state = rng.choice(mdp.n_states, size=shops, p=mdp.initial)
    rows = []
    for _ in range(weeks):
        action = (cumulative[state] <= rng.random((shops, 1)) * cumulative[state][:, -1:]).sum(axis=1)
        following = env.sample_next(state, action, rng)
        rows.append((state, action, following))
        state = following
    return tuple(np.concatenate(column) for column in zip(*rows, strict=True))


def standard_error(problem, acts, policy, cost, visits):
    """Of <e, c>, e = (μ̂_E - μ_E) - (μ̂_π - μ_π): to first order in P̂ - P and π̂ - π_E, by the delta method.

    With occupancy μ and value V of either policy under c, and Q = (1-γ)c + γPV of the expert's,

        <e, c> ≈ γ/(1-γ) Σ (P̂ - P)(s'|s, a) (μ_E V_E - μ_π V_π)(s, a; s') + 1/(1-γ) Σ ν_E(s) (π̂ - π_E)(a|s) Q(s, a),

    and rows of P̂ and π̂ are means over the visits of their pair or state, independent of each other given those.
    """
    mdp, gamma, p = problem.mdp, problem.mdp.discount, problem.mdp.transitions
    value, other = mdp.value_of(acts, cost), mdp.value_of(policy, cost)
    both = np.outer(problem.expert, value) - np.outer(mdp.occupancy_of(policy), other)
    table = p.toarray()
    model = ((table * both**2).sum(axis=1) - (table * both).sum(axis=1) ** 2) / visits
    q = mdp.sum_by_state(problem.expert)[mdp.pair_states] * ((1 - gamma) * cost + gamma * (p @ value))
    choice = (mdp.sum_by_state(acts * q**2) - mdp.sum_by_state(acts * q) ** 2) / mdp.sum_by_state(visits)
    return np.sqrt(gamma**2 * model.sum() + choice.sum()) / (1 - gamma)


def test_from_a_million_transitions_the_apprentice_is_within_sampling_error_of_the_true_models(inventory):
    env, mdp = inventory, inventory.mdp
    acts = mdp.policy_of(noisy_expert(mdp, env.cost_for(5, 8, 15), 0.3))
    problem = RLfDProblem(mdp, mdp.occupancy_of(acts), env.cost_for(4, 2, 14), alpha=0.1)
    exact = solve_exact(problem)

    def learned(model, expert):
        """What is learned, and its duality gap in the true problem: with its cost, and its policy's true occupancy."""
        solution = solve_exact(RLfDProblem(model, expert, problem.prior, problem.alpha))
        value = mdp.optimal(solution.cost).value
        return solution, problem.duality_gap(solution.cost, value, mdp.occupancy_of(solution.policy))

    log = read_log(logged(env, acts, 10_000, 100, seed=0), discount=mdp.discount, initial=mdp.initial)
    assert (log.report.n_used, log.mdp.n_pairs) == (1_000_000, mdp.n_pairs)
    solution, gap = learned(log.mdp, log.expert)

    # The value of a min-max problem moves to first order as L does at the saddle point: by <e, c> of the true solution.
    error = standard_error(problem, acts, exact.policy, exact.cost, log.visits)
    assert abs(solution.upper - exact.upper) <= 5 * error

    # The apprentice itself: as good an answer to the true problem as those from tables whose rows are drawn afresh,
    # with as many visits, from the true ones. Worse than all of 49 such answers it would be in one log of fifty.
    rng, table = np.random.default_rng(1), mdp.transitions.toarray()
    totals = mdp.sum_by_state(log.visits)
    gaps, values = [], []
    for _ in range(49):
        taken = np.concatenate([rng.multinomial(n, acts[mdp.pair_states == s]) for s, n in enumerate(totals)])
        drawn = rng.multinomial(log.visits, table) / log.visits[:, None]
        model = TabularMDP(drawn, mdp.pair_states, mdp.pair_actions, mdp.initial, mdp.discount, mdp.n_actions)
        afresh, gap_afresh = learned(model, model.occupancy_of(model.policy_of(taken)))
        gaps.append(gap_afresh)
        values.append(afresh.upper)
    assert gap <= max(gaps)
    assert np.std(values) == pytest.approx(
        error, rel=0.4
    )  # the formula is right: 4 standard errors of a deviation of 49

    # Both say something: a demand that is 5% off passes neither.
    for share in (0.95, 1.05):
        wrong = type(env)(demand_mean=share * env.demand_mean).mdp
        solution, gap = learned(wrong, wrong.occupancy_of(acts))
        assert abs(solution.upper - exact.upper) > 5 * error
        assert gap > max(gaps)


def test_from_transitions_takes_one_log_or_three_arrays():
    arrays = [0, 0, 1], [0, 1, 0], [1, 0, 1]
    one, three = TabularMDP.from_transitions(arrays, discount=0.5), TabularMDP.from_transitions(*arrays, discount=0.5)
    np.testing.assert_array_equal(one.transitions.toarray(), three.transitions.toarray())
    with pytest.raises(TypeError, match=r"expected one log or three arrays \(states, actions, next states\), got 2"):
        TabularMDP.from_transitions(*arrays[:2], discount=0.5)


def test_episodes_of_arrays_cannot_be_named():
    with pytest.raises(ValueError, match="episode='shop' names a column of a table"):
        read_log(TINY, discount=0.9, episode="shop")

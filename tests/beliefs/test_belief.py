"""What every belief promises: its inner minimum, its excess and its gradient, on random beliefs and random d."""

from __future__ import annotations

import pickle
from inspect import signature

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import make_mdp, random_basis, seeds

from rlfd_gym.beliefs import Ball, Belief, Hull, Intervals, NearPrior, Prices
from rlfd_gym.experts.scale import CostScale

KINDS = ("l2", "l1", "l1 with weights", "hull", "prices", "intervals", "ball")
WITH_PENALTY = KINDS[:5]
COSTS = ("l2", "l1", "l1 with weights", "intervals", "ball")  # x is the cost
ALPHAS = (0.0, 1e-3, 0.1, 2.0)


def make_belief(kind: str, n_pairs: int, alpha: float, seed: int, prior_size: float = 1.0) -> Belief:
    """A random belief; its prior may leave the box."""
    rng = np.random.default_rng(seed)
    prior = prior_size * rng.uniform(-1, 1, n_pairs)
    if kind == "hull":
        return Hull(random_basis(n_pairs, int(rng.integers(1, 6)), seed), prior, alpha)
    if kind == "prices":
        size = int(rng.integers(1, 7))
        low, width = rng.uniform(-1, 1, size), rng.random(size) * (rng.random(size) < 0.7)
        guess = prior_size * rng.uniform(-1, 1, size)
        return Prices(random_basis(n_pairs, size, seed), low, low + width, prior, prior=guess, alpha=alpha)
    if kind == "intervals":
        middle, half = np.clip(prior, -1, 1), rng.random(n_pairs) * (rng.random(n_pairs) < 0.7)
        return Intervals(middle - half, middle + half)
    if kind == "ball":
        reach = np.linalg.norm(np.maximum(np.abs(prior) - 1, 0))
        return Ball(prior, reach + rng.choice([0.0, 0.1, 2.0]))
    weights = rng.exponential(size=n_pairs) * (rng.random(n_pairs) < 0.8)
    return NearPrior(prior, alpha, kind[:2], weights if "weights" in kind else None, outside_box=True)


@st.composite
def beliefs_and_d(draw: st.DrawFn) -> tuple[Belief, np.ndarray]:
    """A belief, and a difference of two occupancies, or of something larger or smaller."""
    n_pairs, seed = draw(st.integers(1, 12)), draw(seeds)
    sizes = draw(st.sampled_from(KINDS)), n_pairs, draw(st.sampled_from(ALPHAS)), seed
    belief = make_belief(*sizes, draw(st.sampled_from([0.5, 1.0, 3.0])))
    one, other = np.random.default_rng(seed + 1).dirichlet(np.full(n_pairs, 0.5), size=2)
    return belief, draw(st.sampled_from([1e-6, 1.0, 30.0])) * (one - other)


def objective(belief: Belief, x: np.ndarray, d: np.ndarray) -> float:
    """Ω(C(x)) + <d, C(x)>, from its definition."""
    cost = belief.cost(x)
    return belief.penalty(x) + float(d @ cost)


def draw_inside(belief: Belief, rng: np.random.Generator) -> np.ndarray:
    """A random x of the belief."""
    if isinstance(belief, Prices):
        return rng.uniform(belief.low, belief.high)
    if isinstance(belief, Ball):
        step = rng.normal(size=belief.prior.size)
        return belief.nearest(belief.prior + rng.random() * belief.radius / np.linalg.norm(step) * step)
    return belief.start(rng, uniform=False)


def some_points(belief: Belief, seed: int, number: int = 60) -> list[np.ndarray]:
    """Feasible points: random ones, corners or the surface of the set, and its middle or prior."""
    rng = np.random.default_rng(seed)
    inside = [draw_inside(belief, rng) for _ in range(number)]
    if isinstance(belief, Hull):
        return [*inside, *np.eye(belief.basis.shape[1])]
    if isinstance(belief, (Prices, Intervals)):
        low, high = belief.low, belief.high
        corners = [np.where(rng.random(low.size) < 0.5, low, high) for _ in inside]
        return [*inside, *corners, np.clip(belief.prior, low, high)]
    if isinstance(belief, Ball):
        return [*inside, *(belief.nearest(belief.prior + 100 * (x - belief.prior)) for x in inside), belief.prior]
    return [*inside, *(np.sign(x) for x in inside), np.clip(belief.prior, -1, 1)]


def scale_of(belief: Belief, d: np.ndarray) -> float:
    """The size of the terms that the objective adds up."""
    return (
        1.0 + belief.largest * np.abs(d).sum() + belief.alpha * (1 + np.abs(belief.prior).sum()) ** 2 + np.abs(d).sum()
    )


@given(beliefs_and_d(), seeds)
def test_the_best_answer_is_feasible_and_no_other_feasible_point_is_better(belief_and_d, seed):
    belief, d = belief_and_d
    best = belief.best(d)
    np.testing.assert_allclose(belief.check(best), best, atol=1e-12)
    least = objective(belief, best, d)
    for x in some_points(belief, seed):
        assert objective(belief, x, d) >= least - 1e-12 * scale_of(belief, d)


@given(beliefs_and_d(), seeds)
def test_the_excess_is_the_distance_to_the_best_objective_and_not_negative(belief_and_d, seed):
    belief, d = belief_and_d
    least = objective(belief, belief.best(d), d)
    for x in some_points(belief, seed, 20):
        excess = belief.excess(x, d)
        assert excess >= 0
        assert excess == pytest.approx(objective(belief, x, d) - least, abs=1e-11 * scale_of(belief, d))


@given(beliefs_and_d())
def test_the_best_answer_has_no_excess(belief_and_d):
    belief, d = belief_and_d
    excess = belief.excess(belief.best(d), d)
    assert 0 <= excess <= (1e-12 * scale_of(belief, d) if isinstance(belief, (Hull, Ball)) else 0.0)


@given(beliefs_and_d(), seeds)
def test_the_gradient_is_the_slope_of_the_objective(belief_and_d, seed):
    belief, d = belief_and_d
    rng = np.random.default_rng(seed)
    assume(not isinstance(belief, Ball))  # it has no gradient: Algorithm 1 does not take it
    x, step = draw_inside(belief, rng), 1e-5
    if isinstance(belief, NearPrior):
        assume(np.abs(x - belief.prior).min() > 2 * step)  # away from the kink of the ℓ1 norm
    direction = rng.uniform(-1, 1, x.size)
    slope = (objective(belief, x + step * direction, d) - objective(belief, x - step * direction, d)) / (2 * step)
    assert belief.gradient(x, d) @ direction == pytest.approx(slope, abs=1e-8 * scale_of(belief, d))


@given(beliefs_and_d(), seeds)
def test_the_gradient_is_a_subgradient_everywhere(belief_and_d, seed):
    belief, d = belief_and_d
    assume(not isinstance(belief, Ball))
    here, *others = reversed(some_points(belief, seed, 20))  # the prior itself, or a corner of the simplex
    for x in others:
        tangent = objective(belief, here, d) + belief.gradient(here, d) @ (x - here)
        assert objective(belief, x, d) >= tangent - 1e-12 * scale_of(belief, d)


@given(beliefs_and_d(), seeds)
def test_the_ends_the_largest_cost_and_the_spread_bound_every_cost(belief_and_d, seed):
    belief, _ = belief_and_d
    low, high = belief.ends()
    for x in some_points(belief, seed):
        cost = belief.cost(belief.check(x))
        assert np.all(low - 1e-12 <= cost)
        assert np.all(cost <= high + 1e-12)
        assert np.abs(cost).max() <= belief.largest + 1e-12
        assert np.ptp(cost) <= belief.spread + 1e-12


@given(beliefs_and_d(), seeds)
def test_no_cost_with_at_most_the_penalty_of_the_best_answer_has_a_smaller_product(belief_and_d, seed):
    belief, d = belief_and_d
    best = belief.best(d)
    for x in some_points(belief, seed):
        if belief.penalty(x) <= belief.penalty(best):
            assert d @ belief.cost(x) >= d @ belief.cost(best) - 1e-12 * scale_of(belief, d)


@pytest.mark.parametrize("kind", WITH_PENALTY)
def test_another_alpha_leaves_everything_else_as_it_is(kind):
    belief = make_belief(kind, 5, 0.1, seed=0)
    other = belief.with_alpha(0.7)
    assert type(other) is type(belief)
    assert (belief.alpha, other.alpha) == (0.1, 0.7)
    for name, value in vars(belief).items():
        if name != "alpha":
            np.testing.assert_array_equal(getattr(other, name), value)


def locked_arrays(belief: Belief) -> list[str]:
    """The names of the arrays of a belief, none of which can be written to."""
    names = [name for name, value in vars(belief).items() if isinstance(value, np.ndarray)]
    assert not any(getattr(belief, name).flags.writeable for name in names)
    return names


@pytest.mark.parametrize("kind", KINDS)
def test_the_arrays_of_a_belief_are_locked_also_after_pickling(kind):
    belief = make_belief(kind, 5, 0.1, seed=0)
    copy = pickle.loads(pickle.dumps(belief))
    assert locked_arrays(copy) == locked_arrays(belief) != []
    for name, value in vars(belief).items():
        np.testing.assert_array_equal(getattr(copy, name), value)


@pytest.mark.parametrize("kind", [*COSTS, "hull"])
def test_a_belief_with_tables_is_over_an_mdp_the_belief_with_vectors(kind):
    mdp = make_mdp(1, 5, 3, 0.9)
    assert mdp.n_pairs < mdp.n_states * mdp.n_actions  # some actions are infeasible
    belief = make_belief(kind, mdp.n_pairs, 0.1, seed=0)
    fields = signature(type(belief)).parameters
    given = {name: getattr(belief, name) for name in fields if name in vars(belief)}
    tables = {k: mdp.table(v) if np.shape(v) == (mdp.n_pairs,) else v for k, v in given.items()}
    over = type(belief)(**tables).over(mdp)
    for name, value in vars(belief).items():
        np.testing.assert_array_equal(getattr(over, name), value)
    locked_arrays(over)


@pytest.mark.parametrize("kind", KINDS)
def test_a_belief_for_other_pairs_is_refused(kind):
    mdp = make_mdp(1, 5, 3, 0.9)
    with pytest.raises(ValueError, match=rf"(prior|weights|basis|features|low) has shape .*expected \({mdp.n_pairs},"):
        make_belief(kind, mdp.n_pairs + 1, 0.1, seed=0).over(mdp)


@pytest.mark.parametrize("kind", KINDS)
def test_a_belief_prints_its_numbers_and_not_its_arrays(kind):
    belief = make_belief(kind, 500, 0.25, seed=0)
    assert repr(belief).startswith(f"{type(belief).__name__}(alpha={belief.alpha}")
    assert len(repr(belief)) < 300  # a few prices are numbers, too


@pytest.mark.parametrize(
    "make",
    [
        lambda t, s: Ball(t, 1.0, scale=s),
        lambda t, s: Intervals(t, t + 1.0, scale=s),
        lambda t, s: NearPrior(t, 0.1, scale=s),
    ],
)
def test_a_table_in_money_may_have_gaps_where_no_action_is_feasible(make):
    mdp = make_mdp(1, 5, 3, 0.9)
    table, scale = mdp.table(np.linspace(-3.0, 3.0, mdp.n_pairs)), CostScale(-5.0, 5.0)
    assert np.isnan(table).any()
    np.testing.assert_allclose(
        make(table, scale).over(mdp).prior, make(mdp.pairs(table), scale).over(mdp).prior, rtol=0, atol=1e-15
    )

"""Costs up to shaping and scale: the projection, the distance, and both ways to solve the systems."""

from __future__ import annotations

import numpy as np
import pytest
from checks import dense_flow
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_mdp, mdps, random_cost, random_policy, seeds

from rlfd_gym.mdp import shaping
from rlfd_gym.mdp.shaping import nearest_equivalent, without_shaping
from rlfd_gym.problem import examples


@given(mdp=mdps(), seed=seeds)
def test_the_projection_is_that_of_dense_least_squares(mdp, seed):
    costs = np.column_stack([random_cost(mdp, seed), random_cost(mdp, seed + 1)])
    transpose = dense_flow(mdp).T
    shaped = transpose @ np.linalg.lstsq(transpose, costs, rcond=None)[0]
    np.testing.assert_allclose(without_shaping(mdp, costs), costs - shaped, atol=1e-8)
    np.testing.assert_array_equal(without_shaping(mdp, costs[:, 0]), without_shaping(mdp, costs)[:, 0])


@given(mdp=mdps(), seed=seeds, scale=st.floats(0.01, 100))
def test_shaping_and_scale_do_not_change_how_policies_compare(mdp, seed, scale):
    cost, value = random_cost(mdp, seed), np.random.default_rng(seed + 1).normal(size=mdp.n_states)
    other = scale * cost + mdp.flow_transpose(value)
    one, two = (mdp.occupancy_of(random_policy(mdp, seed + k)) for k in (2, 3))
    assert (one - two) @ other == pytest.approx(scale * ((one - two) @ cost), abs=1e-7 * (1 + scale))
    assert nearest_equivalent(mdp, other, cost).distance < 1e-6


@given(mdp=mdps(max_discount=0.9), seed=seeds)
def test_the_nearest_equivalent_cost_is_no_farther_than_any_other(mdp, seed):
    rng = np.random.default_rng(seed)
    cost, target = random_cost(mdp, seed), random_cost(mdp, seed + 1)
    near = nearest_equivalent(mdp, cost, target)
    assert np.linalg.norm(near.cost - target) == pytest.approx(near.distance, abs=1e-9)
    # It is equivalent: what is left of k c - cost is shaping.
    assert np.abs(without_shaping(mdp, near.scale * cost - near.cost)).max() < 1e-8
    for _ in range(20):
        other = rng.exponential() * cost + mdp.flow_transpose(rng.normal(size=mdp.n_states))
        assert np.linalg.norm(other - target) >= near.distance - 1e-9


def test_costs_that_disagree_are_as_far_apart_as_from_no_cost():
    mdp = make_mdp(3, 5, 3, 0.8)
    cost = random_cost(mdp, 4)
    near = nearest_equivalent(mdp, -cost, cost)
    assert near.scale == 0
    assert near.distance == pytest.approx(np.linalg.norm(without_shaping(mdp, cost)))


def test_a_cost_that_tells_no_policies_apart_becomes_zero():
    mdp = make_mdp(3, 5, 3, 0.99)
    shaped = mdp.flow_transpose(np.random.default_rng(0).normal(size=mdp.n_states))
    assert not without_shaping(mdp, shaped).any()
    near = nearest_equivalent(mdp, np.ones(mdp.n_pairs), shaped)
    assert (near.scale, near.distance) == (0, 0)


def test_the_distances_of_the_papers_prior():
    env = examples.inventory_env()
    prior = env.cost_for(4, 2, 14)
    assert np.linalg.norm(env.cost - prior) == pytest.approx(4.95, abs=5e-3)
    assert np.linalg.norm(without_shaping(env.mdp, env.cost - prior)) == pytest.approx(1.39, abs=5e-3)
    assert nearest_equivalent(env.mdp, env.cost, prior).distance == pytest.approx(0.298, abs=5e-4)


@pytest.mark.parametrize("discount", [0.7, 0.99])
def test_conjugate_gradients_find_what_the_factorisation_finds(monkeypatch, discount):
    mdp = examples.gridworld_env(12, discount=discount).mdp
    costs = np.column_stack([random_cost(mdp, 1), np.ones(mdp.n_pairs), np.zeros(mdp.n_pairs)])
    exact = without_shaping(mdp, costs)
    monkeypatch.setattr(shaping, "LU_STATES", 0)
    np.testing.assert_allclose(without_shaping(mdp, costs), exact, atol=1e-9)
    monkeypatch.setattr(shaping, "MOST_STEPS", 3)
    with pytest.raises(RuntimeError, match="conjugate gradients did not remove the shaping of a cost in 3 steps"):
        without_shaping(mdp, costs)


@pytest.mark.slow
def test_a_million_pairs_are_no_problem():
    env = examples.gridworld_env(500)
    left = without_shaping(env.mdp, env.cost)
    assert np.abs(env.mdp.flow(left)).max() < 1e-9

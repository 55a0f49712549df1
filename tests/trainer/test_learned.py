"""What a trainer has learned: its policy, its cost and its reward net."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from trainer_data import MARKS, QUICK, rows_of, walks

from rlfd_gym.mdp.adapters import unwrap

pytestmark = MARKS


def test_reading_what_was_learned_before_training_raises(make, inventory, careful):
    trainer = make(careful, inventory)
    for name in ("solution", "duality_gap", "cost_table"):
        with pytest.raises(RuntimeError, match="call train"):
            getattr(trainer, name)


def test_the_policy_is_uniform_over_feasible_actions_before_training(make, inventory, careful):
    trainer = make(careful, inventory)
    np.testing.assert_array_equal(
        trainer.policy.probabilities.numpy(), inventory.mdp.table(inventory.mdp.uniform_policy(), 0.0)
    )


def test_the_policy_never_orders_what_does_not_fit(make, inventory, careful):
    trainer = make(careful, inventory)
    held = trainer.policy
    states = np.repeat(np.arange(16), 500)
    for _ in range(2):
        assert (states + trainer.policy.predict(states)[0] <= 15).all()
        trainer.train(2000)
    assert trainer.policy is held


def test_the_state_occupancy_is_that_of_the_policy(make, inventory, careful):
    mdp = inventory.mdp
    for kind in ("occupancy", "mode", "greedy"):
        trainer = make(careful, inventory, policy_kind=kind)
        states = trainer.train(QUICK)
        policy = mdp.pairs(trainer.policy.probabilities.numpy())
        np.testing.assert_allclose(states, mdp.sum_by_state(mdp.occupancy_of(policy)), atol=1e-12)


def test_the_greedy_policy_is_optimal_for_the_learned_cost(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=guess, policy_kind="greedy")
    trainer.train(QUICK)
    best = inventory.mdp.optimal(trainer.solution.cost).policy
    np.testing.assert_array_equal(trainer.policy.probabilities.numpy(), inventory.mdp.table(best, 0.0))


def test_the_cost_table_has_nan_where_nothing_is_feasible(make, inventory, careful):
    trainer = make(careful, inventory)
    trainer.train(2000)
    table, mdp = trainer.cost_table, inventory.mdp
    assert np.isnan(table).sum() == 256 - 136
    assert (mdp.pairs(table) == trainer.solution.cost).all()


def test_the_reward_net_is_minus_the_cost(make, inventory, careful):
    trainer = make(careful, inventory)
    held = trainer.reward_net
    trainer.train(2000)
    assert trainer.reward_net is trainer.reward_train is trainer.reward_test is held
    mdp = inventory.mdp
    done = np.zeros(mdp.n_pairs, dtype=bool)
    rewards = held.predict_processed(mdp.pair_states, mdp.pair_actions, mdp.pair_states, done)
    assert (rewards == -trainer.solution.cost).all()


@pytest.mark.parametrize("spaces", [(5, 16), (16, 5), (None, 16)])
def test_an_own_reward_net_for_other_spaces_is_refused_before_training(make, inventory, careful, spaces):
    from imitation.rewards.reward_nets import BasicRewardNet

    states, actions = (gym.spaces.Box(-1, 1, (3,)) if n is None else Discrete(n) for n in spaces)
    with pytest.raises(ValueError, match=r"reward_net is for .* but env has 16 states and 16 actions"):
        make(careful, inventory, BasicRewardNet(states, actions))


def test_an_own_reward_net_is_fitted_in_place_and_the_error_logged(inventory, careful, tmp_path, monkeypatch):
    from imitation.rewards.reward_nets import BasicRewardNet
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer

    monkeypatch.setattr("rlfd_gym.trainer.reward.FIT_STEPS", 300)  # rough, but quick
    log = logger.configure(tmp_path, ["csv"])
    net = BasicRewardNet(inventory.observation_space, inventory.action_space, hid_sizes=(64,))
    trainer = RLfDTrainer(careful, inventory, net, solver="smd", custom_logger=log)
    trainer.train(QUICK, log_interval=0)
    log.close()
    assert trainer.reward_net is net
    mdp = inventory.mdp
    done = np.zeros(mdp.n_pairs, dtype=bool)
    rewards = net.predict(mdp.pair_states, mdp.pair_actions, mdp.pair_states, done)
    error = np.sqrt(np.mean((rewards + trainer.solution.cost) ** 2))
    logged = [
        float(row["rlfd/reward_fit_error"])
        for row in rows_of(tmp_path / "progress.csv")
        if row["rlfd/reward_fit_error"]
    ]
    assert logged == [pytest.approx(error, rel=1e-3)]
    assert error < 0.2 < trainer.solution.cost.std()


def test_without_a_prior_the_learned_cost_still_tells_costs_apart(make, inventory):
    # At α = 0 a constant cost explains every expert; it would be no reward to train on.
    optimal = inventory.mdp.optimal(inventory.cost)
    trainer = make(optimal.occupancy, inventory, solver="exact", policy_kind="greedy")
    trainer.train()
    assert np.nanstd(trainer.cost_table) > 0.1
    learned = inventory.mdp.pairs(trainer.policy.probabilities.numpy())
    assert inventory.mdp.expected_cost(learned, inventory.cost) == pytest.approx(optimal.expected_cost, abs=1e-6)


def test_an_exact_expert_is_reproduced_in_the_states_it_visits(make, inventory, careful):
    trainer = make(careful, inventory, solver="exact")
    trainer.train()
    visited = inventory.mdp.sum_by_state(careful) > 1e-6
    expert = inventory.mdp.table(inventory.mdp.policy_of(careful), 0.0)
    np.testing.assert_allclose(trainer.policy.probabilities.numpy()[visited], expert[visited], atol=1e-6)
    assert trainer.duality_gap < 1e-6


def test_with_a_large_alpha_the_prior_decides_alone(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=np.clip(guess, -1, 1), alpha=1e4, solver="exact")
    states = trainer.train()
    best = inventory.mdp.optimal(np.clip(guess, -1, 1))
    np.testing.assert_allclose(states, inventory.mdp.sum_by_state(best.occupancy), atol=1e-3)
    greedy = make(careful, inventory, prior=np.clip(guess, -1, 1), alpha=1e4, solver="exact", policy_kind="greedy")
    greedy.train()
    np.testing.assert_array_equal(greedy.policy.probabilities.numpy(), inventory.mdp.table(best.policy, 0.0))


def test_many_demonstrations_lead_to_the_demonstrators_policy(make, gridworld):
    mdp = gridworld.mdp
    plan = mdp.optimal(gridworld.cost)
    noisy = 0.8 * plan.policy + 0.2 * mdp.uniform_policy()
    trainer = make(walks(gridworld, noisy, 300), gridworld)
    trainer.train(3_000_000)
    learned = mdp.pairs(trainer.policy.probabilities.numpy())
    reached = mdp.expected_cost(learned, gridworld.cost)
    assert reached == pytest.approx(mdp.expected_cost(noisy, gridworld.cost), abs=0.03)
    assert unwrap(trainer.env) is gridworld


def test_the_mode_is_the_most_frequent_action_and_survives_a_file(make, inventory, careful, guess, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    trainer = make(careful, inventory, prior=guess, solver="exact", policy_kind="mode", estimator="count")
    trainer.train()
    chosen = trainer.policy.probabilities.numpy()
    np.testing.assert_array_equal(chosen, inventory.mdp.table(trainer.solution.read(inventory.mdp, "mode"), 0.0))
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    assert (again.policy_kind, again.estimator) == ("mode", "count")
    np.testing.assert_array_equal(again.policy.probabilities.numpy(), chosen)


def test_a_planned_policy_survives_a_file_with_its_guarantee(make, inventory, guess, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer, demonstrate

    mdp = inventory.mdp
    shown = demonstrate(mdp, mdp.uniform_policy(), 1, 5, seed=0)
    trainer = make(shown, inventory, prior=guess, solver="exact", estimator="count")
    trainer.train()
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    np.testing.assert_array_equal(again.solution.policy, trainer.solution.policy)
    assert again.solution.guarantee.improvement == pytest.approx(trainer.solution.guarantee.improvement, abs=1e-12)


def test_the_expert_is_estimated_as_asked_with_the_prior_where_it_was_not_seen(make, inventory, guess):
    from rlfd_gym import demonstrate, occupancy_from_demonstrations

    mdp = inventory.mdp
    shown = demonstrate(mdp, mdp.uniform_policy(), 2, 5, seed=0)
    for settings, how in [
        ({"prior": guess}, {"prior": guess}),
        ({}, {}),
        ({"prior": guess, "alpha": 0.0}, {}),
        ({"prior": guess, "estimator": "count"}, {"estimator": "count"}),
    ]:
        trainer = make(shown, inventory, **settings)
        np.testing.assert_allclose(trainer.problem.expert, occupancy_from_demonstrations(shown, mdp, **how), atol=1e-12)


def test_how_much_the_expert_varies_is_logged(inventory, tmp_path):
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer, demonstrate

    mdp = inventory.mdp
    shown = demonstrate(mdp, mdp.uniform_policy(), 20, 30, seed=0)
    log = logger.configure(tmp_path, ["csv", "log"])
    RLfDTrainer(shown, inventory, custom_logger=log).train()
    log.close()
    assert "if it errs, it errs at random" in (tmp_path / "log.txt").read_text()
    assert float(rows_of(tmp_path / "progress.csv")[-1]["rlfd/action_variation"]) > 0.5

"""`uncertainty`: the bootstrap of what was learned."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import make_mdp, random_cost, random_policy

from rlfd_gym import RLfDProblem, demonstrate, guarantee, read_log, solve_exact, uncertainty
from rlfd_gym.beliefs import Prices
from rlfd_gym.experts.logs.drawing import draws
from rlfd_gym.solvers.uncertainty import Learned, resampled

MDP = make_mdp(21, n_states=4, n_actions=2, discount=0.7)
POLICY = random_policy(MDP, 22)
PRIOR = random_cost(MDP, 23)
PROBLEM = RLfDProblem(MDP, MDP.occupancy_of(POLICY), PRIOR, 0.1)
QUIET = {"progress_bar": False}


def shown(number, seed=0):
    return demonstrate(MDP, POLICY, number, 16, seed=seed)


def test_identical_trajectories_leave_no_doubt():
    found = uncertainty(PROBLEM, [shown(1)[0]] * 5, n_resamples=7, **QUIET)
    np.testing.assert_allclose(found.cost_high - found.cost_low, 0, atol=1e-12)
    np.testing.assert_array_equal(found.chosen, found.solution.read(MDP, "mode"))
    np.testing.assert_allclose(found.sure, 1)
    for interval in (found.guaranteed, found.improvement):
        assert interval.low == pytest.approx(interval.estimate, abs=1e-12)
        assert interval.high == pytest.approx(interval.estimate, abs=1e-12)


def test_the_result_does_not_depend_on_the_number_of_jobs():
    one, two = (uncertainty(PROBLEM, shown(6), n_resamples=8, seed=5, n_jobs=n, **QUIET) for n in (1, 2))
    for name in ("cost_low", "cost_high", "chosen"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert (one.guaranteed, one.improvement) == (two.guaranteed, two.improvement)
    other = uncertainty(PROBLEM, shown(6), n_resamples=8, seed=6, **QUIET)
    assert not np.array_equal(one.cost_low, other.cost_low)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
def test_a_dask_cluster_makes_no_difference():
    distributed = pytest.importorskip("distributed")
    from joblib import parallel_config

    here = uncertainty(PROBLEM, shown(6), n_resamples=8, seed=5, **QUIET)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        there = uncertainty(PROBLEM, shown(6), n_resamples=8, seed=5, n_jobs=-1, **QUIET)
    np.testing.assert_array_equal([here.cost_low, here.cost_high], [there.cost_low, there.cost_high])
    assert (here.guaranteed, here.improvement) == (there.guaranteed, there.improvement)


def test_the_intervals_are_quantiles_of_what_is_learned_again():
    from rlfd_gym import occupancy_from_demonstrations

    walks = shown(5)
    found = uncertainty(PROBLEM, walks, n_resamples=20, confidence=0.8, estimator="count", seed=2, **QUIET)
    costs, chosen = [], []
    for which in np.random.default_rng(2).integers(5, size=(20, 5)):
        expert = occupancy_from_demonstrations([walks[k] for k in which], MDP, estimator="count")
        solution = solve_exact(RLfDProblem(MDP, expert, PRIOR, 0.1))
        costs.append(solution.cost)
        chosen.append(solution.read(MDP, "mode"))
    np.testing.assert_allclose([found.cost_low, found.cost_high], np.quantile(costs, [0.1, 0.9], axis=0), atol=1e-9)
    np.testing.assert_allclose(found.chosen, np.mean(chosen, axis=0), atol=1e-12)
    np.testing.assert_allclose(MDP.sum_by_state(found.chosen), 1)
    assert "resamples of 5 trajectories" in str(found)


def test_prices_have_intervals_of_their_own():
    rng = np.random.default_rng(0)
    belief = Prices(rng.uniform(-0.5, 0.5, (MDP.n_pairs, 2)), [0.2, 0.1], [0.8, 0.9])
    found = uncertainty(RLfDProblem(MDP, PROBLEM.expert, belief=belief), shown(6), n_resamples=10, **QUIET)
    assert found.mixture_low.shape == found.mixture_high.shape == (2,)
    assert (found.mixture_low <= found.mixture_high).all()
    own = uncertainty(PROBLEM, shown(6), n_resamples=2, **QUIET)
    assert own.mixture_low is None


def test_a_log_may_learn_its_model_again_too():
    drawn = []

    def learn(which):
        drawn.append(which.tolist())
        return Learned(np.array([np.nan, float(which.sum())]), None, np.array([1.0, 0.0]), 0.0, 0.0)

    answers = list(resampled(learn, 3, n_resamples=4, seed=0, progress_bar=False))
    assert [one.cost[1] for one in answers] == [sum(which) for which in drawn]
    assert all(len(which) == 3 and set(which) <= {0, 1, 2} for which in drawn)


@pytest.mark.slow
def test_the_interval_of_the_improvement_covers_what_the_exact_expert_gives():
    exact = solve_exact(PROBLEM)
    truth = float(PROBLEM.expert @ exact.cost) - MDP.expected_cost(exact.policy, exact.cost)
    covered = []
    for seed in range(60):
        found = uncertainty(PROBLEM, shown(60, seed), n_resamples=100, **QUIET)
        covered.append(found.improvement.low <= truth <= found.improvement.high)
    assert np.mean(covered) >= 0.85


def test_the_guaranteed_improvement_is_that_of_the_solution():
    found = uncertainty(PROBLEM, shown(6), n_resamples=3, **QUIET)
    promise = found.solution.guarantee
    assert found.guaranteed.estimate == promise.improvement
    again = guarantee(MDP, found.solution.policy, MDP.occupancy_of(found.solution.policy), promise.belief)
    assert again.improvement <= 1e-9  # nobody is better than oneself


def test_what_cannot_be_resampled_is_refused():
    with pytest.raises(TypeError, match="demonstrations are needed with a problem"):
        uncertainty(PROBLEM)
    with pytest.raises(ValueError, match="at least two trajectories"):
        uncertainty(PROBLEM, shown(1))
    with pytest.raises(TypeError, match="source must be an RLfDTrainer or an RLfDProblem"):
        uncertainty("trainer", shown(2))


@pytest.mark.needs_imitation
@pytest.mark.filterwarnings("ignore:tried to wrap", "ignore:trying to unwrap")
def test_a_trainer_is_asked_for_its_own_demonstrations():
    from rlfd_gym import RLfDTrainer
    from rlfd_gym.problem import examples
    from rlfd_gym.trainer import quiet_logger

    env, problem = examples.inventory_env(), examples.inventory()
    walks = demonstrate(env.mdp, env.mdp.policy_of(problem.expert), 4, 60, seed=0)
    trainer = RLfDTrainer(walks, env, prior=problem.prior, custom_logger=quiet_logger())
    trainer.train()
    found = uncertainty(trainer, n_resamples=3, **QUIET)
    np.testing.assert_allclose(found.solution.cost, trainer.solution.cost, atol=1e-9)
    with pytest.raises(TypeError, match="belong to the trainer"):
        uncertainty(trainer, walks)
    trainer.set_demonstrations(problem.expert)
    with pytest.raises(ValueError, match="it has an occupancy"):
        uncertainty(trainer)


def logged(number, seed=0):
    walks = shown(number, seed)
    rows = [(k, t, w.obs[t], w.acts[t], w.obs[t + 1]) for k, w in enumerate(walks) for t in range(len(w.acts))]
    names = ("episode", "time", "state", "action", "next_state")
    table = {name: [int(row[i]) for row in rows] for i, name in enumerate(names)}
    return read_log(table, discount=0.7, episode="episode", time="time")


@pytest.mark.parametrize("number", [5, 60])  # rows are resampled, and whole episodes
def test_a_log_is_learned_from_again_with_tables_of_its_own(number):
    log = logged(number)
    prior = np.random.default_rng(0).uniform(-1, 1, log.mdp.n_pairs)
    problem = RLfDProblem(log.mdp, log.expert, prior, 0.1)
    found = uncertainty(problem, log, n_resamples=12, confidence=0.8, seed=3, **QUIET)
    costs, chosen = [], []
    for draw in draws(log, 12, np.random.default_rng(3)):
        again = solve_exact(RLfDProblem(draw.mdp, draw.mdp.occupancy_of(draw.policy), prior, 0.1))
        costs.append(again.cost)
        chosen.append(again.read(draw.mdp, "mode"))
    np.testing.assert_allclose([found.cost_low, found.cost_high], np.quantile(costs, [0.1, 0.9], axis=0), atol=1e-9)
    np.testing.assert_allclose(found.chosen, np.mean(chosen, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.solution.cost, solve_exact(problem).cost, atol=1e-9)
    two = uncertainty(problem, log, n_resamples=12, confidence=0.8, seed=3, n_jobs=2, **QUIET)
    np.testing.assert_array_equal(found.cost_low, two.cost_low)
    assert f"resamples of {number} trajectories" in str(found)


def test_more_rows_of_a_log_make_surer():
    wide = []
    for number in (40, 640):
        log = logged(number)
        problem = RLfDProblem(log.mdp, log.expert, np.linspace(-1, 1, log.mdp.n_pairs), 0.1)
        found = uncertainty(problem, log, n_resamples=30, **QUIET)
        wide.append(float(np.mean(found.cost_high - found.cost_low)))
    assert wide[1] < wide[0] / 2  # a quarter, were it linear


def test_a_log_needs_a_problem_on_its_tables_and_no_estimator():
    log = logged(5)
    with pytest.raises(ValueError, match="source must be a problem on the tables of the log"):
        uncertainty(PROBLEM, log)
    with pytest.raises(TypeError, match="estimator does not apply to a log"):
        uncertainty(RLfDProblem(log.mdp, log.expert), log, estimator="policy")

"""Training: in parts, logged, called back, and how far it comes."""

from __future__ import annotations

import numpy as np
import pytest
from trainer_data import MARKS, QUICK, rows_of

pytestmark = MARKS


def test_training_in_parts_gives_the_result_of_training_at_once(make, inventory, careful, guess):
    settings = {"prior": guess, "step_size": 1e-3, "n_runs": 2}
    whole, parts, logged = (make(careful, inventory, **settings) for _ in range(3))
    expected = whole.train(QUICK, log_interval=0)
    parts.train(QUICK // 4)
    np.testing.assert_allclose(parts.train(QUICK - QUICK // 4), expected, atol=1e-11)
    np.testing.assert_allclose(logged.train(QUICK, log_interval=777), expected, atol=1e-11)
    assert parts.solution.n_iterations == QUICK


def test_step_sizes_are_the_theorems_for_all_iterations_of_a_call(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=guess)
    trainer.train(QUICK)
    problem = trainer.problem
    eta, _ = problem.step_sizes(problem.accuracy(QUICK))
    assert trainer.solution.stats["step_sizes"][0] == pytest.approx(eta)
    wanted = make(careful, inventory, prior=guess, epsilon=60.0)
    wanted.train()
    assert wanted.solution.n_iterations == problem.iterations(60.0)


def test_the_same_seed_gives_the_same_result_and_another_does_not(make, inventory, careful):
    one, same, other = (make(careful, inventory, rng=rng) for rng in (np.random.default_rng(5), 5, 6))
    assert (one.train(QUICK) == same.train(QUICK)).all()
    assert (one.policy.predict(np.arange(16))[0] == same.policy.predict(np.arange(16))[0]).all()
    assert (other.train(QUICK) != same.train(QUICK)).any()


def test_drawing_actions_does_not_disturb_training(make, inventory, careful):
    one, other = make(careful, inventory), make(careful, inventory)
    other.policy.predict(np.arange(16))
    assert (one.train(QUICK) == other.train(QUICK)).all()


def test_more_training_certifies_a_smaller_gap(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=guess)
    trainer.train(QUICK)
    rough = trainer.duality_gap
    trainer.train(1_000_000)
    solution = trainer.solution
    assert trainer.duality_gap < rough / 2
    assert trainer.duality_gap == trainer.problem.duality_gap(solution.cost, solution.value, solution.occupancy)
    assert trainer.solution.n_iterations == 1_000_000 + QUICK


def test_runs_too_large_to_keep_are_made_in_one_part_and_cannot_continue(make, inventory, careful, monkeypatch):
    from rlfd_gym.solvers.smd import runs as smd

    kept = make(careful, inventory)
    kept.train(QUICK, log_interval=0)
    monkeypatch.setattr(smd, "RESUME_BYTES", 0)
    trainer, seen = make(careful, inventory), []
    trainer.train(QUICK, callback=seen.append)
    assert seen == [QUICK]
    np.testing.assert_array_equal(trainer.solution.cost, kept.solution.cost)
    with pytest.raises(RuntimeError, match="training cannot continue: 1 runs of this size are too large to be kept"):
        trainer.train(QUICK)


def test_runs_are_averaged_and_their_number_cannot_change(make, inventory, careful):
    trainer = make(careful, inventory)
    trainer.train(2000, n_runs=3)
    assert trainer.solution.stats["n_runs"] == 3
    trainer.train(2000)
    assert trainer.solution.stats["n_runs"] == 3
    with pytest.raises(ValueError, match="n_runs is 2, but training continues with the 3 runs"):
        trainer.train(2000, n_runs=2)


def test_a_callback_sees_the_progress_and_can_stop_it(make, inventory, careful):
    trainer = make(careful, inventory)
    seen = []
    trainer.train(1000, callback=seen.append, log_interval=300)
    assert seen == [300, 600, 900, 1000]
    gaps = []

    def stop(iteration):
        gaps.append(trainer.duality_gap)
        return len(gaps) < 2

    trainer.train(1000, callback=stop, log_interval=100)
    assert trainer.solution.n_iterations == 1200
    assert len(gaps) == 2


def test_a_progress_bar_shows_on_request(make, inventory, careful, capfd):
    make(careful, inventory).train(2000, progress_bar=True)
    assert "SMD-RLfD" in capfd.readouterr().err
    make(careful, inventory).train(2000)
    assert "SMD-RLfD" not in capfd.readouterr().err


@pytest.mark.parametrize("arguments", [{"max_iter": 0}, {"max_iter": 2.5}, {"log_interval": -1}, {"n_runs": 0}])
def test_bad_training_arguments_are_refused(make, inventory, careful, arguments):
    with pytest.raises((ValueError, TypeError), match=next(iter(arguments))):
        make(careful, inventory).train(**{"max_iter": 1000} | arguments)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_progress_is_logged_to_csv_tensorboard_and_stdout(inventory, careful, guess, tmp_path, capsys):
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer

    log = logger.configure(tmp_path, ["stdout", "csv", "tensorboard"])
    trainer = RLfDTrainer(careful, inventory, prior=guess, solver="smd", custom_logger=log)
    trainer.train(4000, log_interval=1000)
    log.close()
    rows = rows_of(tmp_path / "progress.csv")
    assert [int(row["rlfd/iteration"]) for row in rows] == [1000, 2000, 3000, 4000]
    last = {name: float(value) for name, value in rows[-1].items() if value}
    assert last["rlfd/duality_gap"] == pytest.approx(trainer.duality_gap, rel=1e-6)
    assert last["rlfd/upper_bound"] - last["rlfd/lower_bound"] == pytest.approx(trainer.duality_gap, rel=1e-6)
    cost = trainer.solution.cost
    assert last["rlfd/expert_cost"] == pytest.approx(careful @ cost, rel=1e-6)
    assert last["rlfd/apprentice_cost"] == pytest.approx(inventory.mdp.expected_cost(trainer.solution.policy, cost))
    assert last["rlfd/prior_distance"] == pytest.approx(np.linalg.norm(cost - guess), rel=1e-6)
    assert last["rlfd/theorem_bound"] == pytest.approx(trainer.problem.accuracy(4000), rel=1e-6)
    assert {"rlfd/change_cost", "rlfd/change_value", "rlfd/change_occupancy"} <= set(last)
    assert list(tmp_path.glob("events.out.tfevents*"))
    assert "duality_gap" in capsys.readouterr().out
    assert trainer.solution.history.iteration.tolist() == [1000, 2000, 3000, 4000]


def test_training_that_ends_with_a_large_gap_logs_a_warning(inventory, careful, capsys, tmp_path):
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer

    log = logger.configure(tmp_path, ["stdout"])
    RLfDTrainer(careful, inventory, solver="smd", custom_logger=log).train(1000)
    assert "the duality gap is still" in capsys.readouterr().out


def test_smd_and_the_exact_solver_agree(make, inventory, careful, guess):
    exact, smd = (make(careful, inventory, prior=guess, alpha=0.1, solver=solver) for solver in ("exact", "smd"))
    exact.train()
    smd.train(5_000_000)
    assert smd.solution.lower <= exact.solution.upper + 1e-9
    assert exact.solution.lower <= smd.solution.upper + 1e-9
    assert np.abs(exact.solution.cost - smd.solution.cost).max() < 0.25

"""Trainers in files: what is saved, and what a file may not do."""

from __future__ import annotations

import json
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from trainer_data import MARKS, QUICK

pytestmark = MARKS


@pytest.fixture
def saved(make, inventory, careful, guess, tmp_path):
    """A trained trainer and the file it was saved to."""
    trainer = make(careful, inventory, prior=guess, n_runs=2, policy_kind="greedy", rng=3)
    trainer.train(QUICK)
    trainer.save(tmp_path / "trainer.npz")
    return trainer, tmp_path / "trainer.npz"


def test_a_saved_trainer_is_the_same_and_continues(saved, inventory, quiet):
    from rlfd_gym import RLfDTrainer
    from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA

    trainer, path = saved
    again = RLfDTrainer.load(path, inventory, custom_logger=quiet)
    assert [item.name for item in path.parent.iterdir()] == ["trainer.npz"]
    for name in ("cost", "value", "occupancy", "policy"):
        assert (getattr(again.solution, name) == getattr(trainer.solution, name)).all()
    assert again.duality_gap == trainer.duality_gap
    assert (again.policy.probabilities == trainer.policy.probabilities).all()
    assert (again.reward_net.table == trainer.reward_net.table).all()
    assert (again.alpha, again.policy_kind, again.n_runs) == (DEFAULT_ALPHA, "greedy", 2)
    assert again.solution.history.iteration.tolist() == trainer.solution.history.iteration.tolist()
    np.testing.assert_allclose(again.train(QUICK), trainer.train(QUICK), atol=1e-11)


def test_a_trainer_can_be_saved_before_training(make, inventory, careful, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    trainer = make(careful, inventory, step_size=(1e-3, 1e-4), rng=9)
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    np.testing.assert_allclose(again.train(2000), trainer.train(2000), atol=1e-12)
    empty = make(None, inventory)
    empty.save(tmp_path / "trainer.npz")
    with pytest.raises(RuntimeError, match="no demonstrations yet"):
        RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet).train(2000)


@pytest.mark.parametrize(
    "settings",
    [{"n_jobs": np.int64(1)}, {"step_size": (np.float32(1e-3), 1e-4)}, {"epsilon": np.float32(5)}],
    ids=lambda settings: next(iter(settings)),
)
def test_numpys_numbers_are_saved_as_numbers(make, inventory, careful, tmp_path, quiet, settings):
    from rlfd_gym import RLfDTrainer

    make(careful, inventory, **settings).save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    for name, value in settings.items():
        assert getattr(again, name) == value


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_any_generator_of_the_policy_is_saved(make, inventory, careful, tmp_path, quiet, kind):
    from rlfd_gym import RLfDTrainer

    trainer, states = make(careful, inventory), np.zeros(100, dtype=int)
    trainer.policy.seed(np.random.Generator(getattr(np.random, kind)(1)))
    trainer.policy.predict(states)
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    assert (again.policy.predict(states)[0] == trainer.policy.predict(states)[0]).all()


def test_an_own_reward_net_is_fitted_when_loading(saved, inventory, quiet, monkeypatch):
    from imitation.rewards.reward_nets import BasicRewardNet

    from rlfd_gym import RLfDTrainer

    monkeypatch.setattr("rlfd_gym.trainer.reward.FIT_STEPS", 300)  # rough, but quick
    net = BasicRewardNet(inventory.observation_space, inventory.action_space, hid_sizes=(64,))
    trainer = RLfDTrainer.load(saved[1], inventory, net, custom_logger=quiet)
    mdp = inventory.mdp
    done = np.zeros(mdp.n_pairs, dtype=bool)
    rewards = net.predict(mdp.pair_states, mdp.pair_actions, mdp.pair_states, done)
    assert (rewards + trainer.solution.cost).std() < 0.2 < trainer.solution.cost.std()


def test_damaged_files_are_refused(saved, inventory):
    from rlfd_gym import RLfDTrainer

    path = saved[1]
    whole = path.read_bytes()
    for content in (b"", b"junk", whole[:50], whole[: len(whole) // 2], whole[:-30]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"damaged or no rlfd_gym\.RLfDTrainer file"):
            RLfDTrainer.load(path, inventory)
    with pytest.raises(FileNotFoundError):
        RLfDTrainer.load(path.parent / "missing.npz", inventory)
    with pytest.raises(TypeError, match="needs an environment: pass either env or venv"):
        RLfDTrainer.load(path)


def test_foreign_newer_and_incomplete_files_are_refused(saved, inventory):
    from rlfd_gym import RLfDTrainer

    path = saved[1]

    def written(**header):
        np.savez(path, header=np.array(json.dumps(header)))
        return path

    np.savez(path, weights=np.zeros(3))
    with pytest.raises(ValueError, match="damaged or no"):
        RLfDTrainer.load(path, inventory)
    with pytest.raises(ValueError, match=r"is a 'other' file, expected 'rlfd_gym\.RLfDTrainer'"):
        RLfDTrainer.load(written(format="other", version=1), inventory)
    with pytest.raises(ValueError, match="has version 99, this rlfd_gym reads up to 2"):
        RLfDTrainer.load(written(format="rlfd_gym.RLfDTrainer", version=99), inventory)
    with pytest.raises(ValueError, match=r"cannot be loaded \(KeyError: 'settings'\)"):
        RLfDTrainer.load(written(format="rlfd_gym.RLfDTrainer", version=1), inventory)


def test_a_file_for_another_environment_is_refused(saved, gridworld):
    from rlfd_gym import RLfDTrainer

    with pytest.raises(ValueError, match="was saved for another environment"):
        RLfDTrainer.load(saved[1], gridworld)


@pytest.mark.parametrize("solver", ["exact", "smd"])
def test_a_file_for_the_same_pairs_with_other_transitions_is_refused(make, inventory, careful, tmp_path, quiet, solver):
    from rlfd_gym import RLfDTrainer

    trainer = make(careful, inventory, solver=solver)
    trainer.train(QUICK)
    trainer.save(tmp_path / "trainer.npz")
    RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    less_demand = gym.make("rlfd_gym/Inventory-v0", demand_mean=5.0)
    with pytest.raises(ValueError, match="was saved for another environment, whose transitions"):
        RLfDTrainer.load(tmp_path / "trainer.npz", less_demand, custom_logger=quiet)


def test_no_code_in_a_file_is_executed(saved, inventory, tmp_path):
    from rlfd_gym import RLfDTrainer

    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    np.savez(saved[1], header=np.array([Bomb()], dtype=object))
    (tmp_path / "exploded").unlink(missing_ok=True)
    with pytest.raises(ValueError, match="header holds object"):
        RLfDTrainer.load(saved[1], inventory)
    assert not (tmp_path / "exploded").exists()


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    trainer, path = saved
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez_compressed", lambda file, **arrays: file.write(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trainer.save(path)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["trainer.npz"]


def rewritten(path, change):
    """Write a file again after changing its header or its arrays."""
    with np.load(path) as archive:
        arrays = dict(archive)
    header = json.loads(str(arrays.pop("header")))
    change(header, arrays)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)
    return path


def of_version_1(header, arrays):
    """Name what is in a file as version 1 did; its runs were points and averages."""
    solution = header["solution"]
    stats, generators = solution.pop("stats"), solution.pop("generators")
    solution |= {"n_runs": stats["n_runs"], "step_sizes": stats["step_sizes"]}
    solution["runs"] = [{"count": solution["n_iterations"], "generator": bits} for bits in generators]
    header["version"] = 1
    del header["function"]
    arrays["last.cost"] = arrays.pop("last.x")
    arrays["history.change_weights"] = arrays.pop("history.change_mixture")
    for name in ("pair_buffer", "state_buffer", "tree", "clock"):
        del arrays[f"runs.{name}"]
    for part in ("iterate", "average"):
        for name in ("cost", "value", "occupancy"):
            arrays[f"runs.{part}.{name}"] = np.stack([arrays[f"last.{name}"]] * len(generators))


def test_a_file_of_version_1_is_loaded_without_its_runs(saved, inventory, careful, quiet):
    from rlfd_gym import RLfDTrainer

    trainer, path = saved
    again = RLfDTrainer.load(rewritten(path, of_version_1), inventory, custom_logger=quiet)
    for name in ("cost", "value", "occupancy", "policy"):
        assert (getattr(again.solution, name) == getattr(trainer.solution, name)).all()
    assert again.settings == trainer.settings
    assert again.solution.stats == trainer.solution.stats
    assert (again.solution.state.last.x == trainer.solution.state.last.x).all()
    assert again.solution.history.iteration.tolist() == trainer.solution.history.iteration.tolist()
    with pytest.raises(RuntimeError, match="training cannot continue: an older rlfd_gym saved the trainer"):
        again.train(QUICK)
    again.set_demonstrations(careful)
    again.train(QUICK)
    assert again.solution.n_iterations == QUICK


def test_an_exact_trainer_of_version_1_is_loaded_whole(make, inventory, careful, guess, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    trainer, path = make(careful, inventory, prior=guess, solver="exact"), tmp_path / "trainer.npz"
    states = trainer.train()
    trainer.save(path)

    def change(header, arrays):
        header["version"] = 1
        header["solution"]["runs"] = []
        del header["solution"]["stats"], header["function"]
        arrays["history.change_weights"] = arrays.pop("history.change_mixture")

    again = RLfDTrainer.load(rewritten(path, change), inventory, custom_logger=quiet)
    np.testing.assert_array_equal(again.cost_table, trainer.cost_table)
    np.testing.assert_allclose(again.train(), states, atol=1e-12)


SPOILS = {
    "shorter": lambda array: array[..., :-1],
    "deeper": lambda array: array[None],
    "text": lambda array: array.astype("U9"),
}
ARRAYS = ("solution.cost", "solution.value", "solution.policy", "solution.occupancy", "last.x", "last.value")
ARRAYS += ("runs.pair_buffer", "runs.state_buffer", "runs.tree", "runs.clock", "prior", "expert", "history.change_cost")


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_a_wrong_shape_or_type_are_refused_by_the_files_name(saved, inventory, quiet, name):
    from rlfd_gym import RLfDTrainer

    path = saved[1]
    whole = path.read_bytes()
    for spoil in SPOILS.values():
        path.write_bytes(whole)

        def change(header, arrays, spoil=spoil):
            arrays[name] = spoil(arrays[name])

        with pytest.raises(ValueError, match=r"trainer\.npz cannot be loaded"):
            RLfDTrainer.load(rewritten(path, change), inventory, custom_logger=quiet)


def test_runs_in_single_precision_are_refused(saved, inventory, quiet):
    from rlfd_gym import RLfDTrainer

    def change(header, arrays):
        arrays["runs.tree"] = arrays["runs.tree"].astype(np.float32)

    with pytest.raises(ValueError, match=r"runs\.tree is float32 of shape \(2, 21, 8\), expected float64"):
        RLfDTrainer.load(rewritten(saved[1], change), inventory, custom_logger=quiet)


def generators_for_fewer_runs(header, arrays):
    header["solution"]["generators"].pop()


def a_generator_of_another_kind(header, arrays):
    header["solution"]["generators"][0]["bit_generator"] = "MT19937"


def a_generator_without_a_state(header, arrays):
    header["solution"]["generators"][0]["state"] = {}


def a_clock_that_is_not_finite(header, arrays):
    arrays["runs.clock"][0, 0] = np.nan


def a_weight_behind_the_last_pair(header, arrays):
    arrays["runs.tree"].reshape(2, -1)[:, 150] = 1.0


def a_negative_weight(header, arrays):
    arrays["runs.tree"][0, 0, 0] = -1.0


def sums_that_do_not_add_up(header, arrays):
    arrays["runs.tree"][1, -1] *= 2.0


def another_number_of_steps(header, arrays):
    arrays["runs.clock"][:, -1] += 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (generators_for_fewer_runs, "1 generators for 2 runs"),
        (a_generator_of_another_kind, "bit_generator must be one of PCG64; got 'MT19937'"),
        (a_generator_without_a_state, "KeyError"),
        (a_clock_that_is_not_finite, "not finite"),
        (a_weight_behind_the_last_pair, "do not add up"),
        (a_negative_weight, "do not add up"),
        (sums_that_do_not_add_up, "do not add up"),
        (another_number_of_steps, "20001 steps instead of 20000"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_runs_that_could_not_be_continued_safely_are_refused(saved, inventory, quiet, change, message):
    from rlfd_gym import RLfDTrainer

    with pytest.raises(ValueError, match=rf"trainer\.npz cannot be loaded .*{message}"):
        RLfDTrainer.load(rewritten(saved[1], change), inventory, custom_logger=quiet)


def exact_with_remarks(problem):
    from rlfd_gym import solve_exact

    return replace(solve_exact(problem), stats={"remark": "mine", "seconds": np.float64(0.5), "problem": problem})


SPOILT_RUNS = {
    "an empty tree": lambda arrays: arrays["runs.tree"].fill(0.0),
    "reversed pairs": lambda arrays: arrays.update({"runs.pair_buffer": arrays["runs.pair_buffer"][:, ::-1].copy()}),
    "another clock": lambda arrays: arrays["runs.clock"].__setitem__((0, 1), 1e300),
    "no sums": lambda arrays: arrays["runs.state_buffer"].fill(0.0),
}


@pytest.mark.parametrize("name", SPOILT_RUNS)
def test_runs_whose_averages_are_not_the_solution_are_refused(saved, inventory, quiet, name):
    from rlfd_gym import RLfDTrainer

    path = rewritten(saved[1], lambda header, arrays: SPOILT_RUNS[name](arrays))
    with pytest.raises(ValueError, match=r"trainer\.npz cannot be loaded"):
        RLfDTrainer.load(path, inventory, custom_logger=quiet)


def test_of_a_solver_that_is_a_function_the_name_is_saved(make, inventory, careful, guess, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    trainer, path = make(careful, inventory, prior=guess, solver=exact_with_remarks), tmp_path / "trainer.npz"
    trainer.train()
    trainer.save(path)
    with pytest.raises(ValueError, match=r"its solver was the function 'exact_with_remarks'.*: pass it again"):
        RLfDTrainer.load(path, inventory, custom_logger=quiet)
    with pytest.raises(ValueError, match="pass it again"):
        RLfDTrainer.load(path, inventory, solver="smd", custom_logger=quiet)
    again = RLfDTrainer.load(path, inventory, solver=exact_with_remarks, custom_logger=quiet)
    assert again.solver is exact_with_remarks
    np.testing.assert_array_equal(again.cost_table, trainer.cost_table)
    assert again.solution.stats == {"remark": "mine", "seconds": 0.5}
    np.testing.assert_allclose(again.train(), trainer.train(), atol=1e-12)


def test_a_function_is_refused_for_a_trainer_that_had_none(saved, inventory):
    from rlfd_gym import RLfDTrainer

    with pytest.raises(ValueError, match="solver is for trainers whose solver was a function; this one has 'smd'"):
        RLfDTrainer.load(saved[1], inventory, solver=exact_with_remarks)


def a_reversed_policy(header, arrays):
    arrays["solution.policy"] = arrays["solution.policy"][::-1].copy()


def an_even_policy(header, arrays):
    states = arrays["pair_states"]
    arrays["solution.policy"] = 1.0 / np.bincount(states)[states]


def a_smaller_gap(header, arrays):
    header["solution"]["upper"] = header["solution"]["lower"] + 1e-3


def fewer_iterations(header, arrays):
    header["solution"]["n_iterations"] = -1


def a_text_for_finished(header, arrays):
    header["solution"]["finished"] = "yes"


def another_method(header, arrays):
    header["solution"]["method"] = "exact: qp"


def other_step_sizes(header, arrays):
    header["solution"]["step_sizes"] = [1e-3, 1e-3]


def statistics_with_tables(header, arrays):
    header["solution"]["stats"]["inner"] = {"a": 1}


def a_history_out_of_order(header, arrays):
    arrays["history.iteration"] = arrays["history.iteration"][::-1].copy()


def a_history_beyond_the_end(header, arrays):
    arrays["history.iteration"][-1] = 10**9


def a_negative_gap_in_the_history(header, arrays):
    arrays["history.duality_gap"][0] = -1.0


def a_history_without_gaps(header, arrays):
    swapped = ("history.duality_gap", "history.change_mixture")
    arrays.update({name: arrays[other] for name, other in zip(swapped, swapped[::-1], strict=True)})


def another_last_point(header, arrays):
    arrays["last.x"] *= 0.5


def weights_without_their_logarithms(header, arrays):
    arrays["runs.pair_buffer"].reshape(2, -1, 8)[:, :, 3] -= 1.0


def a_value_outside_the_box(header, arrays):
    arrays["runs.state_buffer"].reshape(2, -1, 2)[0, 0] += [-5.0 * arrays["runs.clock"][0, 0], 5.0]


def a_negative_horizon(header, arrays):
    header["horizon"] = -1


def a_seed_that_is_none(header, arrays):
    header["seed"] = 1.5


def more_runs_than_there_could_be(header, arrays):
    header["solution"]["stats"]["n_runs"] = 10**9
    header["solution"]["generators"] *= 10**4


def a_solution_without_an_expert(header, arrays):
    del arrays["expert"]


def a_prior_whose_square_overflows(header, arrays):
    arrays["prior"] = arrays["prior"] * 1e200


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (a_reversed_policy, "no probability distribution|not that of its occupancy"),
        (an_even_policy, "its policy is not that of its occupancy"),
        (a_smaller_gap, "other bounds"),
        (fewer_iterations, "n_iterations must be at least 0"),
        (a_text_for_finished, "finished must be a bool"),
        (another_method, "method must be one of smd"),
        (other_step_sizes, "step_sizes must be those of stats"),
        (statistics_with_tables, "stats must be numbers, texts"),
        (a_history_out_of_order, "history.iteration must grow"),
        (a_history_beyond_the_end, "history.iteration must grow"),
        (a_negative_gap_in_the_history, "negative or not finite"),
        (a_history_without_gaps, "each of [0-9]+ records has a gap"),
        (another_last_point, "their iterates are not"),
        (weights_without_their_logarithms, "not those of their logarithms"),
        (a_value_outside_the_box, r"outside \[-1, 1\]"),
        (a_negative_horizon, "horizon must be at least 0"),
        (a_seed_that_is_none, "seed must be an integer"),
        (more_runs_than_there_could_be, "generators for 1000000000 runs"),
        (a_solution_without_an_expert, "a solution, but no expert"),
        (a_prior_whose_square_overflows, "prior must be finite and at most"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_no_trainer_could_have_saved_is_refused(saved, inventory, quiet, change, message):
    from rlfd_gym import RLfDTrainer

    with pytest.raises(ValueError, match=rf"trainer\.npz cannot be loaded .*({message})"):
        RLfDTrainer.load(rewritten(saved[1], change), inventory, custom_logger=quiet)


def test_a_certificate_that_is_nearly_right_is_computed_again(saved, inventory, quiet):
    from rlfd_gym import RLfDTrainer

    trainer, path = saved

    def change(header, arrays):
        header["solution"]["upper"] -= 5e-7

    again = RLfDTrainer.load(rewritten(path, change), inventory, custom_logger=quiet)
    assert again.duality_gap == pytest.approx(trainer.duality_gap, abs=1e-12)


def test_of_a_functions_bounds_only_those_that_hold_are_kept(make, inventory, careful, guess, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    trainer, path = make(careful, inventory, prior=guess, solver=exact_with_remarks), tmp_path / "trainer.npz"
    trainer.train()
    trainer.save(path)
    again = RLfDTrainer.load(path, inventory, solver=exact_with_remarks, custom_logger=quiet)
    assert again.duality_gap == trainer.duality_gap

    def change(header, arrays):
        header["solution"]["lower"] = header["solution"]["upper"] = 0.0

    again = RLfDTrainer.load(rewritten(path, change), inventory, solver=exact_with_remarks, custom_logger=quiet)
    assert np.isnan(again.duality_gap)


def test_an_array_that_would_fill_the_memory_is_not_unpacked(saved, inventory, quiet, monkeypatch):
    from rlfd_gym import RLfDTrainer

    def change(header, arrays):
        arrays["solution.cost"] = np.zeros(3_000_000)

    path = rewritten(saved[1], change)
    monkeypatch.setattr("rlfd_gym._files.MOST_BYTES", 10_000)
    unpacked = []
    read = np.lib.format.read_array
    monkeypatch.setattr(
        "rlfd_gym._files.npy.read_array", lambda *a, **k: unpacked.append(read(*a, **k)) or unpacked[-1]
    )
    with pytest.raises(ValueError, match=r"solution\.cost is float64 of shape \(3000000,\), expected float64 of shape"):
        RLfDTrainer.load(path, inventory, custom_logger=quiet)
    assert unpacked
    assert max(array.nbytes for array in unpacked) < 100_000

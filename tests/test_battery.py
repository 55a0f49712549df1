"""Every public callable refuses bad input by name, and no public name or argument is left out of the battery."""

from __future__ import annotations

import importlib
import inspect

import battery
import battery_calls
import pytest

PACKAGES = (
    *("rlfd_gym", "rlfd_gym.mdp", "rlfd_gym.experts", "rlfd_gym.experts.logs", "rlfd_gym.beliefs", "rlfd_gym.problem"),
    *(
        "rlfd_gym.solvers",
        "rlfd_gym.alpha",
        "rlfd_gym.decision",
        "rlfd_gym.envs",
        "rlfd_gym.baselines",
        "rlfd_gym.compare",
        "rlfd_gym.report",
    ),
)
RECORD = "a record that the library fills in; what reads it checks it"
ELSEWHERE = {
    **dict.fromkeys(
        ("Apprentice", "Solution", "History", "Plan", "SoftPlan", "Log", "LogReport", "Walk", "Demonstrations"),
        RECORD,
    ),
    **dict.fromkeys(("OverTime", "TimedWalk"), RECORD),
    **dict.fromkeys(
        (
            "Posterior",
            "Logged",
            "Decision",
            "Estimate",
            "Path",
            "PriceAnswer",
            "Recommendation",
            "Guarantee",
            "Point",
            "AlphaChoice",
            "AlphaPath",
            "PathPoint",
            "Comparison",
            "Instance",
            "Lesson",
            "ActionVariation",
        ),
        RECORD,
    ),
    "Simulator": "made by `simulate`, which is tried",
    **dict.fromkeys(
        ("Measure", "Method", "Task", "Cell", "Report"), "an entry of a registry or a page, written in code"
    ),
    **dict.fromkeys(("Belief", "Problem", "TabularEnv"), "abstract; its methods are tried on a subclass"),
    **dict.fromkeys(("MEASURES", "METHODS", "TASKS", "ENDS", "EXPERTS", "UNVISITED", "plots"), "no callable"),
    **dict.fromkeys(("register_envs", "legend"), "takes nothing"),
    **dict.fromkeys(("overview", "write_docs"), "see tests/compare/test_overview.py"),
    **dict.fromkeys(("cloning_network", "gail", "RLfDTrainer"), "needs imitation: see below"),
    **dict.fromkeys(("SolverError", "CellError", "InUseError", "ProvenanceError"), "an error"),
    **dict.fromkeys(("collected_warnings", "run_script"), "takes nothing that can be wrong"),
    **dict.fromkeys(("check_folder", "read_csv"), "see tests of files and tests/report"),
    "to_minari": "needs minari: see tests/experts/test_export.py",
    "run": "checks by Design, which is tried; tests/compare has the rest",
    "write": "see tests of files",
    "write_csv": "see tests/report",
}
"""Public names that the battery does not call, and why."""

METHODS = {
    "TabularMDP": ("mdp.tables", "TabularMDP"),
    "Pairs": ("mdp.pairs", "Pairs"),
    "RLfDProblem": ("problem.problem", "RLfDProblem"),
    "Problem": ("problem.protocol", "Problem"),
    "CostScale": ("experts.scale", "CostScale"),
    "InventoryEnv": ("envs.inventory", "InventoryEnv"),
    "WindyGridworldEnv": ("envs.windy_gridworld", "WindyGridworldEnv"),
}
"""The classes whose public methods are all tried."""
UNTRIED_METHODS = {
    "Problem.bounds": "tried as RLfDProblem.bounds",
    "Problem.fingerprint": "takes nothing",
    **dict.fromkeys(("InventoryEnv.reset", "InventoryEnv.cut_action"), "called by Gymnasium and `step`, which checks"),
    **{f"{env}.{name}": "takes nothing" for env in ("InventoryEnv", "WindyGridworldEnv") for name in
       ("render_text", "render_frame")},
}  # fmt: skip


@pytest.fixture(scope="module")
def calls():
    return battery_calls.calls()


def names(calls):
    return {name.split(",")[0].split(".")[-1] for name in calls}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_tried_or_said_to_be_tried_elsewhere(calls, package):
    public = set(importlib.import_module(package).__all__)
    assert public <= names(calls) | set(ELSEWHERE)


@pytest.mark.parametrize("owner", METHODS)
def test_every_public_method_is_tried(calls, owner):
    module, name = METHODS[owner]
    kind = getattr(importlib.import_module(f"rlfd_gym.{module}"), name)
    public = {
        f"{owner}.{name}" for name in vars(kind) if not name.startswith("_") and callable(getattr(kind, name))
    }  # fmt: skip
    assert public <= {name.split(",")[0] for name in calls} | set(UNTRIED_METHODS)


def test_every_argument_is_tried_and_every_valid_call_is_valid(calls):
    for name, call in calls.items():
        parameters = inspect.signature(call.function).parameters.values()
        named = {p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
        assert named <= set(call.arguments) | set(call.untried), name
        result = call.function(**{key: argument.valid for key, argument in call.arguments.items()})
        assert call.may_be_nan or battery.is_finite(result), name


def test_bad_values_are_refused_by_name_or_accepted_as_documented(calls):
    counts = battery.run(calls)
    assert not counts.failures, "\n".join(counts.failures)
    assert counts.cases > 9000
    assert counts.named + counts.accepted == counts.cases


@pytest.mark.needs_imitation
def test_bad_values_are_refused_by_what_needs_imitation():
    calls = battery_calls.calls_with_imitation()
    counts = battery.run(calls)
    assert not counts.failures, "\n".join(counts.failures)
    assert counts.cases > 500


def test_the_battery_sees_what_it_is_for():
    def silent(x):
        return float("nan")

    def obscure(x):
        return [1, 2][x]

    def unnamed(x):
        raise ValueError("something is wrong")

    def named(x):
        raise ValueError("x must be a number")

    for function, outcome in (
        (silent, "NaN"),
        (obscure, "IndexError"),
        (unnamed, "without its name"),
        (named, "named"),
    ):
        call = battery.Call(function, {"x": battery.Argument(1, battery.number())})
        assert outcome in battery.attempt(call, "x", 7)

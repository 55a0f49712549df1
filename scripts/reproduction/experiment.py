"""What all experiments share: settings, tables, ways to solve, intervals, and verdicts on claims.

An experiment is three functions: settings → data (a mapping of tables), data → figures,
data → claims. The data is stored in CSV files, so that figures and claims can be made again
without solving anything again.

Three ways to solve RLfD_α are shown together: the paper's setting (fixed steps of 1e-2, its T and
N), the convergence theorem's steps for as many iterations as a minute or two allows, and the exact
solution. Each solution comes with its duality gap, certified in closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from rlfd_gym import RLfDProblem, TabularMDP, solve_exact, solve_smd
from rlfd_gym.problem.solution import History
from rlfd_gym.report import half_width, read_csv, write_csv

PAPER, THEOREM, EXACT = "paper's setting", "theorem's steps", "exact"
WAYS = (PAPER, THEOREM, EXACT)
ESTIMATORS = ("unbiased", "overwrite")
FIXED_STEP = 1e-2

Table = dict[str, np.ndarray]
Data = dict[str, Table]
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Settings:
    """How much to compute, and how."""

    quick: bool = False
    jobs: int = 2
    estimator: str = "unbiased"
    """With "overwrite", the paper's setting uses the estimators of the published code."""
    seed: int = 0
    show_progress: bool = True

    def pick(self, full: Result, quick: Result) -> Result:
        """Return `full`, or, with --quick, `quick`."""
        return quick if self.quick else full

    def map(self, function: Callable[[Item], Result], items: Sequence[Item], label: str) -> list[Result]:
        """Apply a function to every item, in order, on `jobs` threads, with a progress bar."""
        from joblib import Parallel, delayed
        from tqdm.auto import tqdm

        results = Parallel(n_jobs=self.jobs, prefer="threads", return_as="generator")(
            delayed(function)(item) for item in items
        )
        return list(tqdm(results, total=len(items), desc=label, leave=False, disable=not self.show_progress))


@dataclass(frozen=True, eq=False)
class Answer:
    """A solution with its runs: the results of each run (first axis), and their averages."""

    costs: np.ndarray
    values: np.ndarray
    occupancies: np.ndarray
    gap: float
    n_iterations: int
    history: History = field(default_factory=History)

    @property
    def cost(self) -> np.ndarray:
        """The cost, averaged over runs."""
        return self.costs.mean(axis=0)

    @property
    def occupancy(self) -> np.ndarray:
        """The occupancy, averaged over runs."""
        return self.occupancies.mean(axis=0)

    @property
    def n_runs(self) -> int:
        """The number of runs, N."""
        return len(self.costs)

    def policy(self, mdp: TabularMDP) -> np.ndarray:
        """Return the policy of the occupancy averaged over runs, as in the paper."""
        return mdp.policy_of(self.occupancy)

    def run_costs(self, mdp: TabularMDP, truth: np.ndarray) -> np.ndarray:
        """Return the true expected cost of each run's own policy."""
        return np.array([mdp.expected_cost(mdp.policy_of(mu), truth) for mu in self.occupancies])


def solve_as_paper(
    problem: RLfDProblem,
    settings: Settings,
    n_iterations: int,
    n_runs: int,
    *,
    seed: int | None = None,
    record_every: int | None = None,
    estimator: str | None = None,
    n_jobs: int | None = None,
) -> Answer:
    """Run Algorithm 1 with fixed steps of 1e-2 from random starts."""
    own_seed = settings.seed if seed is None else seed
    if (settings.estimator if estimator is None else estimator) == "overwrite":
        from reproduction.published_code import overwriting_smd

        averages = overwriting_smd(problem, n_iterations, n_runs, FIXED_STEP, own_seed, n_jobs or settings.jobs)
        gap = problem.duality_gap(*(runs.mean(axis=0) for runs in averages))
        return Answer(*averages, gap=gap, n_iterations=n_iterations)
    jobs = settings.jobs if n_jobs is None else n_jobs
    return _smd(problem, n_iterations, n_runs, own_seed, jobs, False, step_size=FIXED_STEP, record_every=record_every)


def solve_by_theorem(
    problem: RLfDProblem,
    settings: Settings,
    n_runs: int,
    *,
    n_iterations: int = 1,
    epsilon: float | None = None,
    record_every: int | None = None,
    n_jobs: int | None = None,
    progress_bar: bool | None = None,
) -> Answer:
    """Run Algorithm 1 with the theorem's step sizes (stated bound).

    It runs for `n_iterations` steps, or for as many as the accuracy `epsilon` needs.
    """
    return _smd(
        problem,
        n_iterations,
        n_runs,
        settings.seed,
        settings.jobs if n_jobs is None else n_jobs,
        settings.show_progress if progress_bar is None else progress_bar,
        epsilon=epsilon,
        bound="paper",
        record_every=record_every,
    )


def solve_exactly(problem: RLfDProblem) -> Answer:
    """Return the exact solution, as an answer with one run."""
    solution = solve_exact(problem)
    assert solution.value is not None
    vectors = (solution.cost, solution.value, solution.occupancy)
    return Answer(*(v[None] for v in vectors), gap=solution.duality_gap, n_iterations=solution.n_iterations)


def _smd(problem: RLfDProblem, steps: int, n_runs: int, seed: int, jobs: int, progress: bool, **options: Any) -> Answer:
    options |= {"n_runs": n_runs, "n_jobs": jobs, "seed": seed, "progress_bar": progress, "variant": "paper"}
    solution = solve_smd(problem, steps, **options)
    if not solution.finished:
        raise KeyboardInterrupt("interrupted: nothing of this experiment is kept")
    points = [checkpoint.average for checkpoint in solution.state.runs]
    averages = (np.array(column) for column in zip(*points, strict=True))
    return Answer(*averages, gap=solution.duality_gap, n_iterations=solution.n_iterations, history=solution.history)


def interval(values: np.ndarray, axis: int = 0) -> tuple[Any, Any]:
    """Return the mean and the half-width of its 95% interval, which is nan for a single value.

    >>> float(interval(np.array([1.0, 2.0, 3.0]))[0])
    2.0
    """
    array = np.asarray(values, dtype=np.float64)
    return array.mean(axis=axis), half_width(array.std(axis=axis), array.shape[axis], ddof=0)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what we measured, and the verdict."""

    figure: str
    """The label of the paper's figure or section that contains the claim."""
    text: str
    paper: str
    """Our number in the paper's setting."""
    certified: str
    """Our number at a certified gap."""
    verdict: str
    why: str


def judge(in_paper_setting: bool, certified: bool, condition: str = "", under_condition: bool = False) -> str:
    """Return the verdict on a claim.

    Args:
        in_paper_setting: whether our numbers in the paper's setting agree with the claim.
        certified: whether our numbers at a certified gap agree with it.
        condition: a condition under which the claim might be true if it does not hold in both.
        under_condition: whether our numbers under that condition agree.

    >>> judge(True, True), judge(False, False)
    ('holds', 'does not hold')
    >>> judge(True, False), judge(False, True)
    ('holds only when solved as in the paper', 'holds only when solved to a small gap')
    >>> judge(False, False, "indices overwrite each other", True)
    'holds only when indices overwrite each other'
    """
    if in_paper_setting and certified:
        return "holds"
    if under_condition:
        return f"holds only when {condition}"
    if in_paper_setting:
        return "holds only when solved as in the paper"
    if certified:
        return "holds only when solved to a small gap"
    return "does not hold"


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper."""

    name: str
    title: str
    run: Callable[[Settings], Data]
    figures: Mapping[str, Callable[[Data], Any]]
    """The names of the pictures, and the functions that draw them."""
    claims: Callable[[Data], list[Claim]]
    paper_figures: Mapping[str, str]
    """The labels of the paper's figures, and the names of the pictures that correspond to them."""
    notes: Callable[[Data], list[str]] = lambda data: []
    """Paragraphs for the report: what was built, and what the published code does."""


def rows(table: Table, **wanted: Any) -> Table:
    """Return the rows in which the columns have the wanted values.

    >>> rows({"a": np.array([1, 2]), "b": np.array(["x", "y"])}, a=2)["b"].tolist()
    ['y']
    """
    chosen = np.ones(len(next(iter(table.values()))), dtype=bool)
    for name, value in wanted.items():
        column = table[name]
        chosen &= np.isclose(column, value) if column.dtype.kind in "fi" else column == value
    return {name: column[chosen] for name, column in table.items()}


def value(table: Table, column: str, **wanted: Any) -> Any:
    """Return the entry of a column in the only row that has the wanted values."""
    found = rows(table, **wanted)[column]
    if len(found) != 1:
        raise ValueError(f"expected one row with {wanted}, found {len(found)}")
    return found[0].item()


def table_of(records: Iterable[Mapping[str, Any]]) -> Table:
    """Return a table from records that all have the same names.

    >>> table_of([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}])["a"].tolist()
    [1, 2]
    """
    listed = list(records)
    return {name: np.array([record[name] for record in listed]) for name in listed[0]}


def write_table(path: Path, table: Table) -> None:
    """Write a table as CSV, completely or not at all."""
    write_csv(path, list(table), zip(*(column.tolist() for column in table.values()), strict=True))


def read_table(path: Path) -> Table:
    """Read a table that `write_table` has written.

    Columns that contain only numbers become arrays of numbers.
    """
    names, lines = read_csv(path)
    columns = zip(*lines, strict=True) if lines else ([] for _ in names)
    return {name: _column(list(entries)) for name, entries in zip(names, columns, strict=True)}


def _column(entries: list[str]) -> np.ndarray:
    for kind in (np.int64, np.float64):
        try:
            return np.array(entries, dtype=kind)
        except ValueError:
            continue
    return np.array(entries)

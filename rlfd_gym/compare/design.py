"""The design of a comparison: tasks, methods, demonstrations, weights of the prior and seeds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rlfd_gym import _checks
from rlfd_gym.compare.cells import EXACT, MEASURED, Cell, Row, level_key
from rlfd_gym.compare.methods import METHODS
from rlfd_gym.compare.tasks import TASKS

ENOUGH, MORE = 5, 4  # from so many seeds on, methods that are quick are run for so many times as many
LISTS = ("tasks", "methods", "demonstrations", "alphas", "readings")
READINGS = ("own", *MEASURED)
SETTINGS = ("iterations", "runs")


@dataclass(frozen=True)
class Design:
    """What is compared. The defaults take under three minutes on two cores.

    Attributes:
        tasks: names from `TASKS`.
        methods: names from `METHODS`. `Design.of` adds the methods of the reference rows.
        seeds: the number of seeds to average over. From five on, methods that are quick are run for
            four times as many, so that their intervals cover.
        demonstrations: numbers of demonstrations, and "exact" for the expert's exact occupancy.
        alphas: weights of the prior.
        iterations: steps of each run of the stochastic solvers.
        runs: runs that a stochastic solver averages over.
        readings: how the policies are read: "own", the reading that each method is known by,
            "occupancy" (the mixture) or "mode" (the most frequent action of each state).

    Example:
        >>> Design.of(tasks=["inventory"], methods=["cloning"], seeds=3).demonstrations
        (1, 10, 100, 'exact')
    """

    tasks: tuple[str, ...] = field(default_factory=lambda: tuple(name for name, t in TASKS.items() if t.chosen))
    methods: tuple[str, ...] = field(default_factory=lambda: tuple(name for name, m in METHODS.items() if m.chosen))
    seeds: int = 5
    demonstrations: tuple[int | str, ...] = (1, 10, 100, EXACT)
    alphas: tuple[float, ...] = (0.01, 0.1, 1.0)
    iterations: int = 1_000_000
    runs: int = 1
    readings: tuple[str, ...] = ("own",)

    def __post_init__(self) -> None:
        """Check and convert the fields, remove repetitions, and sort the demonstrations."""
        expected = {
            "tasks": f"some of {', '.join(TASKS)}",
            "methods": f"some of {', '.join(METHODS)}",
            "demonstrations": f'numbers or "{EXACT}"',
            "alphas": "weights of the prior",
            "readings": f"some of {', '.join(READINGS)}",
        }
        for name in LISTS:
            for item in _checks.items(name, getattr(self, name)):
                if name in ("tasks", "methods"):
                    _checks.instance(name, item, str)
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, expected {expected[name]}")
        levels = {
            level
            if isinstance(level, str) and level == EXACT
            else _checks.integer(f'demonstrations (or "{EXACT}")', level, 1)
            for level in self.demonstrations
        }
        clean: dict[str, Any] = {
            "tasks": tuple(dict.fromkeys(self.tasks)),
            "methods": tuple(dict.fromkeys(self.methods)),
            "demonstrations": tuple(sorted(levels, key=level_key)),
            "alphas": tuple(dict.fromkeys(_checks.number("alphas", alpha, 0.0) for alpha in self.alphas)),
            "readings": tuple(dict.fromkeys(_checks.one_of("readings", kind, READINGS) for kind in self.readings)),
        }
        most = {"seeds": _checks.MOST_TIMES, "iterations": _checks.MOST_STEPS, "runs": _checks.MOST_TIMES}
        clean |= {name: _checks.integer(name, getattr(self, name), 1, high) for name, high in most.items()}
        for name, value in clean.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, **chosen: Any) -> Design:
        """Return the design with the chosen fields, and with the reference methods first.

        All tasks and methods must be registered, and the packages that tasks need installed.
        """
        design = cls(**chosen)
        for argument, registry in (("tasks", TASKS), ("methods", METHODS)):
            for name in getattr(design, argument):
                _checks.one_of(argument, name, registry)
        for name in design.tasks:
            TASKS[name].require()
        references = [name for name, method in METHODS.items() if method.reference]
        return replace(design, methods=(*references, *design.methods))

    def with_added(self, **chosen: Any) -> Design:
        """Return this design, extended by the chosen fields.

        The settings of the solvers must stay the same.
        """
        wanted = replace(self, **chosen)
        for name in SETTINGS:
            if getattr(self, name) != getattr(wanted, name):
                raise ValueError(
                    f"{name} is {getattr(wanted, name)}, but the stored cells were made with {getattr(self, name)}; "
                    "a comparison has one setting for all of its cells: start another one"
                )
        union: dict[str, Any] = {name: getattr(self, name) + getattr(wanted, name) for name in LISTS}
        return Design.of(**asdict(self) | union | {"seeds": max(self.seeds, wanted.seeds)})

    def read(self, row: Row) -> list[Row]:
        """Return a cell's row in the wanted readings; a reference row also in its own."""
        wanted = ("own", *self.readings) if row.reference else self.readings
        return [row.read_as(kind) for kind in dict.fromkeys(row.reading if kind == "own" else kind for kind in wanted)]

    def cells(self) -> list[Cell]:
        """Return the cells, task by task, in the order of the methods."""
        return [
            Cell(task, name, alpha, level, seed)
            for task in self.tasks
            for name in self.methods
            for alpha in (self.alphas if METHODS[name].takes_alpha else (None,))
            for level in ((EXACT,) if METHODS[name].reference else self.demonstrations)
            for seed in range(self._seeds(task, name, level))
        ]

    def has(self, cell: Cell) -> bool:
        """Return whether a cell can be one of this comparison; it needs no registry."""
        return (
            cell.task in self.tasks
            and cell.method in self.methods
            and cell.alpha in (None, *self.alphas)
            and cell.demonstrations in (EXACT, *self.demonstrations)
            and 0 <= cell.seed < MORE * self.seeds
        )

    def place(self, cell: Cell) -> tuple[float, ...]:
        """Return the key that sorts cells in the order of `cells`; it needs no registry."""
        alpha = -1 if cell.alpha is None else self.alphas.index(cell.alpha)
        task, method = self.tasks.index(cell.task), self.methods.index(cell.method)
        return task, method, alpha, level_key(cell.demonstrations), cell.seed

    def _seeds(self, task: str, name: str, level: int | str) -> int:
        """Return the number of seeds to run a method for: one if nothing about it is random."""
        method = METHODS[name]
        random = level != EXACT or method.stochastic or (TASKS[task].prior_varies and method.uses_prior)
        if not random:
            return 1
        if method.quick and self.seeds >= ENOUGH:
            return MORE * self.seeds
        return min(self.seeds, method.most_seeds or self.seeds)

"""The trials of hardening, as a table: what each of them tries, how often, and what must not come of it.

    python tests/trials.py NAME FOLDER

runs one of them in a process of its own and prints its outcome as JSON. `scripts/reliability.py` and
`tests/test_trials.py` run them all. A new trial is one entry of `TRIALS`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    Attributes:
        tried: how many cases there were.
        came: what came of them that may, by kind.
        failures: what came of them that must not, one line each.
    """

    tried: int
    came: dict[str, int]
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Trial:
    """One trial.

    Attributes:
        tries: what it tries, and what must not come of it.
        run: runs it in an empty folder. It imports what it needs itself.
    """

    tries: str
    run: Callable[[Path], Outcome]


def bad_inputs(folder: Path) -> Outcome:
    import battery
    from battery_calls import calls

    return _battery(battery.run(calls()))


def generated_inputs(folder: Path) -> Outcome:
    import battery
    from battery_calls import calls

    return _battery(battery.run_generated(calls(), 20_000, seed=0))


def crafted_files(folder: Path) -> Outcome:
    from fuzz_files import fuzz

    counts = fuzz(folder, 6_000)
    came = {"refused by name": counts.refused.total(), "valid all the same": counts.loaded.total()}
    greedy = [f"{counts.most_memory} bytes for a file"] if counts.most_memory >= 2**28 else []
    return Outcome(counts.tried, came, counts.failures + greedy)


def rival_threads(folder: Path) -> Outcome:
    from kill_files import two_writers

    return _files(two_writers(folder, 100, "threads"))


def rival_processes(folder: Path) -> Outcome:
    from kill_files import two_writers

    return _files(two_writers(folder, 100, "processes"))


def killed_at_every_step(folder: Path) -> Outcome:
    import kill_files

    before = {"nothing": None, "a set": kill_files.set_of("o"), "plain files": kill_files.plain_files}
    outcomes = [_files(kill_files.killed_at_every_step(folder / name, first)) for name, first in before.items()]
    came = {kind: sum(outcome.came[kind] for outcome in outcomes) for kind in outcomes[0].came}
    return Outcome(sum(o.tried for o in outcomes), came, [line for o in outcomes for line in o.failures])


def killed_at_random(folder: Path) -> Outcome:
    from kill_files import killed_at_random

    return _files(killed_at_random(folder, 200))


def killed_reports(folder: Path) -> Outcome:
    from kill_files import killed_reports

    return _files(killed_reports(folder, 30))


def killed_comparison(folder: Path) -> Outcome:
    from kill_comparison import killed

    counts = killed(folder, 8)
    bad = {name: getattr(counts, name) for name in ("lost", "damaged", "left_behind", "different")}
    failures = [f"{number} {name.replace('_', ' ')}" for name, number in bad.items() if number]
    return Outcome(counts.kills, {"cells whole and the same to the bit": counts.cells - counts.different}, failures)


TRIALS = {
    "bad inputs": Trial(
        "every public callable with every bad value in every argument: an error that names the argument, or what its "
        "documentation accepts; no crash, no hang, no NaN",
        bad_inputs,
    ),
    "generated inputs": Trial("the same with values drawn at random", generated_inputs),
    "crafted files": Trial(
        "saved trainers, policies and rewards with changed bytes, shapes, headers and sizes: an error that names the "
        "file, or something valid; no crash, no hang, little memory",
        crafted_files,
    ),
    "rival threads": Trial("four threads write the same file at once: one of them wins, wholly", rival_threads),
    "rival processes": Trial("four processes write the same file at once", rival_processes),
    "killed before every step": Trial(
        "a writer of a set of files is killed before each thing that it does to the file system: the old set or the "
        "new one, never a mixture",
        killed_at_every_step,
    ),
    "killed at random": Trial("the same, killed at random moments", killed_at_random),
    "killed reports": Trial("the writer of the report on a log, killed at random moments", killed_reports),
    "killed comparison": Trial(
        "the comparison is killed at random moments and resumed: no stored cell is lost or damaged, no worker lives "
        "on, and the numbers are those of a run that nobody killed",
        killed_comparison,
    ),
}


def _battery(counts) -> Outcome:
    came = {"refused by name": counts.named, "accepted as documented": counts.accepted}
    return Outcome(counts.cases, came, counts.failures)


def _files(counts) -> Outcome:
    came = {"old": counts.old, "new": counts.new} if counts.old + counts.new else {}
    return Outcome(counts.tried, came or {"whole": counts.tried - len(counts.broken)}, counts.broken)


if __name__ == "__main__":
    print(json.dumps(asdict(TRIALS[sys.argv[1]].run(Path(sys.argv[2])))))

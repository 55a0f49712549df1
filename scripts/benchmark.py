"""Measure every performance claim as a ratio to a plain baseline in the same run.

    python scripts/benchmark.py              # all of them
    python scripts/benchmark.py --only forward
    python scripts/benchmark.py --only sweep --pairs 100000
    python scripts/benchmark.py --docs docs  # also docs/performance.md and docs/scaling.png

Each line says what was timed, our time, the baseline's time, their ratio, and the target that the
ratio has to meet. The library and the baseline take turns, and the best of several turns counts,
so that other work on the machine disturbs both equally. The lines of each benchmark are kept in the
output folder when it is done, and --resume takes them from there: all of them take more than an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from benchmarks import anchors, cluster, data, descent, exact, first_use, planning, scale, sparse
from benchmarks.lines import Line

from rlfd_gym.report import check_folder, run_script, write

PAGE = """# Performance

Written by `python scripts/benchmark.py --docs docs` (`make bench` prints the same); every number on this page comes
from it.

Each line times the library and a plain baseline in the same run, by turns, and the best of several turns counts, so
that other work on the machine disturbs both equally. Ratios matter, times are those of one machine: {cores} cores,
{machine}, Python {python}. The last column is the target that the ratio had to meet. Each section is what
`python scripts/benchmark.py --only NAME` prints.

{verdict}
{sections}
{scaling}"""


def main() -> None:
    """Print the chosen lines as they are measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}, ten-million, scaling, sweep")
    parser.add_argument(
        "--pairs", type=int, default=1_000_000, metavar="N", help="the size of sweep; a million if left out"
    )
    parser.add_argument("--out", type=Path, default=Path("results/benchmark"), metavar="DIR", help="output folder")
    parser.add_argument("--resume", action="store_true", help="take the lines that are in the output folder from there")
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="also write performance.md there, of all that is in the output folder"
    )
    options = parser.parse_args()
    name = options.only
    growth = options.out / "growth"
    benchmarks = BENCHMARKS | {
        "ten-million": partial(scale.ten_million, growth),
        "scaling": partial(scale.scaling, growth),
    }
    known = benchmarks | {"sweep": partial(scale.sweep, options.pairs)}  # half an hour: only if asked for
    if name is not None and name not in known:
        near = get_close_matches(name, known, n=1)
        parser.error(f"unknown benchmark {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    try:
        check_folder(options.out)
    except ValueError as error:
        parser.error(str(error))
    if not options.resume and name in (None, "ten-million", "scaling"):
        shutil.rmtree(growth, ignore_errors=True)
    print(f"{'what':<58}{'ours':>16}{'baseline':>22}{'ratio':>10}  target")
    for each in benchmarks if name is None else (name,):
        path = options.out / f"{each}.json"
        if options.resume and path.exists():
            print(*kept(path), sep="\n")
            continue
        lines = []
        for line in known[each]():
            lines.append(line)
            print(line, flush=True)
        write(path, json.dumps([asdict(line) for line in lines]).encode())
    if options.docs is not None:
        paths = {each: options.out / f"{each}.json" for each in known}
        measured = {each: kept(path) for each, path in paths.items() if path.exists()}
        missing = [each for each, path in paths.items() if each not in measured and each != "sweep"]
        grown = scale.draw(options.docs / "scaling.png", growth) if "scaling" not in missing else ""
        write(options.docs / "performance.md", page(measured, missing, grown).encode())
        print(f"\nwritten: {options.docs / 'performance.md'}")


def kept(path: Path) -> list[Line]:
    """Return the lines of a benchmark that was measured."""
    return [Line(**line) for line in json.loads(path.read_text())]


def page(measured: dict[str, list[Line]], missing: list[str], scaling: str) -> str:
    """Return the page of documentation, a section for each benchmark, with the one on how the cost grows."""
    lines = [line for each in measured.values() for line in each]
    missed = [f"- {line.claim}: {line.ours} against {line.baseline}" for line in lines if not line.met]
    verdict = f"All {len(lines)} were met."
    if missed:
        verdict = "\n".join([f"**Missed, {len(missed)} of {len(lines)}:**", "", *missed])
    if missing:
        verdict += f"\n\n**Not measured:** {', '.join(missing)}."
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    sections = "".join(section(name, each) for name, each in measured.items() if each)
    return PAGE.format(verdict=verdict, sections=sections, scaling=scaling, **machine)


def section(name: str, lines: list[Line]) -> str:
    """Return the part of the page on one benchmark."""
    rows = (
        f"| {line.claim} | {line.ours} | {line.baseline} | {line.ratio:.3g} "
        f"| {line.target}, {'met' if line.met else 'missed'} |"
        for line in lines
    )
    head = ("", f"## {name}", "", "| what | ours | baseline | ratio | target |", "|---|---:|---:|---:|---|")
    return "\n".join((*head, *rows, ""))


BENCHMARKS: dict[str, Callable[[], Iterator[Line]]] = {
    "forward": planning.forward,
    "structures-optimal": planning.structures_optimal,
    "build": planning.build,
    "oracle": planning.oracle,
    "sampled": descent.sampled,
    "smd": descent.smd,
    "smd-gap": descent.smd_gap,
    "path": exact.path,
    "exact": exact.exact,
    "exact-large": exact.exact_large,
    "structures": exact.structures,
    "structures-large": exact.structures_large,
    "beliefs": exact.beliefs,
    "sparse": sparse.sparse,
    "anchors": anchors.anchors,
    "anchors-planning": anchors.anchors_planning,
    "dask": cluster.dask,
    "reward-net": data.reward_net,
    "logs": data.logs,
    "first-use": first_use.first_use,
}


if __name__ == "__main__":
    run_script(main)

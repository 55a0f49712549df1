"""Reproduce the paper's experiments, figure by figure, and say which of its claims hold.

    python scripts/reproduce.py                      # everything: minutes on two idle cores
    python scripts/reproduce.py --quick              # everything, roughly
    python scripts/reproduce.py --figure inventory   # one experiment, by its name, or by the name
                                                     # or label of one of its figures
    python scripts/reproduce.py --figure inventory --estimator overwrite
                                                     # with the published code's estimators
    python scripts/reproduce.py --resume             # keep the experiments that are finished
    python scripts/reproduce.py --redraw             # figures and report from stored data

The script writes data (CSV), figures (PNG), `claims.csv` and `REPRODUCTION.md` to
`results/reproduce/`, or, with --quick or another estimator, to a separate folder. Once
`results/reproduce/` contains a full run of every experiment, the report and small copies of its
figures are also written to `REPRODUCTION.md` and `docs/reproduction/` of the repository.
"""

from __future__ import annotations

import argparse
import difflib
import time
from pathlib import Path

from reproduction import report
from reproduction.catalogue import EXPERIMENTS, experiment_of, known_names
from reproduction.experiment import ESTIMATORS, Data, Experiment, Settings

from rlfd_gym.report import check_folder, run_script


def main(arguments: list[str] | None = None) -> None:
    """Run the chosen experiments, draw their figures, judge their claims, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figure", default="all", metavar="NAME", help="experiment, figure or label (default all)")
    parser.add_argument("--quick", action="store_true", help="fewer runs and iterations: under two minutes")
    parser.add_argument("--jobs", type=int, default=2, help="threads (default 2)")
    parser.add_argument("--out", type=Path, help="output folder (default results/reproduce)")
    parser.add_argument("--estimator", choices=ESTIMATORS, default="unbiased", help="estimator of the paper's setting")
    parser.add_argument("--redraw", action="store_true", help="solve nothing: figures and report from stored data")
    parser.add_argument("--resume", action="store_true", help="solve only experiments that are not finished yet")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    if options.figure != "all" and experiment_of(options.figure) is None:
        near = difflib.get_close_matches(options.figure, known_names(), n=1, cutoff=0.0)[0]
        known = ", ".join(EXPERIMENTS)
        parser.error(f"--figure: {options.figure!r} is not known; did you mean {near!r}? Experiments: {known}")
    chosen = list(EXPERIMENTS.values()) if options.figure == "all" else [experiment_of(options.figure)]
    settings = Settings(quick=options.quick, jobs=options.jobs, estimator=options.estimator)
    out = options.out or Path("results") / report.folder_name(settings)
    try:
        check_folder(out)
    except ValueError as error:
        parser.error(str(error))

    begin = time.perf_counter()
    for experiment in chosen:
        assert experiment is not None
        start = time.perf_counter()
        if options.redraw:
            data = report.stored_data(out, experiment)
            if data is None:
                print(f"{experiment.name:<20} no data in {out}")
                continue
        else:
            data = _finished(parser, out, experiment, settings) if options.resume else None
            print(f"{experiment.name:<20} {'...' if data is None else 'kept'}", flush=True)
            if data is None:
                data = experiment.run(settings)
                report.store(out, experiment, data, settings, time.perf_counter() - start)
        report.draw(out, experiment, data)
        for claim in experiment.claims(data):
            print(f"  {claim.verdict:<40} {claim.text}", flush=True)
        print(f"{experiment.name:<20} {time.perf_counter() - start:.1f} s", flush=True)
    written = report.write(out, publish=options.out is None and not options.quick)
    print(f"\n{time.perf_counter() - begin:.0f} s; written: {', '.join(str(path) for path in written)}")


def _finished(parser: argparse.ArgumentParser, out: Path, experiment: Experiment, settings: Settings) -> Data | None:
    """Return the stored data of a finished experiment, or end with what is wrong with it."""
    try:
        return report.finished_data(out, experiment, settings)
    except ValueError as error:
        parser.error(f"--resume: {error}")


if __name__ == "__main__":
    run_script(main)

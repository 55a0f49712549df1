"""Store the data of experiments, and write REPRODUCTION.md from it.

No number in that page is typed by hand.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from reproduction.catalogue import EXPERIMENTS
from reproduction.experiment import Claim, Data, Experiment, Result, Settings, read_table, table_of, write_table
from rlfd_gym.compare.provenance import ProvenanceError, require_same, versions
from rlfd_gym.report import write as write_file
from rlfd_gym.report.plots import STYLE, png, save

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED_DPI = 100
MATTER = ("quick", "estimator", "seed")  # the settings that the data depend on
REMEDY = "Run it without --resume"
INTRODUCTION = """# Reproduction of the paper

Every experiment of *Apprenticeship learning with prior beliefs using inverse optimization* (Junca & Leiva), run again
with this library, and what follows for the paper's claims. This page is written by `scripts/reproduce.py` from stored
data; no number in it is typed by hand.

Three ways to solve each problem are compared. **The paper's setting** has fixed steps of 1e-2 and the paper's numbers
of iterations and runs. **The theorem's steps** are those of the convergence theorem, with as many iterations as a few
minutes allow. **Exact** is the quadratic program. Each answer has a duality gap, computed in closed form; "at a
certified gap" means the exact solution unless the text says otherwise. Costs live in [-1, 1], expected costs are
normalised by (1-γ), and ± is a 95% interval over runs. Verdicts follow from the numbers by the rules in
`scripts/reproduction/`.
"""


def folder_name(settings: Settings) -> str:
    """Return the folder for results of these settings; a quick run never replaces a full one."""
    parts = ["reproduce", "quick" * settings.quick, settings.estimator * (settings.estimator != "unbiased")]
    return "-".join(part for part in parts if part)


def store(out: Path, experiment: Experiment, data: Data, settings: Settings, seconds: float) -> None:
    """Store the tables as CSV, with when and how they were made.

    `run.json` goes first and comes last: where it is, the tables beside it are all of one run.
    """
    folder = out / "data" / experiment.name
    (folder / "run.json").unlink(missing_ok=True)
    for name, table in data.items():
        write_table(folder / f"{name}.csv", table)
    how = {
        "when": datetime.now(timezone.utc).isoformat(timespec="minutes"),
        "seconds": round(seconds, 1),
        "tables": list(data),
        "settings": asdict(settings),
        "versions": versions(imitation=False),
        "machine": f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}",
    }
    write_file(folder / "run.json", json.dumps(how, indent=1).encode())


def finished_data(out: Path, experiment: Experiment, settings: Settings) -> Data | None:
    """Return the stored data of a finished run, which must be made as it would be made now.

    `None` if there is none.
    """
    how = _how(out, experiment)
    if how is None:
        return None
    if "versions" not in how:
        raise ProvenanceError(f"the data of {experiment.name} in {out} do not say how they were made. {REMEDY}")
    theirs = {name: str(how["settings"][name]) for name in MATTER} | how["versions"]
    ours = {name: str(getattr(settings, name)) for name in MATTER} | versions(imitation=False)
    require_same(theirs, ours, f"the data of {experiment.name} in {out}", REMEDY)
    return stored_data(out, experiment)


def stored_data(out: Path, experiment: Experiment) -> Data | None:
    """Return the data that `store` has written, or `None`."""
    how = _how(out, experiment)
    if how is None:
        return None
    folder = out / "data" / experiment.name
    return {name: read_table(folder / f"{name}.csv") for name in how["tables"]}


def draw(out: Path, experiment: Experiment, data: Data) -> None:
    """Draw the experiment's figures, as PNG."""
    for name in experiment.figures:
        save(_figure(experiment, name, data), out / "figures" / f"{name}.png")


def _figure(experiment: Experiment, name: str, data: Data) -> Any:
    """Return a figure whose titles and legends have the project's style too."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        return experiment.figures[name](data)


def write(out: Path, publish: bool) -> list[Path]:
    """Write the claims and the report from everything that is stored; return what was written.

    With `publish`, also write them to the repository if everything is a full run.
    """
    stored = {name: data for name, own in EXPERIMENTS.items() if (data := stored_data(out, own)) is not None}
    if not stored:
        return []
    claims = {name: _of_stored(name, EXPERIMENTS[name].claims, data) for name, data in stored.items()}
    listed = [
        {"experiment": name} | asdict(claim) | {"command": command(name)}
        for name, own in claims.items()
        for claim in own
    ]
    write_table(out / "claims.csv", table_of(listed))
    how = {name: _how(out, EXPERIMENTS[name]) for name in stored}
    write_file(out / "REPRODUCTION.md", page(stored, claims, how, "figures").encode())
    written = [out / "claims.csv", out / "REPRODUCTION.md", out / "figures"]
    full = all(own["settings"]["estimator"] == "unbiased" and not own["settings"]["quick"] for own in how.values())
    if publish and full and set(stored) == set(EXPERIMENTS):
        for name, data in stored.items():
            for figure in EXPERIMENTS[name].figures:
                picture = png(_figure(EXPERIMENTS[name], figure, data), PUBLISHED_DPI)
                write_file(ROOT / "docs" / "reproduction" / f"{figure}.png", picture)
        write_file(ROOT / "REPRODUCTION.md", page(stored, claims, how, "docs/reproduction").encode())
        written += [ROOT / "REPRODUCTION.md", ROOT / "docs" / "reproduction"]
    return written


def page(stored: dict[str, Data], claims: dict[str, list[Claim]], how: dict[str, Any], pictures: str) -> str:
    """Return the text of REPRODUCTION.md."""
    verdicts = Counter(_kind(claim.verdict) for own in claims.values() for claim in own)
    parts = [
        INTRODUCTION,
        f"## The claims\n\nOf {verdicts.total()} claims, "
        + ", ".join(f"{number} {kind}" for kind, number in verdicts.most_common())
        + ". What each row says is shown by `python scripts/reproduce.py` with the option in its last column.\n",
        _claims_table(claims),
        "\n## Figures\n\n| figure of the paper | ours |\n|---|---|",
        *(
            f"| `{label}` | [{figure}]({pictures}/{figure}.png) |"
            for name in stored
            for label, figure in EXPERIMENTS[name].paper_figures.items()
        ),
    ]
    for name, data in stored.items():
        experiment, own = EXPERIMENTS[name], how[name]
        parts.append(f"\n## {experiment.title}\n")
        parts += [f"{paragraph}\n" for paragraph in _of_stored(name, experiment.notes, data)]
        parts += [f"![{figure}]({pictures}/{figure}.png)\n" for figure in experiment.figures]
        mode = ", ".join(f"{key}={entry}" for key, entry in own["settings"].items() if key != "show_progress")
        parts.append(f"`{command(name)}`: {own['when']}, {own['seconds']} s, {mode}; {own['machine']}.")
    return "\n".join(parts) + "\n"


def _of_stored(name: str, function: Callable[[Data], Result], data: Data) -> Result:
    """Apply an experiment's function to stored data.

    The data may come from another version of the script.
    """
    try:
        return function(data)
    except KeyError as missing:
        raise SystemExit(f"the stored data of {name} has no {missing}; run `{command(name)}` again") from missing


def command(name: str) -> str:
    """Return the command that runs an experiment."""
    return f"python scripts/reproduce.py --figure {name}"


def _claims_table(claims: dict[str, list[Claim]]) -> str:
    lines = [
        "| # | the paper says | in the paper's setting | at a certified gap | verdict | why | shown by |",
        "|---|---|---|---|---|---|---|",
    ]
    number = 0
    for name, own in claims.items():
        for claim in own:
            number += 1
            cells = (
                f"{claim.text} (`{claim.figure}`)", claim.paper, claim.certified, f"**{claim.verdict}**", claim.why,
                f"`--figure {name}`",
            )  # fmt: skip
            lines.append(f"| {number} | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _kind(verdict: str) -> str:
    return "hold only under a condition" if "only" in verdict else {"holds": "hold"}.get(verdict, "do not hold")


def _how(out: Path, experiment: Experiment) -> dict[str, Any] | None:
    path = out / "data" / experiment.name / "run.json"
    if not path.exists():
        return None
    how: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return how

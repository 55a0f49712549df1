"""All experiments, by name; figures are found by their own name or by their label in the paper too."""

from __future__ import annotations

from reproduction import alpha_sweep, appendix_grids, box_or_hull, duality_gap, gridworld, inventory, misspecified_prior
from reproduction.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (inventory, misspecified_prior, alpha_sweep, box_or_hull, gridworld, appendix_grids, duality_gap)
}


def _names(experiment: Experiment) -> list[str]:
    labels = list(experiment.paper_figures)
    return [experiment.name, *experiment.figures, *labels, *(label.removeprefix("fig:") for label in labels)]


def experiment_of(name: str) -> Experiment | None:
    """The experiment that has this name, or a figure of this name or label."""
    return next((own for own in EXPERIMENTS.values() if name in _names(own)), None)


def known_names() -> list[str]:
    """Everything that `experiment_of` finds."""
    return [name for own in EXPERIMENTS.values() for name in _names(own)]

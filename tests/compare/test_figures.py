"""The pictures show every method, where it belongs."""

from __future__ import annotations

from rlfd_gym.compare.figures import against_demonstrations
from rlfd_gym.compare.tables import Summary


def row(method, level="exact", **known):
    flags = dict.fromkeys(("reference", "uses_prior", "uses_belief", "uses_basis", "stochastic"), False) | known
    return Summary(
        task="mine", method=method, alpha=None, demonstrations=level, title=method, most_seeds=None,
        measures={"true_cost": float(level == "exact"), "true_cost_margin": None}, seconds=0.1, n=1, **flags,
    )  # fmt: skip


def test_a_method_that_is_told_a_belief_is_not_drawn_among_those_that_know_nothing():
    rows = [row("optimum", reference=True), row("expert", reference=True)]
    for level in (1, "exact"):
        rows += [row("near", level, uses_prior=True), row("ranges", level, uses_belief=True), row("copying", level)]
    axes = against_demonstrations(rows, [1, "exact"]).axes
    shown = {axis.get_title(): axis.get_legend_handles_labels()[1] for axis in axes}
    assert shown == {
        "methods that know a prior or a belief": ["near", "ranges"],
        "methods that know neither": ["copying"],
    }

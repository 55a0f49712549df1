"""What is said in words above a table."""

from __future__ import annotations

import pytest

from rlfd_gym.compare.headline import headline_of
from rlfd_gym.compare.tables import Summary


def row(method, closed, level="exact", *, prior=False, belief=False, reference=False, guaranteed=None, gap=None):
    measures = {"true_cost": 0.0, "share_closed": closed, "guaranteed": guaranteed, "duality_gap": gap}
    return Summary(
        task="mine", method=method, alpha=None, demonstrations=level, title=method, reference=reference,
        uses_prior=prior, uses_belief=belief, uses_basis=False, stochastic=False, most_seeds=None, measures=measures,
        seconds=0.1, n=1,
    )  # fmt: skip


def test_the_headline_names_the_best_with_much_and_with_little_the_prior_alone_and_the_guarantee():
    rows = [
        row("prior", 0.91, reference=True, prior=True),
        row("ranges", 0.82, belief=True, guaranteed=0.087),
        row("ranges", 0.5, 1, belief=True, guaranteed=0.01),
        row("copying", 0.0, guaranteed=0.0),
        row("copying", 0.6, 1, guaranteed=0.0),
    ]
    assert headline_of(rows) == (
        "From the expert's exact occupancy, ranges closes 82% of the way to the optimum; from 1 demonstration copying "
        "closes 60%. Without prior or belief the most is 0%, by copying; planning with the prior alone closes more "
        "than any, 91%. ranges is guaranteed to be better than the expert, by 0.087 at least for every cost of the "
        "belief."
    )


def test_rows_that_show_the_same_are_counted_and_unsolved_rows_do_not_compete():
    rows = [row("a", 0.999), row("b", 1.0), row("c", 0.996), row("d", 1.2, gap=0.3)]
    assert (
        headline_of(rows) == "From the expert's exact occupancy, b and 2 others close 100% of the way to the optimum."
    )


def test_of_equal_guarantees_that_of_a_method_that_is_told_the_belief_comes_first():
    rows = [
        row("a", 0.5, guaranteed=0.0561),
        row("b", 0.4, guaranteed=0.0562, belief=True),
        row("c", 0.4, guaranteed=0.0),
    ]
    assert " b and a are guaranteed to be better than the expert, by 0.056 at least" in headline_of(rows)


@pytest.mark.parametrize(
    ("prior", "little", "text"),
    [
        (0.3, 0.5, "a closes 50% of the way to the optimum; from 2 demonstrations as much. Planning with the prior "
                   "alone closes 30%."),
        (0.501, 0.4, "from 2 demonstrations a closes 40%. Planning with the prior alone closes 50%."),  # shown as equal
        (0.6, 0.4, "Planning with the prior alone closes more than any, 60%."),
    ],
)  # fmt: skip
def test_nothing_is_said_twice_and_the_prior_alone_is_compared(prior, little, text):
    rows = [row("prior", prior, reference=True, prior=True), row("a", 0.5), row("a", little, 2)]
    assert headline_of(rows).endswith(text)


def test_a_share_below_zero_is_called_worse_than_the_expert():
    rows = [row("near", 0.3, prior=True), row("near", -0.2, 1, prior=True), row("copying", -0.66), row("other", -0.001)]
    first = "; from 1 demonstration none is as good as the expert: near closes -20%."
    assert f"{first} Without prior or belief the most is 0%, by other." in headline_of(rows)
    assert headline_of(rows[:-1]).endswith("none is as good as the expert: the most is -66%, by copying.")


@pytest.mark.parametrize("guaranteed", [-0.1, 0.0, 0.0004])
def test_nothing_guaranteed_is_said_as_well(guaranteed):
    assert headline_of([row("a", 0.5, guaranteed=guaranteed)]).endswith(
        "None is guaranteed to be better than the expert for every cost of the belief."
    )


@pytest.mark.parametrize("rows", [[], [row("a", float("nan"))], [row("a", None)], [row("expert", 0.0, reference=True)]])
def test_without_a_share_to_speak_of_there_is_no_headline(rows):
    assert headline_of(rows) == ""

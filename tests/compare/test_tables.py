"""The table of a task: its numbers, its width, and its plain text."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest
from rich.console import Console
from small_comparison import SMALL

from rlfd_gym import compare
from rlfd_gym.compare.tables import Summary, Table, table_of
from rlfd_gym.report.html import Cell
from rlfd_gym.report.tables import mean_and_margin


def test_the_printed_numbers_are_those_of_the_csv(written):
    result, out = written
    with open(out / "results.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["reading"] == "occupancy"]
    titles = {name: method.title for name, method in compare.METHODS.items()}
    for task in SMALL["tasks"]:
        printed = str(result.table(task))
        assert max(map(len, printed.splitlines())) <= 100
        assert "\x1b" not in printed
        for method, alpha in {(row["method"], row["alpha"]) for row in rows if row["task"] == task}:
            label = titles[method] + (f" α={float(alpha):g}" if alpha else "")
            (line,) = (text for text in printed.splitlines() if text.strip().startswith(f"{label} "))
            expected = []
            for level in ("2", "exact"):
                found = [
                    float(row["true_cost"])
                    for row in rows
                    if (row["task"], row["method"], row["alpha"], row["demonstrations"]) == (task, method, alpha, level)
                ]
                if found:
                    mean, margin = mean_and_margin(found)
                    expected.append(f"{mean:.3f}" + ("" if margin is None else f"±{margin:.3f}"))
            for name in ("improvement", "guaranteed"):  # of the last level that was found
                same = [row for row in rows if (row["task"], row["method"], row["alpha"]) == (task, method, alpha)]
                exact = [float(row[name]) for row in same if row["demonstrations"] == "exact"]
                text = f"{mean_and_margin(exact)[0]:.3f}".replace("-0.000", "0.000")
                expected += [text] if name == "improvement" or float(text) > 0 else []
            assert re.findall(r"-?\d\.\d{3}(?:±\d\.\d{3})?", line) == expected


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_digit_is_left_out_in_a_narrow_terminal(written, width):
    table = written[0].table("inventory")
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(table)
    printed = console.file.getvalue()
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    assert all(part in printed for row in table.rows for cell in row[1:] for part in cell.text.split("±"))


@pytest.mark.parametrize("levels", [1, 2, 4])
def test_the_plain_text_of_a_table_is_what_rich_prints(written, levels):
    result = written[0]
    table = table_of("A title " * 20, result.summaries("windy"), [2] * (levels - 1) + ["exact"], ["A note: " * 30])
    console = Console(width=100, file=io.StringIO(), color_system=None, highlight=False)
    console.print(table)
    assert str(table).splitlines() == [line.rstrip() for line in console.file.getvalue().splitlines()]


def made_up(method, cost, gap=None, reference=False):
    """The summary of a method with a true cost and a duality gap."""
    about = {"task": "made up", "method": method, "alpha": None, "demonstrations": "exact", "title": method}
    flags = {"reference": reference, "uses_prior": False, "uses_basis": False, "stochastic": False, "most_seeds": None}
    return Summary(**about, **flags, measures={"true_cost": cost, "duality_gap": gap}, seconds=1.0, n=1)


@pytest.mark.parametrize(
    ("rows", "bold"),
    [
        ([("a", -0.5), ("b", -0.4)], {"a"}),
        ([("a", -0.5), ("b", -0.4), ("c", -0.9, None, True)], {"a"}),  # no reference row
        ([("a", -0.5, 0.2), ("b", -0.4, 1e-9)], {"b"}),  # nothing unsolved
        ([("a", -0.5, 0.2)], set()),
        ([("a", -0.50001), ("b", -0.5), ("c", -0.4)], set()),  # no tie, to the digits shown
        ([("a", -0.5, 0.2), ("b", -0.5), ("c", -0.4)], set()),  # nor one with an unsolved row
        ([("a", float("nan")), ("b", -0.5)], {"b"}),
    ],
)
def test_the_best_number_is_bold_if_it_is_solved_and_alone(rows, bold):
    table = table_of("title", [made_up(*row) for row in rows], ["exact"])
    assert {row[0].text for row in table.rows if row[1].bold} == bold


def test_a_table_without_rows_prints():
    assert str(Table("title", ("", "exact"), (), ())) == "title\n\n  exact\n ------\n"


@pytest.mark.parametrize("note", ["no file [/data/x]", "it is [nan nan]", "[bold]not bold[/bold] :smile:"])
def test_what_a_table_says_is_no_markup(note):
    table = Table(note, ("", note), ((Cell(note), Cell("[1]")),), (), (note,))
    console = Console(width=200, file=io.StringIO(), color_system=None)
    console.print(table)
    assert console.file.getvalue().count(note) == 4


def test_numbers_that_differ_from_the_expert_by_more_than_their_interval_are_coloured_and_there_is_a_key():
    rows = [made_up("expert", -0.5, reference=True)]
    for name, cost, margin in (("a", -0.6, 0.05), ("b", -0.4, 0.2), ("c", -0.4, None), ("d", -0.5001, None)):
        row = made_up(name, cost)
        rows.append(replace(row, measures=row.measures | {"true_cost_margin": margin}))
    table = table_of("title", rows, ["exact"], headline="In words.")
    assert {row[0].text: row[1].tone for row in table.rows} == {
        "expert": "",
        "a": "better",
        "b": "",
        "c": "worse",
        "d": "",
    }
    key = "Bold: the best of its column; blue: better than the expert, orange: worse, by more than the interval."
    assert str(table).splitlines()[1] == "In words."
    assert key in str(table).replace("\n", " ")
    console = Console(width=200, file=io.StringIO(), color_system="truecolor", force_terminal=True)
    console.print(table)
    coloured = console.file.getvalue()
    assert re.search(r"\x1b\[38;2;179;74;0m *-0\.400 *\x1b\[0m", coloured)
    assert "\x1b[38;2;11;92;173mblue\x1b[0m" in coloured
    assert '<span style="color:#b34a00">-0.400</span>' in table._repr_html_()
    assert table.markdown().count("blue") == 0
    assert key not in str(table_of("title", rows[:1], ["exact"]))  # nothing is coloured

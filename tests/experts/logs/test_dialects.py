"""What spreadsheets export: each dialect is read, or asked about, and never guessed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlfd_gym import read_log
from rlfd_gym.experts.logs import Dialect, read_costs
from rlfd_gym.experts.logs.values import amount, both_moments

NAMES = {"state": "stock", "action": "order", "next_state": "next"}
PLAIN = [("a", "2023-01-02", 0, 1, 1, "1.5"), ("a", "2023-01-09", 1, 0, 0, "12.25"), ("a", "2023-01-16", 0, 1, 0, "3")]
HEADER = ("shop", "week", "stock", "order", "next", "paid")


def exported(folder, rows, separator=",", encoding="utf-8", before="", header=HEADER):
    """Write rows as a spreadsheet would, and return the path."""
    lines = [separator.join(map(str, row)) for row in (header, *rows)]
    (folder / "log.csv").write_bytes((before + "\r\n".join(lines) + "\r\n").encode(encoding))
    return folder / "log.csv"


def respelled(**changes):
    """The plain rows with other spellings in some columns."""
    places = {name: HEADER.index(name) for name in changes}
    rows = [list(row) for row in PLAIN]
    for name, values in changes.items():
        for row, value in zip(rows, values, strict=True):
            row[places[name]] = value
    return rows


def read(path, **options):
    return read_log(path, discount=0.9, **NAMES, episode="shop", time="week", columns=["paid"], **options)


def notes(log):
    return " ".join(log.report.notes)


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({}, {}),
        ({"separator": ";"}, {}),
        ({"separator": "\t"}, {}),
        ({"separator": "|"}, {}),
        ({"separator": ";", "before": "sep=;\r\n"}, {}),
        ({"encoding": "utf-8-sig"}, {}),
        ({"encoding": "utf-16"}, {}),
        ({"separator": ";"}, {"paid": ["1,5", "12,25", "3"]}),
        ({"separator": ";"}, {"paid": ["1,5 €", "€ 12,25", "3,00"]}),
        ({}, {"paid": ["$1.50", "USD 12.25", "3"]}),
        ({"separator": ";"}, {"week": ["02.01.2023", "09.01.2023", "16.01.2023"]}),
        ({}, {"week": ["01/02/2023", "01/09/2023", "01/16/2023"]}),
        ({}, {"week": ["2023/1/2", "2023/1/9", "2023/1/16"]}),
        ({}, {"week": ["2023-1-2", "2023-1-9", "2023-1-16"]}),
        ({}, {"week": ["2022-12", "2023-01", "2023-02"]}),
        ({}, {"week": ["2023-01-02 08:00", "2023-01-09 08:00", "2023-01-16 08:00"]}),
    ],
)
def test_every_dialect_gives_the_same_log(tmp_path, options, changes):
    log = read(exported(tmp_path, respelled(**changes), **options))
    plain = read(exported(tmp_path, PLAIN))
    assert log.report.n_used == 3
    np.testing.assert_array_equal(log.mdp.transitions.toarray(), plain.mdp.transitions.toarray())
    assert log.mean("paid").tolist() == plain.mean("paid").tolist() == [2.25, 12.25]
    assert log.episodes.states.tolist() == [0, 1, 0]


def test_the_report_says_how_values_were_read_where_there_was_a_choice(tmp_path):
    rows = respelled(paid=["1,5", "12,25", "3"], week=["02/01/2023", "09/01/2023", "16/01/2023"])
    log = read(exported(tmp_path, rows, ";"))
    assert "week: dates='day-first', as in '16/01/2023' (line 4)" in notes(log)
    assert "paid: decimal=',', as in '1,5' (line 2)" in notes(log)
    assert "day-first" in str(log.report)
    assert notes(read(exported(tmp_path, PLAIN))) == ""


def test_dates_that_mean_two_things_are_asked_about(tmp_path):
    path = exported(tmp_path, respelled(week=["02/01/2023", "03/01/2023", "04/01/2023"]))
    message = r"week holds '02/01/2023' \(line 2\), which is 2 January 2023 with dates='day-first' and 1 February 2023"
    with pytest.raises(ValueError, match=message):
        read(path)
    for dates in ("day-first", "month-first"):
        assert read(path, dialect=Dialect(dates=dates)).report.n_used == 3


def test_days_and_months_decide_the_order_of_the_rows(tmp_path):
    path = exported(tmp_path, respelled(week=["02/01/2023", "01/02/2023", "03/01/2023"]))
    orders = {
        dates: read(path, dialect=Dialect(dates=dates)).episodes.actions.tolist()
        for dates in ("day-first", "month-first")
    }
    assert orders == {"day-first": [1], "month-first": [0, 1]}  # the first gap ends an episode


def test_dates_in_two_orders_are_refused_with_both(tmp_path):
    path = exported(tmp_path, respelled(week=["25/12/2023", "12/26/2023", "2023-12-27"]))
    with pytest.raises(
        ValueError, match=r"'25/12/2023' \(line 2\) needs dates='day-first', '12/26/2023' \(line 3\) needs"
    ):
        read(path)


def test_numbers_that_mean_two_things_are_asked_about(tmp_path):
    path = exported(tmp_path, respelled(paid=['"1,500"', '"2,000"', "3"]))
    message = r"paid holds '1,500' \(line 2\), which is 1500 with decimal='.' and 1.5 with decimal=','"
    with pytest.raises(ValueError, match=message):
        read(path)
    assert read(path, dialect=Dialect(decimal=",")).mean("paid").tolist() == [2.25, 2.0]
    assert read(path, dialect=Dialect(decimal=".")).mean("paid").tolist() == [751.5, 2000.0]


def test_points_before_three_digits_are_asked_about_only_where_commas_are_decimal_signs(tmp_path):
    rows = respelled(paid=["1.500", "2.000", "3"])
    assert read(exported(tmp_path, rows)).mean("paid").tolist() == [2.25, 2.0]
    with pytest.raises(ValueError, match=r"'1\.500' \(line 2\), which is 1\.5 with decimal='\.' and 1500 with"):
        read(exported(tmp_path, rows, ";"))


def test_another_encoding_is_named_or_read(tmp_path):
    rows = [("Café", *row[1:]) for row in PLAIN]
    path = exported(tmp_path, rows, encoding="latin-1")
    with pytest.raises(ValueError, match=r"no CSV file in UTF-8: line 2 holds the byte 0xe9\..*encoding='latin-1'"):
        read(path)
    assert read(path, dialect=Dialect(encoding="latin-1")).report.n_used == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ";"}, "decimal must be one of"),
        ({"dates": "iso"}, "dates must be one of day-first, month-first"),
        ({"separator": ":"}, "separator must be one of"),
        ({"encoding": "latin-77"}, "encoding='latin-77' is not known"),
    ],
)
def test_mistakes_in_a_dialect_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Dialect(**options)


def test_labels_that_differ_in_case_and_blanks_are_one_with_a_warning():
    states = ["empty", "Empty", "empty ", "full", "EMPTY"]
    rows = {"state": states, "action": ["x"] * 5, "next_state": ["full", "full", "full", "empty", "full"]}
    with pytest.warns(UserWarning, match="state: 'Empty', 'EMPTY' read as 'empty'; fold=False keeps them apart"):
        log = read_log(rows, discount=0.9)
    assert log.state_labels == ("empty", "full")
    assert log.visits.tolist() == [4, 1]
    assert read_log(rows, discount=0.9, fold=False).state_labels == ("EMPTY", "Empty", "empty", "full")
    with pytest.warns(UserWarning, match="'empty', 'EMPTY' read as 'Empty'"):
        assert read_log(rows, discount=0.9, state_labels=["Empty", "full"]).state_labels == ("Empty", "full")


def test_labels_are_numbered_in_the_order_that_is_given_and_numbers_in_texts_by_size():
    rows = {"state": ["full", "mid", "low", "odd", "empty"], "action": ["pack 10", "pack 9", "none", "none", "none"]}
    rows["next_state"] = rows["state"][::-1]
    log = read_log(rows, discount=0.9, order=["empty", "Low", "mid", "full"])
    assert log.state_labels == ("empty", "low", "mid", "full", "odd")
    assert log.action_labels == ("none", "pack 9", "pack 10")


def test_priors_may_carry_currencies_and_decimal_commas(tmp_path):
    path = tmp_path / "prior.csv"
    path.write_text("state;action;cost\n0;0;€ 1,50\n0;1;(2,00 €)\n1;0;1.234,5\n")
    assert read_costs(path) == {(0, 0): 1.5, (0, 1): -2.0, (1, 0): 1234.5}


@given(st.floats(-1e9, 1e9, allow_nan=False).map(lambda x: round(x, 2)), st.sampled_from([".", ","]))
def test_what_is_written_in_any_spelling_is_read_back(number, decimal):
    plain = f"{number:,.2f}"
    text = plain if decimal == "." else plain.translate(str.maketrans(",.", ".,"))
    assert amount(text, decimal) == amount(f"€ {text}", decimal) == amount(f"{text} EUR", decimal) == number


@given(st.dates())
def test_dates_are_the_same_moment_in_every_spelling(day):
    moment = both_moments(day.isoformat())[0]
    assert both_moments(day)[0] == moment
    assert both_moments(f"{day.day}/{day.month}/{day.year:04}")[0] == moment
    assert both_moments(f"{day.month}.{day.day}.{day.year:04}")[1] == moment

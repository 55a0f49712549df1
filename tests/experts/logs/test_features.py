"""Features from expressions: safe, exact, and in the log's words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlfd_gym import read_log
from rlfd_gym.experts.logs import log_features
from rlfd_gym.experts.logs.features import evaluate

NAMES = {"state": "stock", "action": "order", "next_state": "next"}
ROWS = {"stock": [0, 0, 2, 1, 0], "order": [3, 3, 0, 0, 3], "next": [2, 1, 1, 0, 2], "demand": [1, 2, 1, 4, None]}


@pytest.fixture(scope="module")
def log():
    return read_log(ROWS | {"city": ["x"] * 5}, discount=0.9, columns=["demand"], **NAMES)


def test_states_and_actions_are_numbers_of_the_pair(log):
    table = log_features(log, {"order": "order", "hold": "stock + order", "rush": "(order > 2) * 10 - stock / 2"})
    assert log.pair_labels() == [(0, 3), (1, 0), (2, 0)]
    assert table.tolist() == [[3, 3, 10], [0, 1, -0.5], [0, 2, -1]]


def test_a_logged_column_is_averaged_over_the_rows_of_the_pair_after_the_expression(log):
    sales = log_features(log, {"sales": "min(stock + order, demand)"})[:, 0]
    assert sales.tolist() == [(1 + 2) / 2, 1, 1]  # a row without a demand does not count


def test_an_exogenous_column_is_averaged_over_all_rows(log):
    sales = log_features(log, {"sales": "min(stock + order, demand)"}, exogenous=["demand"])[:, 0]
    np.testing.assert_allclose(sales, [(1 + 2 + 1 + 3) / 4, 1, (1 + 2 + 1 + 2) / 4])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stok + 1", "uses 'stok', which is neither the state"),
        ("stock +", "is no expression"),
        ("stock ** 2", r"has 'stock \*\* 2', which is not understood"),
        ("__import__('os').system('x')", "not understood|uses '__import__'"),
        ("stock.real", "not understood"),
        ("[stock][0]", "not understood"),
        ("(lambda: 1)()", "not understood"),
        ("1 if stock else 2", "not understood"),
        ("'a' * 9", "not understood"),
        ("True + stock", "not understood"),
        ("stock < order < 3", "not understood"),
        ("min(stock)", "not understood"),
        ("min(*stock, 1)", "not understood"),
        ("stock / order", r"no finite value for 2 pairs, such as \(1, 0\)"),
        ("1e400 + stock", "the number"),
        ("(" * 60 + "stock" + ")" * 60 + " + x" * 200, "more than 500|no expression"),
        ("-" * 60 + "stock", "nests more than 50 deep"),
    ],
)
def test_anything_else_is_refused_by_name(log, text, message):
    with pytest.raises(ValueError, match=f"feature sales.*({message})"):
        log_features(log, {"sales": text})


def test_texts_cannot_be_computed_with():
    rows = {"stock": ["low", "full"], "order": [0, 1], "next": ["full", "low"]}
    log = read_log(rows, discount=0.9, **NAMES)
    assert log_features(log, {"order": "order"})[:, 0].tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"computes with 'full', which is a text"):
        log_features(log, {"hold": "stock + 1"})


def test_two_logged_columns_or_unread_ones_are_refused():
    rows = ROWS | {"price": [1.0] * 5}
    log = read_log(rows, discount=0.9, columns=["demand", "price"], **NAMES)
    with pytest.raises(ValueError, match="uses demand and price: one logged column at most"):
        log_features(log, {"sales": "demand * price"})
    with pytest.raises(ValueError, match=r"column 'rain' was not read as numbers.*has demand, price"):
        log_features(log, {"sales": "demand"}, exogenous=["rain"])


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 9))
def test_expressions_mean_what_python_means(x, y, z):
    text = "max(x, y, 2) - abs(y) * (x >= y) + -x / z * 1.5"
    assert evaluate("f", text, {"x": x, "y": y, "z": z}) == pytest.approx(eval(text))


def test_many_distinct_values_keep_their_means(monkeypatch):
    from rlfd_gym.experts.logs import estimate

    monkeypatch.setattr(estimate, "MOST_VALUES", 2)
    log = read_log(ROWS, discount=0.9, columns=["demand"], **NAMES)
    assert not log.column("demand").exact
    assert log.mean("demand").tolist() == [1.5, 4, 1]


def test_a_pair_without_the_number_has_that_of_all_rows_with_a_warning_unless_it_was_never_seen():
    rows = {"s": [0, 0, 1, 1], "a": [0, 0, 0, 1], "next": [1, 1, 0, 2], "sold": [1.0, 3.0, np.nan, 5.0]}
    log = read_log(rows, discount=0.9, state="s", action="a", next_state="next", columns=["sold"])
    assert log.pair_labels() == [(0, 0), (1, 0), (1, 1), (2, 0)]  # state 2 was never left
    with pytest.warns(UserWarning, match="1 pairs have no row with a number as 'sold'"):
        found = log_features(log, {"sell": "10 * s + sold"})
    assert found[:, 0].tolist() == [2, 13, 15, 23]
    rows["sold"] = [np.nan] * 4
    log = read_log(rows, discount=0.9, state="s", action="a", next_state="next", columns=["sold"])
    with pytest.raises(ValueError, match="no good row holds a number"):
        log_features(log, {"sell": "sold"})


def test_many_distinct_values_keep_their_variance(monkeypatch):
    monkeypatch.setattr("rlfd_gym.experts.logs.estimate.MOST_VALUES", 3)
    paid = np.random.default_rng(0).normal(5.0, 2.0, size=50)
    log = read_log({"s": [0] * 50, "a": [0] * 50, "next_state": [0] * 50, "paid": paid}, discount=0.9, state="s",
                   action="a", columns=["paid"])  # fmt: skip
    column = log.column("paid")
    weights = np.asarray(column.counts.sum(axis=0))
    assert not column.exact
    assert weights.sum() == 50
    assert weights @ column.values / 50 == pytest.approx(paid.mean())
    assert weights @ (column.values - paid.mean()) ** 2 / 50 == pytest.approx(paid.var())

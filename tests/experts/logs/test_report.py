from __future__ import annotations

import re

import numpy as np
from small_logs import EPISODES, NAMES, TINY, bad_rows, early_ends

from rlfd_gym import read_log


def test_the_report_says_what_was_seen_and_what_was_decided():
    report = read_log(TINY, discount=0.5).report
    assert (report.n_rows, report.n_used, report.bad) == (5, 5, ())
    assert (report.n_visited, report.n_unvisited, report.n_thin, report.ends) == (3, 3, 3, (2,))
    assert re.search(r"states never left, which stay +1 \(2\)\n", str(report))
    assert "uniform over the states that were left" in str(report)


@bad_rows
@early_ends
def test_rows_behind_gaps_carry_the_answer_unless_the_expert_is_estimated_from_episodes():
    # One bad row in the third week of each shop, and all later rows of the shop were behind a gap.
    rng = np.random.default_rng(0)
    stock = rng.integers(0, 3, 3 * 104)
    rows = {"shop": np.repeat(["a", "b", "c"], 104), "stock": stock.astype(object), "order": stock % 2}
    rows["next_stock"] = np.append(stock[1:], 0)
    rows["stock"][[2, 106, 210]] = None
    all_rows, episodes = (
        read_log(rows, discount=0.9, **NAMES, episode="shop", expert=expert).report for expert in (None, "episodes")
    )
    assert (all_rows.n_used, all_rows.n_behind_gaps) == (309, 303)
    assert all_rows.n_carrying == 309
    assert episodes.n_carrying < 7
    assert re.search(r"rows that carried the expert's estimate +309 of 309\n", str(all_rows))


@early_ends
def test_a_log_represents_itself_in_a_line(csv):
    log = read_log(csv("1,a,0,1,1\n2,a,1,0,0\n1,b,0,0,0\n"), discount=0.9, **NAMES, **EPISODES)
    assert repr(log) == "Log(3 of 3 rows used, 2 episodes, 2 states, 2 actions, 3 pairs, discount 0.9)"

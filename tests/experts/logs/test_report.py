from __future__ import annotations

import re

from small_logs import EPISODES, NAMES, TINY, early_ends

from rlfd_gym import read_log


def test_the_report_says_what_was_seen_and_what_was_decided():
    report = read_log(TINY, discount=0.5).report
    assert (report.n_rows, report.n_used, report.bad) == (5, 5, ())
    assert (report.n_visited, report.n_unvisited, report.n_thin, report.ends) == (3, 3, 3, (2,))
    assert re.search(r"states never left, which stay +1 \(2\)\n", str(report))
    assert "uniform over the states that were left" in str(report)


@early_ends
def test_a_log_represents_itself_in_a_line(csv):
    log = read_log(csv("1,a,0,1,1\n2,a,1,0,0\n1,b,0,0,0\n"), discount=0.9, **NAMES, **EPISODES)
    assert repr(log) == "Log(3 of 3 rows used, 2 episodes, 2 states, 2 actions, 3 pairs, discount 0.9)"

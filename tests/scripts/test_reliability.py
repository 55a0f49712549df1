"""The page on reliability counts what its trials say, and a trial that breaks is a failure, not a gap."""

from __future__ import annotations

import pytest
import reliability

TABLE = """
import json, os, sys, time
from dataclasses import dataclass

@dataclass(frozen=True)
class Trial:
    tries: str

TRIALS = {name: Trial(f"what {name} tries") for name in ("good", "bad", "crash", "hang", "error")}

if __name__ == "__main__":
    name = sys.argv[1]
    print("a word by the way")
    if name == "crash":
        os.abort()
    if name == "error":
        raise ValueError("wrong")
    if name == "hang":
        time.sleep(60)
    failures = [] if name == "good" else [f"case {k} | ``` went wrong" for k in range(25)]
    print(json.dumps({"tried": 1234, "came": {"refused": 1200}, "failures": failures}))
"""


@pytest.fixture
def table(tmp_path, monkeypatch):
    path = tmp_path / "trials.py"
    path.write_text(TABLE)
    monkeypatch.setattr(reliability, "TRIALS", path)
    return tmp_path / "page.md"


def test_the_page_counts_what_was_tried_and_the_status_tells_failures(table, capsys):
    assert reliability.main(["--trials", "good", "--out", str(table)]) == 0
    assert "**1,234 cases, 0 failures**" in table.read_text()
    assert "| good | 1,234 | 1,200 refused | 0 | what good tries |" in table.read_text()
    assert reliability.main(["--trials", "good, bad", "--out", str(table)]) == 1
    assert "**2,468 cases, 25 failures**" in table.read_text()
    assert "case 19 | ''' went wrong\nand 5 more\n```" in table.read_text()
    assert "25 failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [("crash", "exit status -6"), ("error", "exit status 1: ValueError: wrong"), ("hang", "after 1 s")],
)
def test_a_trial_that_breaks_is_a_failure(table, name, said):
    result = reliability.run(name, "", limit=1.0)
    assert result.tried == 0
    (failure,) = result.failures
    assert said in failure


def test_an_unknown_trial_is_named(table, capsys):
    with pytest.raises(SystemExit):
        reliability.main(["--trials", "god"])
    assert "'god' is not one of good, bad" in capsys.readouterr().err


def test_the_real_trials_are_listed(capsys):
    assert reliability.main(["--list"]) == 0
    assert "crafted files" in capsys.readouterr().out

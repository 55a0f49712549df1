"""A log that is cut into chunks and kept on disk is the same log: every number, label, message and warning."""

from __future__ import annotations

import random
import tracemalloc
import warnings
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_logs import EPISODES, NAMES, early_ends, written

from rlfd_gym import read_log
from rlfd_gym.experts.logs import columns, estimate, ordering
from rlfd_gym.experts.logs.chunks import Chunks
from rlfd_gym.experts.logs.cleaning import clean
from rlfd_gym.experts.logs.ordering import Episodes, Steps
from rlfd_gym.experts.logs.records import read_records
from rlfd_gym.experts.logs.spool import Spool, in_file

COLUMNS = {"state": "stock", "action": "order"}


def dirty_rows(draw: random.Random, n_rows: int, n_shops: int, dirt: float) -> dict[str, np.ndarray]:
    """Rows of several shops, of which some are wrong in one of the usual ways, in any order."""
    texts, steps = draw.random() < 0.3, draw.choice(("weeks", "jitter", "dates"))
    rows, clock, stock = [], dict[int, int](), dict[int, int]()

    def spoiled(value, *others):
        return draw.choice(others) if draw.random() < dirt else value

    def named(level):
        return level if not texts else draw.choice(("low", "Low ")) if level == 0 else f"level {level}"

    for _ in range(n_rows):
        shop = draw.randrange(n_shops)
        clock[shop] = clock.get(shop, 0) + (1 if draw.random() > dirt else 3)
        now, then = stock.get(shop, 0), draw.randrange(4)
        stock[shop] = spoiled(then, 0, 1)
        week = clock[shop] + (0.9 * draw.random() if steps == "jitter" else 0)
        rows.append((
            spoiled(shop, None, "", f"{shop}.0"),
            spoiled(str(np.datetime64("2023-01-02") + 7 * week) if steps == "dates" else week, None, "soon", 1),
            spoiled(named(now), None, "x y", 2.5, "?"),
            spoiled(draw.randrange(3), None, "many"),
            spoiled(named(then), "", "q"),
            spoiled(draw.randrange(50) / 4, "n/a", "2"),
        ))  # fmt: skip
    if draw.random() < 0.5:
        draw.shuffle(rows)
    table = dict(zip(("shop", "day", "stock", "order", "next_stock", "money"), zip(*rows, strict=True), strict=True))
    return {name: np.array(column, dtype=object) for name, column in table.items()}


def all_of(rows, **options):
    """All that is read from a log, as plain objects, with the warnings; or the error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            log = read_log(rows, discount=0.9, max_dropped=1, **COLUMNS, **options)
        except ValueError as error:
            return str(error), [str(one.message) for one in told]
    found = {one.name: getattr(log, one.name) for one in fields(log)}
    mdp, episodes, groups, held = (found.pop(name) for name in ("mdp", "episodes", "groups", "columns"))
    found["mdp"] = [mdp.transitions.toarray(), mdp.pair_states, mdp.pair_actions, mdp.initial]
    found["counts"] = found["counts"].toarray()
    found["episodes"] = episodes and [getattr(episodes, one.name) for one in fields(episodes)]
    found["groups"] = None if groups is None else groups.toarray()
    found["columns"] = {
        name: [one.values, one.by_transition.toarray(), one.counts.toarray(), one.exact] for name, one in held.items()
    }
    return plain(found), [str(one.message) for one in told]


def plain(value):
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return (str(value.dtype), value.tolist()) if isinstance(value, np.ndarray) else value


KINDS = {
    "rows": {"next_state": "next_stock"},
    "episodes": {"next_state": "next_stock", "episode": "shop"},
    "times": {"next_state": "next_stock", "episode": "shop", "time": "day", "columns": ["money"]},
    "following": {"episode": "shop"},
    "following in time": {"episode": "shop", "time": "day", "columns": ["money"]},
    "feasible": {"episode": "shop", "time": "day", "feasible": [(s, a) for s in range(4) for a in range(3) if s != a]},
    "expert": {"next_state": "next_stock", "episode": "shop", "time": "day", "expert": "episodes"},
}


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 10**6), n_rows=st.sampled_from([1, 6, 40, 150]), n_shops=st.sampled_from([1, 3, 35]),
       dirt=st.sampled_from([0.0, 0.03, 0.1]), held=st.integers(1, 60), part=st.integers(1, 60))  # fmt: skip
@settings(max_examples=12)
def test_chunks_of_any_size_make_the_same_log_and_say_the_same(kind, seed, n_rows, n_shops, dirt, held, part):
    rows = dirty_rows(random.Random(seed), n_rows, n_shops, dirt)
    whole = all_of(rows, **KINDS[kind])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "HELD", held)
        patch.setattr(columns, "PART", part)
        assert all_of(rows, **KINDS[kind]) == whole


def test_episodes_that_go_on_in_several_chunks_are_counted_once(monkeypatch):
    monkeypatch.setattr(columns, "HELD", 3)
    monkeypatch.setattr(columns, "PART", 2)
    rows = {
        "shop": [0] * 7 + [1] * 2 + [2] * 8,
        "stock": [0, 1, 2, 0, 1, 2, 3, 5, 4, 1, 2, 2, 0, 1, 2, 0, 4],
        "order": [0] * 17,
    }
    log = read_records(rows, {**COLUMNS, "episode": "shop"})
    found = clean(log, False, known_states=None, known_actions=None, known_pairs=None).episodes
    assert found.used.tolist() == [True] * 3
    assert found.lengths.tolist() == [6, 1, 7]
    assert found.firsts.tolist() == [1, 1, 0, 0, 0, 1]
    assert found.lasts.tolist() == [0, 0, 0, 1, 2, 0]


@pytest.mark.parametrize("time", [None, "day"])
def test_chunks_have_few_rows_and_come_in_order_even_of_one_long_episode(monkeypatch, time):
    monkeypatch.setattr(columns, "HELD", 100)
    monkeypatch.setattr(columns, "PART", 70)
    rng = np.random.default_rng(0)
    shop = np.repeat([0, 1, 2, 3, 4], [30, 1000, 40, 50, 20])
    day = np.concatenate([rng.permutation(n) for n in (30, 1000, 40, 50, 20)])
    rows = {"shop": shop, "day": day, "s": day % 3}
    log = read_records(rows, {"state": "s", "episode": "shop"} | ({} if time is None else {"time": time}))
    chunks = list(Chunks(log, Episodes.of(log.columns["episode"])))
    assert max(len(records) for records, _ in chunks) <= (100 if time is None else 200)
    assert [goes_on for _, goes_on in chunks][:3] == [False, True, True]
    numbers = np.concatenate([records["row"] for records, _ in chunks])
    assert np.sort(numbers).tolist() == list(range(1140))
    assert (np.diff(shop[numbers]) >= 0).all()
    long = [day[records["row"]] for records, _ in chunks if shop[records["row"][0]] == 1]
    assert len(long) == 10
    if time is None:
        assert np.concatenate(long).tolist() == day[30:1030].tolist()
    else:
        assert all(before.max() < after.min() for before, after in pairwise(long))


@early_ends
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "HELD", 5_000)
    monkeypatch.setattr(columns, "PART", 1_000)
    peaks = []
    for n_rows in (10_000, 40_000):
        body = "".join(f"{t % 500},{t % 20},{t % 9},{t % 4},{(t + 1) % 9}\n" for t in range(n_rows))
        path = written(tmp_path, body, name=f"{n_rows}.csv")
        tracemalloc.start()
        try:
            log = read_log(path, discount=0.99, **NAMES, episode="shop")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert log.report.n_used == n_rows
        assert len(log.episodes.states) == n_rows - log.report.n_behind_gaps
    assert peaks[1] < 1.2 * peaks[0]


def test_the_usual_step_is_the_median_also_of_steps_that_are_rounded(monkeypatch):
    steps = np.random.default_rng(0).normal(7.0, 0.3, 999)
    times = columns.Times("day", np.concatenate([[0.0], np.cumsum(steps)]))
    order, episodes = np.arange(1000, dtype=np.int32), np.zeros(1000, np.int32)

    def usual(size):
        found = Steps()
        for start in range(0, 999, size):
            found.add(order[start : start + size + 1], episodes, times)
        return found.usual()

    expected = np.median(np.diff(times.moments))
    assert usual(1000) == usual(10) == expected
    monkeypatch.setattr(ordering, "MOST_STEPS", 50)
    assert usual(1000) == usual(10)
    assert usual(10) == pytest.approx(expected, rel=2.0**-16)
    assert Steps().usual() is None


def test_a_spool_gives_back_what_it_got_from_memory_and_from_disk(monkeypatch):
    dtype = np.dtype([("state", np.int32), ("paid", np.float64)])
    blocks = [np.array([(k, k / 2), (k + 1, -k)], dtype) for k in range(10)]
    for held in (100, 5):
        monkeypatch.setattr(columns, "HELD", held)
        spool = Spool(dtype)
        assert [spool.add(block) for block in blocks] == list(range(10))
        assert [block.tolist() for block in spool] == [block.tolist() for block in blocks]
        assert spool.together([7, 2])["state"].tolist() == [7, 8, 2, 3]
        spool.clear()
        assert (len(spool), spool.n_rows) == (0, 0)
    for held in (100, 5):
        monkeypatch.setattr(columns, "HELD", held)
        parts = [[np.array([1, 2]), np.array([3, 4])], [np.arange(5), np.arange(5, 10)]]
        assert [column.tolist() for column in in_file(iter(parts), 2, 7)] == [[1, 2, *range(5)], [3, 4, *range(5, 10)]]


def test_a_column_with_too_many_values_of_its_transitions_keeps_mean_and_variance(monkeypatch):
    paid = np.random.default_rng(0).integers(0, 20, 200).astype(float)
    rows = {"s": np.arange(200) % 2, "a": np.zeros(200, int), "next_state": np.zeros(200, int), "paid": paid}
    names = {"state": "s", "action": "a", "columns": ["paid"]}
    exact = read_log(rows, discount=0.9, **names)
    monkeypatch.setattr(estimate, "MOST_ENTRIES", 30)
    rough = read_log(rows, discount=0.9, **names)
    assert (exact.column("paid").exact, rough.column("paid").exact) == (True, False)
    np.testing.assert_allclose(rough.mean("paid"), exact.mean("paid"))
    spread = [[one.counts[[k]] @ (one.values - one.means()[k]) ** 2 for k in (0, 1)]
              for one in (exact.column("paid"), rough.column("paid"))]  # fmt: skip
    np.testing.assert_allclose(*spread)


@early_ends
def test_the_episodes_of_a_long_log_are_arrays_like_any(tmp_path, monkeypatch):
    body = "".join(f"{t % 50},{t // 50},{t % 5},{t % 3},{(t + 1) % 5}\n" for t in range(1_000))
    path = written(tmp_path, body)
    short = read_log(path, discount=0.9, **NAMES, **EPISODES, expert="episodes")
    monkeypatch.setattr(columns, "HELD", 100)
    long = read_log(path, discount=0.9, **NAMES, **EPISODES, expert="episodes")
    assert long.expert.tolist() == short.expert.tolist()
    assert long.episodes.only(np.array([3])).states.tolist() == short.episodes.only(np.array([3])).states.tolist()

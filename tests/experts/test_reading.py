"""Which demonstrations have times, in what order they are read, and how much of what may be endless."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlfd_gym.experts import read_demonstrations, reading

NAMES = ("obs", "acts", "next_obs", "dones")


def flat(walks, terminal=True):
    """The transitions of trajectories of states, one after the other; action k is taken at time k."""
    return {
        "obs": np.concatenate([walk[:-1] for walk in walks]),
        "acts": np.concatenate([np.arange(len(walk) - 1) for walk in walks]),
        "next_obs": np.concatenate([walk[1:] for walk in walks]),
        "dones": np.concatenate([[False] * (len(walk) - 2) + [terminal] for walk in walks]),
    }


def batches(columns, size):
    n = len(columns["obs"])
    return [{name: column[i : i + size] for name, column in columns.items()} for i in range(0, n, size)]


def times(read):
    return np.concatenate([np.arange(length) for length in read.lengths])


WALKS = [[0, 1, 2], [3, 0], [1, 1, 2, 0]]


@given(st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=6), min_size=1, max_size=6), st.integers(1, 7))
def test_transitions_in_their_order_are_the_trajectories_they_were(walks, size):
    columns = flat(walks)
    for kind in (SimpleNamespace(**columns), batches(columns, size), iter(batches(columns, size))):
        read = read_demonstrations(kind)
        assert read.lengths.tolist() == [len(walk) - 1 for walk in walks]
        assert read.terminal.all()
        assert (times(read) == read.actions).all()
        assert (read.next_states == columns["next_obs"]).all()


def test_the_last_trajectory_may_be_cut():
    columns = {name: column[:-1] for name, column in flat(WALKS).items()}
    read = read_demonstrations(SimpleNamespace(**columns))
    assert read.lengths.tolist() == [2, 1, 2]
    assert read.terminal.tolist() == [True, True, False]


@pytest.mark.parametrize("kind", [bool, int, float, np.uint8])
@pytest.mark.parametrize("column", [False, True])
def test_dones_of_any_type_and_shape_are_read(kind, column):
    columns = flat(WALKS)
    columns["dones"] = columns["dones"].astype(kind)[:, None] if column else columns["dones"].astype(kind)
    assert read_demonstrations(SimpleNamespace(**columns)).lengths.tolist() == [2, 1, 3]


@pytest.mark.parametrize(
    ("dones", "error"),
    [([0, 2, 0], ValueError), (["a", "b", "c"], TypeError), ([0.5, 0, 0], TypeError), ([False, True], ValueError)],
)
def test_bad_dones_are_refused_by_name(dones, error):
    with pytest.raises(error, match="dones"):
        read_demonstrations(SimpleNamespace(obs=[0, 1, 2], acts=[0, 0, 0], next_obs=[1, 2, 3], dones=dones))


@pytest.mark.parametrize("without", ["next_obs", "dones"])
def test_without_dones_or_next_states_there_are_no_times(without):
    columns = flat(WALKS)
    columns.pop(without)
    assert read_demonstrations(SimpleNamespace(**columns)).lengths is None
    halves = batches(flat(WALKS), 3)
    halves[0].pop(without)  # one batch that does not say is enough
    assert read_demonstrations(halves).lengths is None


def test_what_does_not_follow_has_no_times():
    columns = flat(WALKS)
    swapped = {name: column[[1, 0, *range(2, 6)]] for name, column in columns.items()}
    assert read_demonstrations(SimpleNamespace(**swapped)).lengths is None
    assert read_demonstrations(SimpleNamespace(**flat(WALKS, terminal=False))).lengths is None


class Loader:
    """A loader with a data set, which gives its transitions in an order of its own."""

    def __init__(self, order, size=2, **replaced):
        self.dataset, self.order, self.size = SimpleNamespace(**flat(WALKS) | replaced), order, size

    def __iter__(self):
        columns = flat(WALKS)
        return iter(batches({name: columns[name][self.order] for name in NAMES}, self.size))


@given(st.permutations(range(6)), st.integers(0, 1))
def test_a_loader_that_shuffles_is_asked_for_its_data_set(order, dropped):
    read = read_demonstrations(Loader(order[dropped:]))
    assert read.lengths.tolist() == [2, 1, 3]
    assert (times(read) == read.actions).all()


@pytest.mark.parametrize(
    "loader",
    [
        Loader([1, 0, 2, 3]),  # two are missing, a batch
        Loader([3, 3, 0, 1, 2, 5]),  # drawn with replacement
        Loader([1, 0, 2, 3, 4, 5], obs=np.eye(6)),  # of a data set that holds something else
    ],
    ids=["part of it", "with replacement", "made of something else"],
)
def test_a_loader_that_gives_something_else_than_its_data_set_is_read_as_it_is(loader):
    read = read_demonstrations(loader)
    assert read.lengths is None
    assert (read.states == flat(WALKS)["obs"][loader.order]).all()


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(reading, "MOST_TRANSITIONS", 20)


def test_what_may_be_endless_is_read_up_to_a_limit_with_a_warning(few):
    columns = flat(WALKS)
    with pytest.warns(UserWarning, match="read up to 20 transitions.*may be endless"):
        read = read_demonstrations(itertools.cycle(batches(columns, 2)))
    assert read.lengths.tolist() == [2, 1, 3] * 3 + [2]
    nothing = {name: np.zeros(0, dtype=int) for name in NAMES}
    with pytest.warns(UserWarning, match="endless"), pytest.raises(ValueError, match="is empty"):
        read_demonstrations(itertools.repeat(nothing))
    walk = SimpleNamespace(obs=[0, 1, 2], acts=[0, 1], terminal=True)
    with pytest.warns(UserWarning, match="endless"):
        assert len(read_demonstrations(itertools.repeat(walk)).lengths) == 7


def test_what_says_its_length_is_read_to_its_end(few):
    many = batches(flat(WALKS * 5), 2)
    assert len(read_demonstrations(many).states) == 30

    class Epoch:
        def __len__(self):
            return len(many)

        def __iter__(self):
            return itertools.cycle(many)

    assert len(read_demonstrations(Epoch()).states) == 30


def test_a_stream_that_ends_before_the_limit_is_no_reason_for_a_warning(few):
    assert len(read_demonstrations(iter(batches(flat(WALKS), 2))).states) == 6

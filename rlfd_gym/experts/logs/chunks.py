"""The rows of a long log in chunks that fit in memory, each of which comes after the one before.

A log without episodes is taken in the order in which it comes. Otherwise each chunk has the rows of
whole episodes, at most `columns.HELD` of them, in the order of the episodes. An episode that is longer
by itself is cut by time: into ranges of times that have about as many rows, by a sample of them, or,
without times, into ranges of rows. Rows of one episode with the same time are always in one chunk.

So the rows of all chunks, each sorted by episode and time, are those of the log sorted by episode and
time. A log of at most `columns.HELD` rows is a single chunk.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.logs import columns
from rlfd_gym.experts.logs.columns import TIME
from rlfd_gym.experts.logs.ordering import Episodes
from rlfd_gym.experts.logs.records import Rawlog
from rlfd_gym.experts.logs.spool import Records, Spool

SAMPLED = 2**10  # rows of a chunk, about, by which long episodes are cut


class Chunks:
    """The chunks of a log, as records; whoever iterates is also told whether an episode goes on after it.

    The rows are taken out of the `log`, which has none afterwards.
    """

    def __init__(self, log: Rawlog, episodes: Episodes | None) -> None:
        """Sort the rows into chunks."""
        self._spool = Spool(log.dtype)
        plan = _Plan(log, episodes)
        self._goes_on, self._blocks = plan.goes_on, [list[int]() for _ in plan.goes_on]
        for records in log.parts():
            chunk = plan.chunk_of(records)
            order = np.argsort(chunk, kind="stable")
            for rows in np.split(order, np.flatnonzero(np.diff(chunk[order])) + 1):
                if len(rows):
                    self._blocks[chunk[rows[0]]].append(self._spool.add(records[rows]))
        log.spool.clear()

    def __iter__(self) -> Iterator[tuple[Records, bool]]:
        """Return the records of each chunk, and whether the next one goes on with the same episode."""
        for blocks, goes_on in zip(self._blocks, self._goes_on, strict=True):
            yield self._spool.together(blocks), goes_on


class _Plan:
    """Says which chunk a row belongs to."""

    def __init__(self, log: Rawlog, episodes: Episodes | None) -> None:
        """Look at how many rows each episode has."""
        self._episodes, self._timed, self._n_parts = episodes, TIME in log.numbers, 0
        self._single = log.spool.n_rows <= columns.HELD
        if episodes is None or self._single:
            self.goes_on = [False] * (1 if self._single else len(log.spool))
            return
        sizes = episodes.sizes(log.columns["episode"].counts)
        upto = np.cumsum(sizes)
        self._first: IntArray = np.zeros(len(sizes), np.int64)  # the first chunk of each episode
        self._cuts: dict[int, FloatArray] = {}  # the times that begin a new chunk of a long episode
        self._seen: dict[int, int] = {}
        sample = self._sampled(log, sizes > columns.HELD) if self._timed else {}
        self.goes_on, start = [], 0
        while start < len(sizes):
            before = upto[start] - sizes[start]
            end = max(start + 1, int(np.searchsorted(upto, before + columns.HELD, side="right")))
            self._first[start:end] = len(self.goes_on)
            n_chunks = 1
            if sizes[start] > columns.HELD:
                n_chunks = -(-int(sizes[start]) // columns.HELD)
                if self._timed:
                    times = np.sort(sample[start])
                    places = np.arange(1, n_chunks) * len(times) // n_chunks
                    self._cuts[start] = np.unique(times[places[: len(times)]])
                    n_chunks = len(self._cuts[start]) + 1
                else:
                    self._seen[start] = 0
            self.goes_on += [True] * (n_chunks - 1) + [False]
            start = end

    def chunk_of(self, records: Records) -> IntArray:
        """Return the number of the chunk of each record; parts have to come in their order."""
        if self._single or self._episodes is None:
            self._n_parts += 1
            return np.full(len(records), 0 if self._single else self._n_parts - 1)
        episode = self._episodes.numbers[records["episode"]]
        chunk = self._first[episode]
        for number in np.unique(episode).tolist():
            if number in self._cuts:
                here = np.flatnonzero(episode == number)
                chunk[here] += np.searchsorted(self._cuts[number], records[TIME][here], side="right")
            elif number in self._seen:
                here = np.flatnonzero(episode == number)
                chunk[here] += (self._seen[number] + np.arange(len(here))) // columns.HELD
                self._seen[number] += len(here)
        return chunk

    def _sampled(self, log: Rawlog, long: np.ndarray) -> dict[int, FloatArray]:
        """Return some of the times of long episodes."""
        if not long.any():
            return {}
        assert self._episodes is not None
        rng, share = np.random.default_rng(0), SAMPLED / columns.HELD
        found = list[tuple[IntArray, FloatArray]]()
        for records in log.parts():
            episode = self._episodes.numbers[records["episode"]]
            some = long[episode] & ~np.isnan(records[TIME]) & (rng.random(len(episode)) < share)
            found.append((episode[some], records[TIME][some]))
        episodes, times = (np.concatenate(column) for column in zip(*found, strict=True))
        return {int(number): times[episodes == number] for number in np.flatnonzero(long)}

r"""Solve the linear systems of the matrix-free methods, by the means that each system needs.

Every step of the methods solves a system over the states,

    (Tγ D Tγᵀ + diag r - share r rᵀ) x = b,

where D ≥ 0 and r ≥ 0 change from step to step, and `share` is 0 or 1/Σr. On chains that mix slowly
its condition is about 1/(1-γ)², far too much for plain conjugate gradients. Three things help:

* **Products** over the pairs, in conjugate gradients preconditioned by the diagonal. Random graphs
  mix quickly, so that few products are needed.
* **Algebraic multigrid** (`rlfd_gym.solvers.multigrid`) as the preconditioner. It needs the matrix
  itself. If transitions lead to near states only, as on a grid or between queues, the matrix
  has about as many entries as the tables; otherwise it would be nearly dense, and is not formed.
  The constant vector, for which Tγᵀ1 = 1 is exactly known, is what the coarse levels keep. These serve
  for the next systems too, with the new matrix on the finest level, until they no longer help.
* **A sparse factorisation** (SuperLU) of the same matrix. It costs about w³ multiplications, where
  w is the largest number of states at the same distance from some state: nothing on a chain,
  seconds on a grid with a million pairs, far too much on three queues.

Each is tried once the work done by the one before exceeds what preparing it costs. From then on it
is used for all systems, because their condition becomes worse from step to step. All work is
counted in passes over the entries of the matrix, not in seconds, so the answers do not depend on
what else the machine does. The costs in these units were measured on grids, chains and queues with
10⁴ to 10⁶ pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy.sparse as sp

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.solvers.incumbent import Incumbent

if TYPE_CHECKING:
    from rlfd_gym._rows import Threads

MAX_PRODUCTS = 3_000  # conjugate gradient iterations for one system
MAX_REFINEMENTS = 20  # the same, with a factorisation
PORTION = 20_000_000  # entries of the tables that are passed between two looks at the clock
LOCAL = 3.0  # the matrix is formed if it has at most so many times the entries of the tables
LONG_ROW = 12  # next states of a pair: with more on average the matrix is not even looked at
SAMPLE = 300  # states that are looked at to predict the entries of the matrix
# What each of the means takes, in passes over the entries of the matrix.
PRODUCT = 2.0  # a product over the pairs
MULTIGRID, CYCLE = 250.0, 5.0  # to prepare multigrid, and an iteration with it
FACTORISATION = 100.0  # one without fill-in
WIDEST = 1_500  # states at the same distance, beyond which the matrix is not factorised


class Preconditioner(Protocol):
    """An approximate inverse of a matrix, which may serve for later matrices too.

    Attributes:
        lasting: how many conjugate gradient steps with a later matrix take as long as preparing it anew.
    """

    lasting: int

    def __call__(self, r: FloatArray) -> FloatArray:
        """Return the approximate inverse times r."""

    def renew(self, matrix: sp.csr_matrix) -> None:
        """Take another matrix, without preparing for it."""


class NormalEquations:
    """The systems of one problem, with what was learned about which means they need."""

    def __init__(self, best: Incumbent) -> None:
        """Begin with the cheapest means for the problem of an incumbent, whose deadline counts."""
        self.best, self.mdp = best, best.problem.mdp
        self.means = "products"
        self.preconditioner: Preconditioner | None = None
        self.is_stale = False

    def at(self, weights: FloatArray, ridge: FloatArray, share: float) -> None:
        """Take the diagonals of D and of the ridge, and the share of the last term."""
        self.weights, self.ridge, self.share = weights, ridge, share
        self.matrix: sp.csr_matrix | None = None
        self.is_stale = self.preconditioner is not None

    def solve(self, rhs: FloatArray, x: FloatArray, goal: float) -> int:
        """Improve x in place until ‖residual‖₁ ≤ goal; return the number of products."""
        made = 0
        if self.means == "products":
            made, done = self._products(rhs, x, goal)
            if done or self.is_scattered or self.best.out_of_time():
                return made
            self.means = "multigrid" if self.factorisation > MULTIGRID else "factorisation"
        from rlfd_gym.solvers import multigrid  # compiled: loaded only for problems that need it

        if self.matrix is None:
            self.matrix = self._formed()
            self.rows = multigrid.Rows(self.matrix, np.float64, self.threads)
        if self.means == "multigrid":
            affordable = self.factorisation < np.inf
            more, done = self._iterate(
                rhs,
                x,
                goal,
                partial(multigrid.Multigrid, threads=self.threads),
                int(self.factorisation / CYCLE) if affordable else MAX_PRODUCTS,
            )
            made += more
            if done or not affordable or self.best.out_of_time():
                return made
            self.means, self.preconditioner = "factorisation", None
        return made + self._iterate(rhs, x, goal, _Factorisation, MAX_REFINEMENTS)[0]

    @cached_property
    def threads(self) -> Threads:
        """The threads that share passes over the matrix."""
        from rlfd_gym._rows import Threads  # loads numba

        return Threads()

    @cached_property
    def flow(self) -> Any:
        """Tγ."""
        return sp.csr_matrix(self.mdp.flow_matrix())

    @cached_property
    def flow_back(self) -> Any:
        """Tγᵀ."""
        return sp.csr_matrix(self.flow.T)

    @cached_property
    def is_scattered(self) -> bool:
        """Whether Tγ D Tγᵀ would have too many entries to be formed."""
        mdp = self.mdp
        if mdp.transitions.nnz > LONG_ROW * mdp.n_pairs:
            return True
        some = np.unique(np.linspace(0, mdp.n_states - 1, SAMPLE).astype(np.int64))
        # The pairs that start or end in these states, and where else these start and end.
        touching = abs(self.flow[some])
        near = touching @ mdp.transitions + touching @ _incidence(mdp)
        predicted = near.nnz / some.size * mdp.n_states
        return bool(predicted > LOCAL * (mdp.transitions.nnz + mdp.n_pairs))

    @cached_property
    def pattern(self) -> sp.csr_matrix:
        """A matrix with entries where Tγ D Tγᵀ may have them."""
        pattern = sp.csr_matrix(abs(self.flow) @ abs(self.flow_back))
        pattern.sort_indices()
        return pattern

    def _formed(self) -> sp.csr_matrix:
        """Return Tγ D Tγᵀ + diag r, which has the same pattern for all D and r."""
        from rlfd_gym.solvers import _newton  # compiled: loaded only for problems that need it

        flow, back, pattern = self.flow, self.flow_back, self.pattern
        entries = np.empty(pattern.nnz)
        _newton.weigh(
            *(flow.data, flow.indices, flow.indptr),
            *(back.data, back.indices, back.indptr),
            *(pattern.indices, pattern.indptr, self.weights, self.ridge, np.zeros(flow.shape[0]), entries),
        )
        return sp.csr_matrix((entries, pattern.indices, pattern.indptr), shape=pattern.shape)

    @cached_property
    def factorisation(self) -> float:
        """What a factorisation takes, in passes over the matrix; infinite if that is too much."""
        width = _width(self.pattern)
        return FACTORISATION + 2.0 * width**3 / self.pattern.nnz if width <= WIDEST else np.inf

    def _iterate(
        self,
        rhs: FloatArray,
        x: FloatArray,
        goal: float,
        prepare: Callable[[sp.csr_matrix], Preconditioner],
        limit: int,
    ) -> tuple[int, bool]:
        """Make conjugate gradient steps, preconditioned by what `prepare` makes of the matrix.

        What it made of an earlier matrix is tried first. Returns the number of steps, and whether the goal was reached.
        """
        made, done = 0, False
        if self.preconditioner is not None and self.is_stale:
            self.preconditioner.renew(self.matrix)
            made, done = self._conjugate_gradients(rhs, x, goal, self.preconditioner, self.preconditioner.lasting)
        if not done and (self.preconditioner is None or self.is_stale) and not self.best.out_of_time():
            self.preconditioner = None  # its memory is needed
            self.preconditioner, self.is_stale = prepare(self.matrix), False
        if done or self.preconditioner is None:
            return made, done
        more, done = self._conjugate_gradients(rhs, x, goal, self.preconditioner, limit)
        return made + more, done

    def _conjugate_gradients(
        self, rhs: FloatArray, x: FloatArray, goal: float, preconditioner: Preconditioner, limit: int
    ) -> tuple[int, bool]:
        """Make at most `limit` steps in place; return their number, and whether the goal was reached."""
        r = rhs - self._product(x)
        p, rz = np.zeros_like(x), 1.0
        for made in range(limit):
            if np.abs(r).sum() <= goal:
                return made, True
            if self.best.out_of_time():
                return made, False
            z = preconditioner(r)
            before, rz = rz, dot(r, z)
            p = z + (rz / before if made else 0.0) * p
            ahead = self._product(p)
            bend = dot(p, ahead)
            if not (bend > 0.0 and rz > 0.0 and np.isfinite(bend)):
                return made, False  # rounding has taken over
            x += rz / bend * p
            r -= rz / bend * ahead
        return limit, bool(np.abs(r).sum() <= goal)

    def _product(self, x: FloatArray) -> FloatArray:
        """Return the system's matrix times x."""
        return self.rows @ x - self.share * dot(self.ridge, x) * self.ridge

    def _products(self, rhs: FloatArray, x: FloatArray, goal: float) -> tuple[int, bool]:
        """Make conjugate gradient steps by products over the pairs; return as `_iterate` does.

        They are made in portions of a fraction of a second, so that Ctrl-C and the deadline are
        seen in between. If the matrix can be formed, they end when better means would be prepared.
        """
        from rlfd_gym.solvers import _newton  # compiled: loaded only for problems that need it

        mdp, p = self.mdp, self.mdp.transitions
        matrix = (p.data, p.indices, p.indptr, mdp.state_starts, mdp.discount, self.weights, self.ridge, self.share)
        run = _newton.begin(*matrix, rhs, x)
        portion, made, limit = 1 + PORTION // (p.nnz + mdp.n_pairs), 0, int(FACTORISATION / PRODUCT)
        while not self.best.out_of_time():
            allowed = min(portion, limit - made)
            more = _newton.advance(*matrix, x, goal, allowed, *run)
            made += more
            if more < allowed:
                return made, True
            if made == limit:
                better = np.inf if self.is_scattered else min(self.factorisation, MULTIGRID)
                limit = int(min(MAX_PRODUCTS, better / PRODUCT))
                if made >= limit:
                    break
        return made, False


def _incidence(mdp: TabularMDP) -> sp.csr_matrix:
    """Return the matrix with a one for each pair in the column of its state."""
    ones, starts = np.ones(mdp.n_pairs), np.arange(mdp.n_pairs + 1)
    return sp.csr_matrix((ones, mdp.pair_states, starts), shape=mdp.transitions.shape)


def _width(pattern: sp.csr_matrix) -> int:
    """Return the largest number of states at the same distance from a state far out."""
    from scipy.sparse.csgraph import breadth_first_order

    order = breadth_first_order(pattern, 0, directed=False, return_predecessors=False)
    order, before = breadth_first_order(pattern, order[-1], directed=False)
    place = np.empty(pattern.shape[0], dtype=np.int64)
    place[order] = np.arange(order.size)
    parents = place[before[order[1:]]]  # they rise: a level is a run of the order, and its parents are the one before
    widest, first, end = 1, 0, 1
    while end < order.size:
        first, end = end, 1 + int(np.searchsorted(parents, end))
        widest = max(widest, end - first)
    return widest


class _Factorisation:
    """A sparse factorisation; the diagonal if rounding, where γ is next to one, makes it singular."""

    lasting = 0  # its factors are of little use for another matrix

    def __init__(self, matrix: sp.csr_matrix) -> None:
        from scipy.sparse.linalg import splu

        options: dict[str, Any] = {"SymmetricMode": True}
        try:
            lu = splu(sp.csc_matrix(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        except RuntimeError:
            diagonal = np.where(matrix.diagonal() > 0, matrix.diagonal(), 1.0)
            self.solve: Callable[[FloatArray], FloatArray] = lambda r: r / diagonal
        else:
            self.solve = lu.solve

    def __call__(self, r: FloatArray) -> FloatArray:
        return self.solve(r)

    def renew(self, matrix: sp.csr_matrix) -> None:
        """Keep the factors."""

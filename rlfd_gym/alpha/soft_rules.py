r"""Rules that choose α by how well a soft expert explains the demonstrations: evidence and held-out.

Both take the expert for an agent of some rationality β, whose decisions are more likely the cheaper
they are (`rlfd_gym.mdp.soft`). The most likely cost of such an agent minimises the objective of
RLfD_α up to log A/β, with the same α; RLfD_α then learns with the α that is chosen.

* **Evidence.** α = 1/(2σ²βN) for the rationality β and the prior's spread σ of the largest evidence
  (`rlfd_gym.solvers.soft_evidence`); K trajectories are N = K/(1-γ) decisions.
* **Held-out likelihood.** The trajectories are divided into `FOLDS` parts. For each of up to `POINTS`
  α of the path the most likely cost is learned from all parts but one, and its soft policy scores
  the trajectories of that part by the discounted log-likelihood of their actions, (1-γ) Σ γᵗ log
  π(a_t|s_t). β is that of the largest evidence. (A deterministic apprentice would give a single
  error of the expert the probability zero.) The rule takes the largest α whose score is within one
  standard error of the best, the standard error being that of the mean over trajectories.
"""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._warnings import collected_warnings
from rlfd_gym.alpha.path import LARGEST, SMALLEST, AlphaPath, PathPoint, solve_at
from rlfd_gym.experts.demonstrations import Demonstrations, demonstrated_pairs, estimate_occupancy
from rlfd_gym.solvers.soft_evidence import Evidence, fit_evidence
from rlfd_gym.solvers.soft_map import MapPoint, SoftProblem, soft_map

FOLDS = 5
POINTS = 10  # of the path that are scored
GOAL = 1e-6  # the accuracy of a fit that is only scored
_FOUND: WeakKeyDictionary[AlphaPath, tuple[float, Evidence]] = WeakKeyDictionary()  # the latest of `evidence_of`


def by_evidence(path: AlphaPath, read: Demonstrations | None, decisions: float) -> tuple[PathPoint, str]:
    """Choose the α of the largest evidence, for trajectories or for a number of decisions."""
    if not decisions:
        decisions = _episodes("evidence", read, 1) / (1 - path.problem.mdp.discount)
    found = evidence_of(path, decisions)
    point = solve_at(path.problem, min(max(found.alpha, SMALLEST), LARGEST))
    return point, (
        f"alpha = {point.alpha:.3g} is 1/(2σ²βN) for {decisions:.4g} decisions of an expert whose rationality is most "
        f"probably β = {found.rationality:.3g}, and a prior whose spread is σ = {found.prior_spread:.3g}"
    )


def by_held_out(path: AlphaPath, read: Demonstrations | None, _: float) -> tuple[PathPoint, str]:
    """Choose the largest α of the path whose score on held-out trajectories is near the best."""
    number = _episodes("held-out", read, 2)
    assert read is not None
    found = evidence_of(path, number / (1 - path.problem.mdp.discount))
    chosen = np.unique(np.linspace(0, len(path) - 1, min(POINTS, len(path))).round().astype(int))
    points = [path[int(k)] for k in chosen]
    scores = held_out_scores(path, read, [point.alpha for point in points], found.rationality)
    means = scores.mean(axis=1)
    best = int(np.argmax(means))
    error = float(scores[best].std(ddof=1)) / math.sqrt(number)
    last = int(np.flatnonzero(means >= means[best] - error)[-1])
    return points[last], (
        f"alpha = {points[last].alpha:.3g} is the largest whose held-out log-likelihood per decision, "
        f"{means[last]:.3g}, is within one standard error, {error:.2g}, of the best, {means[best]:.3g}, for an expert "
        f"of rationality {found.rationality:.3g}"
    )


def evidence_of(path: AlphaPath, decisions: float) -> Evidence:
    """Return β and σ of the largest evidence; asked again for the same path, it remembers them.

    Both rules need them, and they are the slowest part of either.
    """
    known = _FOUND.get(path)
    if known is None or known[0] != decisions:
        problem = path.problem
        known = decisions, fit_evidence(SoftProblem.of(problem.mdp, problem.expert, problem.prior), decisions)
        _FOUND[path] = known
    return known[1]


def held_out_scores(path: AlphaPath, read: Demonstrations, alphas: list[float], beta: float) -> FloatArray:
    """Return the score of each α on each trajectory, by a fit that has not seen the trajectory."""
    assert read.lengths is not None
    problem, number = path.problem, len(read.lengths)
    mdp = problem.mdp
    pairs, weights = demonstrated_pairs(read, mdp), number * read.weights(mdp.discount)
    owner = np.repeat(np.arange(number), read.lengths)
    scores = np.empty((len(alphas), number))
    for part in np.array_split(np.random.default_rng(0).permutation(number), min(FOLDS, number)):
        others = np.setdiff1d(np.arange(number), part)
        with collected_warnings():  # not passed on: estimating the occupancy itself already warns about early ends
            shown = SoftProblem.of(mdp, estimate_occupancy(read.only(others), mdp), problem.prior)
        fit: MapPoint | None = None
        for k in reversed(range(len(alphas))):  # from the prior to the expert, each from the one before
            fit = soft_map(shown, beta, alphas[k], fit, GOAL)
            each = np.bincount(owner, weights=weights * fit.plan.log_policy[pairs], minlength=number)
            scores[k, part] = each[part]
    return scores


def _episodes(rule: str, read: Demonstrations | None, least: int) -> int:
    """Return the number of trajectories, of which a rule needs some."""
    if read is None or read.lengths is None or len(read.lengths) < least:
        found = "none" if read is None else "transitions without times" if read.lengths is None else "one"
        instead = '; for an occupancy give the number of decisions, as in "evidence:1000"' if least == 1 else ""
        raise ValueError(
            f'rule "{rule}" needs demonstrations with at least {least} trajector{"y" if least == 1 else "ies"}, got '
            f"{found}{instead}"
        )
    return len(read.lengths)

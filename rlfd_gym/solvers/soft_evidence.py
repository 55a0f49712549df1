r"""How rational the expert is and how wrong the prior: β and σ by the evidence of the demonstrations.

The evidence is the probability of the expert's N decisions if the cost is drawn from the prior, a
Gaussian around ĉ of spread σ, and the expert is an agent of rationality β. By Laplace's method its
logarithm is

    L(β, σ) = N <μ_E, log π_c> - ‖c - ĉ‖²/2σ² - ½ log det(I + σ²H),

where c is the most likely cost (`rlfd_gym.solvers.soft_map`) and H = Nβ² Gᵀ diag(μ) G the
information of the decisions about it. The first term asks for a good fit, the second that the prior
does not have to move for it, and the third charges for all the costs that would not have fitted.
The box counts only through c. L is maximised over β in [0.1, 10⁴] and σ in [0.01, 1] by a pattern
search on logarithms from the best of a few points, to within a factor of √2: L is flat around its
maximum, and finer answers would be about the approximation.

The evidence sees that decisions vary, or that the prior does not fit them. It cannot see that a
consistent expert is consistently wrong: such an expert is explained well by a wrong cost, and all
the more so the more it shows.

MacKay, "Bayesian interpolation", Neural Computation 4, 1992.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rlfd_gym.solvers.soft_map import GAP, NEWTON_PAIRS, MapPoint, SoftProblem, information, soft_map

RATIONALITIES = (0.1, 1e4)  # where β is sought; costs are at most one
SPREADS = (0.01, 1.0)  # where σ is sought; the box is two wide
FIRST = ((3.0, 0.1), (30.0, 0.1), (30.0, 0.5))  # (β, σ) to begin with
STRIDES = (4.0, 2.0, 2**0.5)  # of the pattern search, each until nothing is better
ENOUGH = 0.02  # the error of L, in nats, that a fit may cause


@dataclass(frozen=True, eq=False)
class Evidence:
    """The most probable β and σ, or the only ones asked for.

    Attributes:
        rationality: β.
        prior_spread: σ.
        log_evidence: L(β, σ).
        fit: the most likely cost for these, up to what L needs.
    """

    rationality: float
    prior_spread: float
    log_evidence: float
    fit: MapPoint = field(repr=False)

    @property
    def alpha(self) -> float:
        """α = 1/(2σ²βN) of this β and σ."""
        return self.fit.alpha


def alpha_of(rationality: float, prior_spread: float, n_decisions: float) -> float:
    """Return α = 1/(2σ²βN), the weight of a Gaussian prior against N decisions."""
    return 1 / (2 * prior_spread**2 * rationality * n_decisions)


def check_size(n_pairs: int) -> None:
    """Refuse a problem whose Hessian would be too large."""
    if n_pairs > NEWTON_PAIRS:
        raise ValueError(
            f"mdp has {n_pairs} pairs, but the evidence and the posterior need a dense matrix over pairs, which is "
            f"formed for at most {NEWTON_PAIRS}; give rationality and prior_spread or alpha"
        )


def evidence_at(
    problem: SoftProblem, rationality: float, prior_spread: float, n_decisions: float, start: MapPoint | None = None
) -> Evidence:
    """Return L(β, σ), with the fit that it is made of."""
    alpha = alpha_of(rationality, prior_spread, n_decisions)
    scale = rationality * n_decisions
    fit = soft_map(problem, rationality, alpha, start, max(GAP, ENOUGH / scale))
    # βN f is the negative log-likelihood plus ‖c - ĉ‖²/2σ², and σ²H = information/2α.
    matrix = information(problem, fit) / (2 * alpha)
    matrix[np.diag_indices_from(matrix)] += 1.0
    logdet = 2 * float(np.log(np.diag(np.linalg.cholesky(matrix))).sum())
    return Evidence(rationality, prior_spread, -scale * fit.upper - logdet / 2, fit)


def fit_evidence(
    problem: SoftProblem, n_decisions: float, rationality: float | None = None, prior_spread: float | None = None
) -> Evidence:
    """Return β and σ of the largest evidence; one that is given is kept."""
    check_size(problem.mdp.n_pairs)
    given = (rationality, prior_spread)
    limits = [(x, x) if x is not None else ends for x, ends in zip(given, (RATIONALITIES, SPREADS), strict=True)]
    known: dict[tuple[float, float], Evidence] = {}

    def at(beta: float, sigma: float, start: MapPoint | None) -> Evidence:
        low, high = zip(*limits, strict=True)
        place = (min(max(beta, low[0]), high[0]), min(max(sigma, low[1]), high[1]))
        if place not in known:
            known[place] = evidence_at(problem, place[0], place[1], n_decisions, start)
        return known[place]

    best: Evidence | None = None
    for beta, sigma in FIRST:
        found = at(beta, sigma, None if best is None else best.fit)
        best = found if best is None or found.log_evidence > best.log_evidence else best
    assert best is not None
    for stride in STRIDES:
        before: Evidence | None = None
        while best is not before:
            before = best
            for beta, sigma in ((stride, 1.0), (1 / stride, 1.0), (1.0, stride), (1.0, 1 / stride)):
                found = at(before.rationality * beta, before.prior_spread * sigma, before.fit)
                best = found if found.log_evidence > best.log_evidence else best
    return best

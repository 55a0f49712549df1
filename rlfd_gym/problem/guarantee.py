r"""Guarantees about the truth: at least so much better than the expert, for every covered cost.

The duality gap says how well a problem was solved. A guarantee says what a user wants to know: is
this policy better than what the expert does now, and by how much at least?

**For any policy, by any method.** Let μ be its occupancy, d = μ_E - μ, and g(d) the belief's inner
minimum, the least Ω(c) + <d, c> over the costs that are held possible. For each of these costs
<d, c> ≥ g(d) - Ω(c). So for a learned x_A and every c with Ω(c) ≤ Ω(x_A)

    <μ_E, c> - <μ, c>  ≥  g(d) - Ω(x_A).

If x_A is the belief's best answer to d, this is <d, C(x_A)>, attained at C(x_A), the worst case.
For beliefs without a penalty (`Intervals`, `Prices`, `Ball`, `Hull` with α = 0) every cost of the
belief is covered. For `NearPrior` every cost no farther from the prior than the learned one is: α
is a radius of trust. No solver is needed.

**For the solution of a problem.** If (c_A, μ_A) has the duality gap ε, then for every covered cost

    <μ_E, c> - <μ_A, c>  ≥  lower - Ω(c_A)  =  R(c_A) - ε,        R(c) = <μ_E, c> - ρ*_c,

where R is the expert's regret. `lower` already allows for a μ_A that is only nearly an occupancy:
its policy has the occupancy μ' from the expert's own start, and <μ' - μ_A, c> ≤ M‖Tγ d‖₁ where M
is the largest cost. An expert that was counted in samples has another start Tγ μ_E than the MDP; there the solution's
policy is judged from the MDP's start, as any policy is. So is a policy that plans with the learned
cost in states without mass (`rlfd_gym.mdp.reading`).

**From demonstrations, with probability 1 - η.** Let Z̄ be the mean of N independent trajectories'
discounted counts, none of which was used to learn the policy. Then `estimate` is what follows from
g(Z̄ - μ), `improvement` from a *safe* bound on g(μ_E - μ) that is proven, and `bootstrap` from
resampling the trajectories, which is approximate. `rlfd_gym.problem.confidence` has all three.

**What it does not say.** Nothing about costs outside the belief. Nothing about an improvement that
the policy was selected for on the same demonstrations. And an improvement below zero is no
guarantee: under the worst case the policy is worse than the expert.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs import Belief, Prices
from rlfd_gym.experts.demonstrations import Demonstrations, read_demonstrations
from rlfd_gym.experts.possible import check_possible
from rlfd_gym.mdp.occupancy import check_occupancy
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.confidence import Trajectories, bootstrap, safe_bound
from rlfd_gym.problem.problem import RLfDProblem, coordinates
from rlfd_gym.problem.protocol import Point

RESAMPLES = 1000
NOTHING = 1e-9  # an improvement of at most this, relative to the largest cost, is zero
OPTIMAL = 1e-6  # so is a regret of at most this
SAME_START = 1e-6  # an expert whose start is this near to the MDP's has the same up to rounding


@dataclass(frozen=True, eq=False, repr=False)
class Guarantee:
    """The least improvement of a policy on the expert, over all costs that it covers.

    It prints as a sentence.

    Attributes:
        improvement: the least improvement per step (a discounted average, as all expected costs
            are), in the unit of the costs. Below zero there is no guarantee: under the worst cost
            the policy is worse than the expert by that much.
        worst_cost: the covered cost with the least improvement, over pairs.
        worst: the same in the belief's coordinates: the cost, the mixture of a basis or the
            prices.
        scope: the covered costs in words, to follow "for every cost".
        reason: why nothing is guaranteed; empty if something is.
        confidence: the probability with which `improvement` holds, if the expert was estimated
            from demonstrations; `None` if the expert's occupancy is taken as it is.
        estimate: the least improvement on the demonstrations themselves, without any margin.
        bootstrap: the approximate bound at the same confidence by resampling trajectories.
        n_trajectories: how many trajectories were used; 0 for a given occupancy.
        estimated: whether the given occupancy is only an estimate: it does not start as the MDP
            does. The statement takes it as it is, and says nothing about its error.
        belief: what is believed about the cost.
        mdp: the MDP.
        policy: the policy that the guarantee is about, over pairs.

    Example:
        >>> from rlfd_gym import solve_exact
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> promise = solve_exact(problem).guarantee
        >>> print(promise)
        At least 0.03672 better than the expert, for every cost in [-1, 1] within 0.226 of the
        prior (in ℓ2 norm); least at worst_cost.
        >>> bool(promise.covers(problem.prior))
        True
    """

    improvement: float
    worst_cost: FloatArray
    worst: FloatArray
    scope: str
    reason: str
    belief: Belief
    mdp: TabularMDP
    policy: FloatArray
    confidence: float | None = None
    estimate: float | None = None
    bootstrap: float | None = None
    n_trajectories: int = 0
    estimated: bool = False

    def __bool__(self) -> bool:
        """Return whether the policy is guaranteed to be better than the expert."""
        return not self.reason

    @property
    def money(self) -> float:
        """The improvement in money per step, if the belief was stated in money, else as it is."""
        return _in_money(self.belief, self.improvement)

    @property
    def worst_prices(self) -> dict[str, float] | None:
        """The worst prices by name; `None` for beliefs that are not about prices."""
        if not isinstance(self.belief, Prices):
            return None
        return {name: float(price) for name, price in zip(self.belief.names, self.worst, strict=True)}

    def covers(self, cost: ArrayLike) -> bool:
        """Return whether the guarantee covers a cost c, up to shaping and scale.

        It does if it covers k·c + Tγᵀu for some k > 0 and u. Shaping changes no improvement, and a
        factor multiplies every improvement: under c itself the policy is better than the expert by
        `improvement`/k at least, which is `improvement` only if c is covered at its own scale.
        """
        from rlfd_gym.problem.coverage import covers  # here, because it loads solvers

        return covers(self.mdp, self.belief, self.worst, self.mdp.pairs(cost, "cost"))

    def __str__(self) -> str:
        """Return the guarantee as a sentence or two."""
        where = ""
        if (prices := self.worst_prices) is not None:
            where = " at " + ", ".join(f"{name} = {price:.4g}" for name, price in prices.items())
        sure = "" if self.confidence is None else f" with probability {self.confidence:.4g}"
        if self.reason:
            return (
                f"Nothing is guaranteed{sure} for every cost {self.scope}: {self.reason}{where and f'; worst{where}'}."
            )
        amount, least = _amount(self.belief, self.improvement, 4), where or " at worst_cost"
        expert = "expert, taken as it was estimated" if self.estimated else "expert"
        return f"At least {amount} better than the {expert}{sure}, for every cost {self.scope}; least{least}."

    def __repr__(self) -> str:
        """Return the sentence."""
        return f"Guarantee({str(self)!r})"


def guarantee(
    mdp: TabularMDP,
    policy: ArrayLike,
    expert: Any,
    belief: Belief,
    confidence: float | None = None,
    *,
    seed: int | np.random.Generator = 0,
    n_resamples: int = RESAMPLES,
    cost: ArrayLike | None = None,
) -> Guarantee:
    """Return the least improvement of a policy on the expert, over everything held possible.

    Args:
        mdp: the environment's tables.
        policy: the policy, over pairs or as a table, learned by any method or made by hand;
            `np.eye(mdp.n_actions)[actions]` is the table that takes one action in each state.
        expert: the expert's occupancy, over pairs or as a table; the statement is then certain. Or
            demonstrations that were *not* used to learn the policy; the statement then holds with
            the probability `confidence`.
        belief: what is believed about the cost.
        confidence: the probability 1 - η, such as 0.95, with demonstrations.
        seed: of the bootstrap, and of the order in which the safe bound looks at trajectories.
        n_resamples: how many resamples the bootstrap takes.
        cost: for beliefs with a penalty, the learned cost (or mixture, or prices): costs are
            covered up to its penalty. By default it is the belief's best answer to the policy.

    Example:
        >>> from rlfd_gym import RLfDProblem, solve_exact
        >>> from rlfd_gym.problem import examples
        >>> env = examples.inventory_env()
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
        >>> belief = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
        >>> solution = solve_exact(RLfDProblem(env.mdp, expert, belief=belief))
        >>> promise = guarantee(env.mdp, solution.policy, expert=expert, belief=belief)
        >>> round(promise.improvement, 4), promise.worst_prices
        (0.0872, {'order': 5.0, 'holding': 3.0, 'sell': 13.0})
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    if not isinstance(belief, Belief):
        raise TypeError(f"belief must be a Belief of rlfd_gym.beliefs, got {type(belief).__name__}")
    belief = belief.over(mdp)
    occupancy = mdp.occupancy_of(policy)
    own, rng = mdp.pairs(policy, "policy"), _checks.generator("seed", seed)
    learned = None if cost is None else coordinates(mdp, belief, cost)
    if _is_array(expert):
        if confidence is not None:
            raise ValueError(
                f"confidence is {confidence!r}, but expert is an occupancy, for which the statement is certain; pass "
                "demonstrations, or no confidence"
            )
        mu_e = check_occupancy(mdp, expert, "expert")
        return _certain(mdp, own, mu_e - occupancy, mu_e, belief, learned)
    if confidence is None:
        raise ValueError("confidence is None, but expert is estimated from demonstrations: give it, such as 0.95")
    eta = 1.0 - _checks.number("confidence", confidence, 0.0, 1.0, open_ends=True)
    shown = expert if isinstance(expert, Demonstrations) else read_demonstrations(expert)
    sample = Trajectories.of(shown, mdp)
    if shown is not expert:  # those that were read before were checked as a whole
        check_possible(shown, mdp)
    d = np.asarray(sample.each.mean(axis=0)).ravel() - occupancy
    x, estimate = _worst(belief, d, learned)
    improvement = safe_bound(sample, own, belief, estimate, eta, rng)
    resampled = bootstrap(
        sample, occupancy, belief, _checks.integer("n_resamples", n_resamples, 1, _checks.MOST_TIMES), rng
    )
    number, margin = len(sample.tails), estimate - improvement
    why = f"with {number} trajectories the margin is {margin:.2g}, more than the {estimate:.2g} that they show"
    if estimate <= 0:
        amount = _amount(belief, -estimate)
        why = f"on these {number} trajectories the policy is {amount} worse than the expert under the worst cost"
    return Guarantee(
        improvement=improvement,
        worst_cost=belief.cost(x),
        worst=x,
        scope=belief.scope(x),
        reason=why if improvement <= 0 else "",
        belief=belief,
        mdp=mdp,
        policy=own,
        confidence=float(confidence),
        estimate=estimate,
        bootstrap=float(np.quantile(resampled, eta)) - belief.penalty(x),
        n_trajectories=number,
    )


def guarantee_at(
    problem: RLfDProblem, point: Point, upper: float, lower: float, policy: FloatArray | None = None
) -> Guarantee:
    """Return the guarantee of a solution's policy.

    It follows from the solution's point and bounds alone if the expert starts as the MDP does and
    `policy` is that of the point's occupancy, which is the default. Any other policy is judged as
    policies are.
    """
    mdp, belief, own = problem.mdp, problem.belief, problem.mdp.policy_of(point.occupancy)
    policy = own if policy is None else policy
    if not (_starts_as(mdp, problem.expert) and np.array_equal(policy, own)):
        return _certain(mdp, policy, problem.expert - mdp.occupancy_of(policy), problem.expert, belief, point.x)
    penalty = belief.penalty(point.x)
    improvement = lower - penalty
    reason = _reason(belief, improvement, upper - penalty)
    # Without a penalty every cost is covered, so the least improvement is that under the best answer. The learned cost
    # is only nearly as bad, but it shows why nothing is guaranteed: the expert is optimal under it.
    worst = point.x if reason or belief.alpha > 0 else belief.best(problem.expert - point.occupancy)
    return Guarantee(
        improvement=improvement,
        worst_cost=belief.cost(worst),
        worst=worst,
        scope=belief.scope(worst),
        reason=reason,
        belief=belief,
        mdp=mdp,
        policy=policy,
    )


def _certain(
    mdp: TabularMDP, policy: FloatArray, d: FloatArray, expert: FloatArray, belief: Belief, learned: FloatArray | None
) -> Guarantee:
    """Return the guarantee against an expert whose occupancy is known."""
    x, improvement = _worst(belief, d, learned)
    cost, reason = belief.cost(x), ""
    if improvement <= NOTHING * belief.largest:
        reason = _reason(belief, improvement, dot(expert, cost) - mdp.optimal(cost).expected_cost)
    return Guarantee(
        improvement, cost, x, belief.scope(x), reason, belief, mdp, policy, estimated=not _starts_as(mdp, expert)
    )


def _starts_as(mdp: TabularMDP, expert: FloatArray) -> bool:
    """Return whether an occupancy starts as the MDP does, so that it is that of a policy."""
    return bool(np.abs(mdp.flow(expert) - mdp.initial).sum() <= SAME_START)


def _worst(belief: Belief, d: FloatArray, learned: FloatArray | None) -> tuple[FloatArray, float]:
    """Return x and g(d) - Ω(x), for the learned x or else the belief's best answer to d."""
    best = belief.best(d)
    least = dot(d, belief.cost(best))
    if learned is None or belief.alpha == 0:
        return best, least
    return learned, least + belief.penalty(best) - belief.penalty(learned)


def _reason(belief: Belief, improvement: float, regret: float) -> str:
    """Say why nothing is guaranteed, given the expert's regret under the worst cost."""
    if improvement > NOTHING * belief.largest:
        return ""
    worse = f"{_amount(belief, -improvement)} worse than the expert"
    if regret <= OPTIMAL * belief.largest:
        why = "they include one under which the expert is optimal (worst_cost), so nobody can promise to be better"
        return why if improvement > -OPTIMAL * belief.largest else f"{why}; this policy may be {worse}"
    why = f"under the worst cost the policy is {worse}"
    return f"{why}, though the expert is not optimal there: another policy may be guaranteed something"


def _in_money(belief: Belief, improvement: float) -> float:
    """Return an improvement in money if the belief was stated in money, else as it is."""
    return improvement if belief.scale is None else improvement / belief.scale.factor


def _amount(belief: Belief, improvement: float, digits: int = 2) -> str:
    """Write an improvement, in money as well if the belief was stated in money."""
    money = "" if belief.scale is None else f" ({_in_money(belief, improvement):.4g} in money per step)"
    return f"{improvement:.{digits}g}{money}"


def _is_array(expert: Any) -> bool:
    """Return whether an expert is an occupancy: an array, or a list of numbers."""
    if isinstance(expert, np.ndarray):
        return True
    if isinstance(expert, (list, tuple)):
        return all(isinstance(entry, (int, float, list, tuple, np.number, np.ndarray)) for entry in expert)
    return False

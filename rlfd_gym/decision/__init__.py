"""From a log to a decision: what to do instead, how much it saves, and how sure that is.

`decide` learns from a log and judges what it learned; `Decision` holds the answers as data, and
prints as a few sentences. `price_belief` states ranges of prices over a log's own columns.
"""

from __future__ import annotations

from rlfd_gym.decision.answers import Decision, Estimate, Path, PriceAnswer, Recommendation
from rlfd_gym.decision.decide import decide
from rlfd_gym.decision.stated import price_belief, prior_belief

__all__ = [
    "Decision",
    "Estimate",
    "Path",
    "PriceAnswer",
    "Recommendation",
    "decide",
    "price_belief",
    "prior_belief",
]

r"""Features of a log's pairs from small expressions, such as `stock + order` or `min(stock, demand)`.

An expression is made of numbers, + - * /, comparisons (1 where true, 0 where false), brackets,
`min`, `max` and `abs`, and the names of the log's state, its action, and columns that were read as
numbers. Nothing else is understood: expressions are parsed into a tree of which each node is
checked, and nothing is ever executed as Python.

The state and the action of a pair are known. A logged column x has several values f(s, a, x) for
one pair, and the feature is their mean over the rows of the pair,

    φ(s, a) = Σ_x N(s, a, x) f(s, a, x) / N(s, a).

If what was logged does not depend on state and action, such as the demand, its distribution over
all rows says more than that over the few rows of one pair: φ(s, a) = Σ_x N(x) f(s, a, x) / N. Such
a column has to be named `exogenous`. It is also what a pair gets none of whose rows holds the number.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._warnings import warn
from rlfd_gym.experts.logs.faults import listed
from rlfd_gym.experts.logs.labels import Label
from rlfd_gym.experts.logs.log import Log

LONGEST, DEEPEST = 500, 50  # characters of an expression, and nested brackets
ALLOWED = "numbers, + - * /, comparisons, brackets, min, max and abs"

_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_CALLS: dict[str, tuple[Any, int]] = {"min": (np.minimum, 2), "max": (np.maximum, 2), "abs": (np.abs, 1)}


def log_features(log: Log, features: Mapping[str, str], *, exogenous: Iterable[str] = ()) -> FloatArray:
    """Return the value of each feature for each pair of a log, of shape (n_pairs, K).

    Args:
        log: what `read_log` returns.
        features: an expression for each feature, see the module's docstring. It may use one
            logged column at most.
        exogenous: logged columns that depend on neither state nor action, such as the demand.

    Example:
        >>> from rlfd_gym.experts.logs import read_log
        >>> rows = {"stock": [0, 2, 1], "order": [3, 0, 0], "next": [2, 1, 0], "demand": [1, 1, 4]}
        >>> names = {"state": "stock", "action": "order", "next_state": "next"}
        >>> log = read_log(rows, discount=0.9, columns=["demand"], **names)
        >>> formulas = {"buy": "order", "hold": "stock + order", "sell": "-min(stock + order, demand)"}
        >>> log_features(log, formulas).tolist()
        [[3.0, 3.0, -1.0], [0.0, 1.0, -1.0], [0.0, 2.0, -1.0]]
        >>> log_features(log, {"sell": "min(stock + order, demand)"}, exogenous=["demand"])[0].tolist()
        [1.6666666666666667]
    """
    _checks.instance("log", log, Log)
    _checks.instance("features", features, Mapping, "from names to expressions")  # type: ignore[type-abstract]
    if not features:
        raise ValueError("features must have at least one entry")
    outside = set(_checks.items("exogenous", list(exogenous)))
    for name in outside:
        log.column(name)
    return np.column_stack([_feature(log, name, text, outside) for name, text in features.items()])


def names_in(name: str, text: str) -> list[str]:
    """Return the names of the columns that an expression uses, sorted.

    >>> names_in("sales", "-min(stock + order, demand)")
    ['demand', 'order', 'stock']
    """
    found = {node.id for node in ast.walk(_tree(name, text)) if isinstance(node, ast.Name)}
    return sorted(found - set(_CALLS))


def evaluate(name: str, text: str, values: Mapping[str, Any]) -> FloatArray:
    """Return the value of an expression; errors name the feature, and show what is wrong.

    >>> evaluate("idle", "max(stock - demand, 0) * (stock > 1)", {"stock": 3, "demand": np.ones(2)}).tolist()
    [2.0, 2.0]
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(_value(name, _tree(name, text), values), dtype=np.float64)


def _feature(log: Log, name: str, text: str, exogenous: set[str]) -> FloatArray:
    """Return the feature of each pair."""
    used = names_in(name, text)
    given = {role: log.names.get(role, role) for role in ("state", "action")}
    logged = [column for column in used if column not in given.values()]
    unknown = [column for column in logged if column not in log.columns]
    if unknown:
        known = listed([*given.values(), *log.columns])
        raise ValueError(
            f"feature {name}={text!r} uses {unknown[0]!r}, which is neither the state, nor the action, nor a column of "
            f"numbers: there are {known}; name others in read_log(columns=[…])"
        )
    if len(logged) > 1:
        raise ValueError(f"feature {name}={text!r} uses {' and '.join(sorted(logged))}: one logged column at most")
    mdp = log.mdp
    labels = {
        given["state"]: _numeric(log.state_labels, mdp.pair_states, given["state"] in used, name),
        given["action"]: _numeric(log.action_labels, mdp.pair_actions, given["action"] in used, name),
    }
    if not logged:
        return _finite(log, name, text, np.broadcast_to(evaluate(name, text, labels), (mdp.n_pairs,)))
    column = log.columns[logged[0]]
    weights = np.asarray(column.counts.sum(axis=0), dtype=np.float64)
    if not weights.any():
        raise ValueError(f"feature {name}={text!r} uses {logged[0]!r}, but no good row holds a number there")

    def over_all_rows(pairs: IntArray) -> FloatArray:
        here = {what: numbers[pairs, None] for what, numbers in labels.items()} | {logged[0]: column.values[None]}
        table = np.broadcast_to(evaluate(name, text, here), (len(pairs), len(weights)))
        return np.asarray(table @ weights / weights.sum(), dtype=np.float64)

    if logged[0] in exogenous:
        return _finite(log, name, text, over_all_rows(np.arange(mdp.n_pairs)))
    entries = column.counts.tocoo()
    pairs = entries.row
    here = {what: numbers[pairs] for what, numbers in labels.items()} | {logged[0]: column.values[entries.col]}
    each = np.broadcast_to(evaluate(name, text, here), pairs.shape) * entries.data
    with np.errstate(invalid="ignore"):
        means = np.bincount(pairs, weights=each, minlength=mdp.n_pairs) / column.n_rows
    without = np.flatnonzero(column.n_rows == 0)
    means[without] = over_all_rows(without)
    lacking = int((log.visits[without] > 0).sum())
    if lacking:
        warn(f"{lacking} pairs have no row with a number as {logged[0]!r}: those of all rows are taken", UserWarning, 3)
    return _finite(log, name, text, means)


def _numeric(labels: tuple[Label, ...], pairs: Any, used: bool, name: str) -> FloatArray:
    """Return the number that each pair's label is; texts are none."""
    if not used:
        return np.zeros(len(pairs))
    texts = [label for label in labels if isinstance(label, str)]
    if texts:
        raise ValueError(f"feature {name} computes with {texts[0]!r}, which is a text: only numbers can be used")
    return np.array(labels, dtype=np.float64)[pairs]


def _finite(log: Log, name: str, text: str, values: FloatArray) -> FloatArray:
    """Return the values, or raise an error that names a pair without one."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        state, action = log.pair_labels()[bad[0]]
        raise ValueError(
            f"feature {name}={text!r} has no finite value for {bad.size} pairs, such as ({state!r}, {action!r}): it "
            "divides by zero, or its numbers are too large"
        )
    return np.array(values, dtype=np.float64)


def _tree(name: str, text: str) -> ast.expr:
    """Parse an expression."""
    _checks.instance(f"feature {name}", text, str, "an expression such as 'stock + order'")
    if len(text) > LONGEST:
        raise ValueError(f"feature {name} has {len(text)} characters, more than {LONGEST}")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(f"feature {name}={text!r} is no expression; it may have {ALLOWED}") from None


def _value(name: str, node: ast.expr, values: Mapping[str, Any], depth: int = 0) -> Any:
    """Compute a node of the tree."""
    if depth > DEEPEST:
        raise ValueError(f"feature {name} nests more than {DEEPEST} deep")

    def of(inner: ast.expr) -> Any:
        return _value(name, inner, values, depth + 1)

    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _checks.number(f"feature {name}: the number", node.value)
    if isinstance(node, ast.Name) and node.id in values:
        return np.asarray(values[node.id], dtype=np.float64)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        return -of(node.operand) if isinstance(node.op, ast.USub) else of(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](of(node.left), of(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _BINARY:
        return _BINARY[type(node.ops[0])](of(node.left), of(node.comparators[0])) * 1.0
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS and not node.keywords:
        function, least = _CALLS[node.func.id]
        if len(node.args) >= least and not any(isinstance(inner, ast.Starred) for inner in node.args):
            first, *others = (of(inner) for inner in node.args)
            if least == 1 and not others:
                return function(first)
            if least == 2:
                for other in others:
                    first = function(first, other)
                return first
    raise ValueError(f"feature {name} has {ast.unparse(node)!r}, which is not understood; it may have {ALLOWED}")

"""Bad inputs for every public callable: a table of calls, a table of bad values, and what may come of them.

A bad value must be refused by an error that names its argument, or be accepted because the argument's entry says so;
whatever comes back must be finite. `run(calls())` tries every bad value in every argument and counts the outcomes;
`run_generated` does the same with values that are drawn at random.
"""

from __future__ import annotations

import dataclasses
import re
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

DOCUMENTED = (
    "[0-9]+ of [0-9]+ logged rows",
    "step_size .* for the occupancy",
    "the projected cost tells",
    "exact: ",
    "irl-io: ",
    "MCE-IRL misses a feature",
    "the soft value is only known to within",
    "states: no policy has this occupancy over states",
)
"""How the library's own warnings begin, which go with an answer."""
SECONDS = 20  # a call that takes longer than this hangs


class Opaque:
    """Something that no function of the library can use."""


@dataclass(frozen=True)
class Argument:
    """One argument of a call: a valid value, the bad ones, and which of these are accepted, and why.

    `called` is what errors call the argument, if not by its name.
    """

    valid: Any
    bad: Callable[[Any], dict[str, Any]]
    accepts: Mapping[str, str] = field(default_factory=dict)
    called: str = ""


@dataclass(frozen=True)
class Call:
    """A valid call of a public function.

    `untried` are parameters without bad values, and why; `may_be_nan` says why a result may hold NaN;
    `trains` that even the valid call takes seconds.
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Argument]
    untried: Mapping[str, str] = field(default_factory=dict)
    may_be_nan: str = ""
    trains: bool = False


@dataclass
class Counts:
    """How many cases there were, and what came of them."""

    cases: int = 0
    named: int = 0
    accepted: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, outcome: str, where: str) -> None:
        self.cases += 1
        self.named += outcome == "named"
        self.accepted += outcome == "accepted"
        if outcome not in ("named", "accepted"):
            self.failures.append(f"{where}: {outcome}")


# --- What counts as bad, by kind of argument ---------------------------------------------------------------------


def things(_: Any = None) -> dict[str, Any]:
    """What is neither a number, a name, an array nor one of the library's own objects."""
    return {
        "None": None,
        "an object": Opaque(),
        "a class": Opaque,
        "a function": len,
        "a dict": {"a": 1.0},
        "a set": {1.0, 2.0},
        "a generator": (x for x in (0.5, 0.5)),
        "text": "abc",
        "bytes": b"abc",
        "a duration": np.timedelta64(1, "s"),
        "a date": np.datetime64("2020-01-01"),
        "a datetime": datetime(2020, 1, 1),
        "complex": 1 + 1j,
        "an ellipsis": ...,
    }


def _entry(array: np.ndarray, value: Any) -> np.ndarray:
    changed = array.copy()
    changed.flat[0] = value
    return changed


def _as_pandas(array: np.ndarray) -> Any:
    return pd.DataFrame(array) if array.ndim == 2 else pd.Series(array.ravel())


def arrays(valid: Any) -> dict[str, Any]:
    """What is bad about an array of any kind of number."""
    v = np.asarray(valid)
    labelled = _as_pandas(v)
    labelled.index = labelled.index[::-1] + 3
    return things() | {
        "a number": 0.25,
        "masked": np.ma.masked_array(v, mask=_entry(np.zeros(v.shape, dtype=bool), True)),
        "shuffled index": labelled,
        "texts": v.astype(str),
        "a list of texts": v.astype(str).tolist(),
        "byte strings": v.astype("S8"),
        "complex numbers": v + 1j,
        "complex without imaginary part": v.astype(complex),
        "dates": np.full(v.shape, np.datetime64("2020-01-01")),
        "durations": np.full(v.shape, np.timedelta64(1, "D")),
        "objects": np.full(v.shape, Opaque()),
        "a None inside": _entry(v.astype(object), None),
        "a NaN object inside": _entry(v.astype(object), "nan"),
        "records": np.zeros(v.shape, dtype=[("a", float), ("b", int)]),
        "decimals": np.full(v.shape, Decimal("0.5")),
        "ragged": [[1.0], [1.0, 2.0]],
        "nested ragged": [1.0, [1.0, 2.0]],
        "empty": v[:0],
        "an empty list": [],
        "one too few": v[:-1],
        "one too many": np.concatenate([v, v[:1]]),
        "twice": np.concatenate([v, v]),
        "two axes more": v[None, None],
        "sparse": sp.csr_array(v.reshape(len(v), -1).astype(float)),
        "list of Nones": [None] * len(v),
    }


def numbers(valid: Any) -> dict[str, Any]:
    """What is bad about an array of numbers."""
    v = np.asarray(valid, dtype=float)
    return arrays(v) | {
        "NaN": _entry(v, np.nan),
        "inf": _entry(v, np.inf),
        "-inf": _entry(v, -np.inf),
        "1e308": _entry(v, 1e308),
        "-1e308": _entry(v, -1e308),
        "all 1e308": np.full(v.shape, 1e308),
        "all NaN": np.full(v.shape, np.nan),
        "a huge int": [10**400] * len(v),
        "long double": _entry(v.astype(np.longdouble), np.finfo(np.longdouble).max),
        "bools": np.ones(v.shape, dtype=bool),
    }


def distribution(valid: Any) -> dict[str, Any]:
    """What is bad about nonnegative numbers with a sum."""
    v = np.asarray(valid, dtype=float)
    return numbers(v) | {"negative": _entry(v, -0.25), "twice its sum": 2 * v, "zeros": 0 * v}


def integers(valid: Any) -> dict[str, Any]:
    """What is bad about an array of indices."""
    v = np.asarray(valid)
    return arrays(v) | {
        "a fraction": _entry(v.astype(float), 0.7),
        "floats": v.astype(float),
        "NaN": _entry(v.astype(float), np.nan),
        "inf": _entry(v.astype(float), np.inf),
        "bools": v.astype(bool),
        "negative": _entry(v, -1),
        "out of range": _entry(v, 10**6),
        "far out of range": _entry(v, 2**62),
        "unsigned beyond 2**63": _entry(v.astype(np.uint64), 2**64 - 1),
        "a huge int": [10**30] * len(v),
    }


def mask(valid: Any) -> dict[str, Any]:
    """What is bad about a table of truth values."""
    v = np.asarray(valid)
    return {k: x for k, x in arrays(v).items() if k != "decimals"} | {
        "numbers": v.astype(float),
        "ints": v.astype(int),
        "nothing feasible": np.zeros_like(v),
        "transposed": v.T,
    }


def number(*outside: float) -> Callable[[Any], dict[str, Any]]:
    """What is bad about a number; `outside` are values out of its range."""

    def bad(_: Any) -> dict[str, Any]:
        return things() | {
            "NaN": np.nan,
            "inf": np.inf,
            "-inf": -np.inf,
            "1e308": 1e308,
            "a huge int": 10**400,
            "True": True,
            "numpy's True": np.True_,
            "a list": [0.5],
            "an array": np.array([0.25, 0.5]),
            "an empty array": np.array([]),
            "a decimal": Decimal("0.5"),
            "a Series": pd.Series([0.5]),
            **{f"{x:g}": x for x in outside},
        }

    return bad


def integer(*outside: int) -> Callable[[Any], dict[str, Any]]:
    """What is bad about a count; `outside` are values out of its range."""

    def bad(_: Any) -> dict[str, Any]:
        return (
            number()(None)
            | {"a float": 2.0, "a fraction": 0.7, "10**30": 10**30, "the largest int": 2**63 - 1}
            | {str(x): x for x in outside}
        )

    return bad


def seed(_: Any) -> dict[str, Any]:
    """What is bad about a seed, which may be of any size."""
    sizes = ("a huge int", "10**30", "the largest int")
    return {k: x for k, x in integer(-1)(None).items() if k not in sizes}


def name(_: Any) -> dict[str, Any]:
    """What is bad about one of several names."""
    return {k: x for k, x in things().items() if k != "text"} | {
        "another name": "abc",
        "no name": "",
        "a number": 1,
        "NaN": np.nan,
        "a list of names": ["auto"],
        "an array of names": np.array(["auto", "l2"]),
        "True": True,
    }


def flag(_: Any) -> dict[str, Any]:
    """What is bad about a switch."""
    return things() | {"1": 1, "NaN": np.nan, "an array": np.array([True, False]), "a list": []}


def own(_: Any) -> dict[str, Any]:
    """What is bad about one of the library's objects."""
    return things() | {"a number": 1.0, "an array": np.ones(3), "a list": [1], "a namespace": SimpleNamespace()}


def environment(_: Any) -> dict[str, Any]:
    """What is bad about a tabular environment."""

    def toy(**changes: Any) -> Any:
        outcome = {"p": 1.0, "s": 0, "r": 0.0, "done": False} | changes
        return SimpleNamespace(P={0: {0: [tuple(outcome.values())]}}, initial_state_distrib=[1.0])

    def seals(**changes: Any) -> Any:
        good = {"transition_matrix": np.ones((1, 1, 1)), "reward_matrix": np.zeros(1), "initial_state_dist": [1.0]}
        return SimpleNamespace(**(good | changes))

    def rows(P: Any) -> Any:
        return SimpleNamespace(P=P, initial_state_distrib=[1.0])

    return own(None) | {
        **{f"P with the {field} {x!r}": toy(**{field: x}) for field in ("p", "r") for x in
           (np.nan, np.inf, 1e308, "1", None, 1j, True, [1.0])},
        **{f"P with the next state {x!r}": toy(s=x) for x in (0.7, 1, -1, np.nan, "0", None, 2**64, True, [0])},
        **{f"P with the end {x!r}": toy(done=x) for x in (np.array([True, False]),)},
        "P with short outcomes": rows({0: {0: [(1.0, 0)]}}),
        "P with a number for outcomes": rows({0: {0: 1.0}}),
        "P with an outcome that is a number": rows({0: {0: [1.0]}}),
        "P without outcomes": rows({0: {0: []}}),
        "P without actions": rows({0: {}}),
        "P that is empty": rows({}),
        "P that is None": rows(None),
        "P with the state 'a'": rows({"a": {0: [(1.0, 0, 0.0, False)]}}),
        "P with the state 0.5": rows({0.5: {0: [(1.0, 0, 0.0, False)]}}),
        "P with the state -1": rows({-1: {0: [(1.0, 0, 0.0, False)]}}),
        "P with a gap": rows({0: {0: [(1.0, 0, 0.0, False)]}, 2: {0: [(1.0, 0, 0.0, False)]}}),
        "P that is an array": rows(np.ones((1, 1))),
        **{f"reward_matrix {label}": seals(reward_matrix=x) for label, x in
           {"NaN": [np.nan], "inf": [np.inf], "1e308": [1e308], "texts": ["1"], "scalar": 1.0, "long": [1.0, 2.0],
            "complex": [1j], "None": None, "masked": np.ma.masked_array([1.0], mask=[True])}.items()},
        **{f"transition_matrix {label}": seals(transition_matrix=x) for label, x in
           {"flat": np.ones((1, 1)), "NaN": np.full((1, 1, 1), np.nan), "None": None, "empty": np.ones((0, 0, 0)),
            "not square": np.ones((1, 1, 2)) / 2, "texts": np.full((1, 1, 1), "1")}.items()},
        "initial_state_dist short": seals(initial_state_dist=[]),
        "mdp that is none": SimpleNamespace(mdp=1, cost=[1.0]),
    }  # fmt: skip


def demonstrations(valid: Any) -> dict[str, Any]:
    """What is bad about trajectories."""

    def walk(obs: Any = (0, 1), acts: Any = (0,), **more: Any) -> list[Any]:
        return [*valid, SimpleNamespace(obs=obs, acts=acts, terminal=False, **more)]

    return {k: x for k, x in own(None).items() if k != "an array"} | {
        "an empty list": [],
        "a dict of nothing": {},
        "mixed kinds": [*valid, 1],
        "one trajectory, not in a list": valid[0],
        "no actions": walk(obs=[0], acts=[]),
        "one observation too few": walk(obs=[0], acts=[0]),
        "a state 0.7": walk(obs=[0.7, 0.0]),
        "a state NaN": walk(obs=[np.nan, 0.0]),
        "a state inf": walk(obs=[np.inf, 0.0]),
        "a state 1e300": walk(obs=[1e300, 0.0]),
        "a state -1": walk(obs=[-1, 0]),
        "an unknown state": walk(obs=[99, 0]),
        "an unsigned state": walk(obs=np.array([2**64 - 1, 0], dtype=np.uint64)),
        "a huge state": walk(obs=[10**30, 0]),
        "a text state": walk(obs=["0", "1"]),
        "a None state": walk(obs=[None, 0]),
        "a masked state": walk(obs=np.ma.masked_array([0, 1], mask=[True, False])),
        "a complex state": walk(obs=[0j, 1j]),
        "a bool state": walk(obs=[True, False]),
        "a date": walk(obs=np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")),
        "ragged states": walk(obs=[[0], [0, 1]]),
        "vector states": walk(obs=np.zeros((2, 3))),
        "a shuffled Series": walk(obs=pd.Series([0, 1], index=[1, 0])),
        "an action 0.5": walk(acts=[0.5]),
        "an action -1": walk(acts=[-1]),
        "an unknown action": walk(acts=[99]),
        "None for actions": walk(acts=None),
        "None for observations": walk(obs=None),
    }


def occupancy_or_demonstrations(valid: Any) -> dict[str, Any]:
    """What is bad about an expert that is given as an array or by trajectories."""
    kept = ("generator", "a number", "an empty list")
    return {k: x for k, x in distribution(valid).items() if k not in kept}


def cells(_: Any) -> dict[str, Any]:
    """What is bad about a list of cells."""
    return things() | {
        "a number": 1,
        "NaN": [(np.nan, 0)],
        "fractions": [(0.5, 0)],
        "texts": [("0", "0")],
        "off the grid": [(9, 9)],
        "negative": [(-1, 0)],
        "three numbers": [(0, 0, 0)],
        "not cells": [0, 1],
        "ragged": [(0, 0), (1,)],
        "bools": [(True, False)],
        "unsigned": np.array([[2**64 - 1, 0]], dtype=np.uint64),
        "a huge int": [(10**30, 0)],
        "masked": np.ma.masked_array([[0, 0]], mask=[[True, False]]),
    }


def path(_: Any) -> dict[str, Any]:
    """What is bad about the path of a file."""
    return {k: x for k, x in things().items() if k not in ("text", "bytes")} | {"a number": 1.5, "NaN": np.nan}


# --- Trying them ---------------------------------------------------------------------------------------------------


def run(calls: Mapping[str, Call]) -> Counts:
    """Try every bad value in every argument of the calls."""
    counts = Counts()
    warm_up(calls)
    for where, outcome in outcomes(calls):
        counts.add(outcome, where)
    return counts


def warm_up(calls: Mapping[str, Call]) -> None:
    """Make every valid call that takes no training, so that no kernel's compilation is taken for a hang."""
    for call in calls.values():
        if not call.trains:
            call.function(**{key: entry.valid for key, entry in call.arguments.items()})


def outcomes(calls: Mapping[str, Call]) -> Iterator[tuple[str, str]]:
    """Yield where a bad value was tried, and what came of it."""
    for name_, call in calls.items():
        for argument, entry in call.arguments.items():
            tried = entry.bad(entry.valid)
            unknown = set(entry.accepts) - set(tried)
            if unknown:
                yield f"{name_}({argument})", f"accepts what is not tried: {sorted(unknown)}"
            for label, value in tried.items():
                result = attempt(call, argument, value)
                if label in entry.accepts and result == "named":
                    result = "refused, although it is documented to be accepted"
                elif label not in entry.accepts and result == "accepted":
                    result = "accepted in silence"
                yield f"{name_}({argument}={label})", result


def attempt(call: Call, argument: str, value: Any, *, any_name: bool = False) -> str:
    """Return "named" or "accepted", or say what else happened.

    With `any_name`, the error may name any argument of the call.
    """
    given = {key: entry.valid for key, entry in call.arguments.items()} | {argument: value}
    names = [argument, *filter(None, [call.arguments[argument].called])]
    if any_name:
        names = [*call.arguments, *filter(None, (entry.called for entry in call.arguments.values()))]
    try:
        with warnings.catch_warnings(), _at_most(SECONDS):
            warnings.simplefilter("error")
            for text in DOCUMENTED:
                warnings.filterwarnings("ignore", text)
            result = call.function(**given)
    except (TypeError, ValueError) as error:
        text = str(error)
        if any(re.search(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", text) for name in names) and not _internal(text):
            return "named"
        return f"an error without its name: {type(error).__name__}: {text[:150]}"
    except Exception as error:
        return f"an obscure error: {type(error).__name__}: {str(error)[:150]}"
    if not call.may_be_nan and not is_finite(result):
        return "accepted, with NaN or infinity in the result"
    return "accepted"


def _internal(text: str) -> bool:
    """Tell an error that Python, NumPy or SciPy raised further inside from one of the border."""
    return bool(
        re.search(
            r"truth value of an array|unexpected keyword|positional argument|ufunc|object is not|argument must be", text
        )
    )


def is_finite(result: Any, depth: int = 6) -> bool:
    """Return whether all numbers in a result are finite."""
    if depth == 0 or result is None or isinstance(result, (str, bytes, int, type)):
        return True
    if isinstance(result, (float, np.floating)):
        return bool(np.isfinite(result))
    if isinstance(result, np.ndarray):
        return result.dtype.kind not in "fc" or bool(np.isfinite(result).all())
    if sp.issparse(result):
        return bool(np.isfinite(result.data).all())
    if isinstance(result, Mapping):
        return all(is_finite(x, depth - 1) for x in result.values())
    if isinstance(result, (list, tuple)):
        return all(is_finite(x, depth - 1) for x in result)
    if dataclasses.is_dataclass(result):
        return all(is_finite(getattr(result, item.name), depth - 1) for item in dataclasses.fields(result))
    return True


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise a `TimeoutError` in what takes too long, where signals are possible."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"no answer after {seconds} s")

    try:
        before = signal.signal(signal.SIGALRM, stop)
    except ValueError:  # not the main thread
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- Generated values ----------------------------------------------------------------------------------------------

DTYPES = ("f2", "f4", "f8", "g", "i1", "i4", "i8", "u1", "u8", "c8", "c16", "?", "U8", "S8", "O", "M8[D]", "m8[s]")
SPECIAL = (
    *(np.nan, np.inf, -np.inf, 1e308, -1e308, 1e51, 5e-324, -1e-16, -1e-9, 0.7, -1, 0, 1, 2**63 - 1, 2**63, 2**64),
    *(10**30, True, None, "1", "nan", b"1", 1j, Fraction(1, 3), Decimal(1), np.datetime64("NaT"), ...),
)


def run_generated(calls: Mapping[str, Call], n_cases: int, seed: int) -> Counts:
    """Try random values in random arguments: each must be refused by name or give a finite result."""
    rng = np.random.default_rng(seed)
    warm_up(calls)
    places = [(name_, argument) for name_, call in calls.items() for argument in call.arguments]
    counts = Counts()
    for number_ in range(n_cases):
        name_, argument = places[number_ % len(places)]
        value = drawn(calls[name_].arguments[argument].valid, rng)
        outcome = attempt(calls[name_], argument, value, any_name=True)
        counts.add(outcome, f"{name_}({argument}={type(value).__name__} {_shown(value)})")
    return counts


def _shown(value: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return repr(str(value)[:80])


def drawn(valid: Any, rng: np.random.Generator) -> Any:
    """Draw a value: something special, or the valid value with a few changes."""
    special = SPECIAL[rng.integers(len(SPECIAL))]
    if not isinstance(valid, (np.ndarray, list, tuple)) or rng.random() < 0.1:
        if rng.random() < 0.6:
            return special
        return np.full(rng.integers(0, 4, size=rng.integers(0, 4)), special, dtype=object)
    try:
        value = np.array(valid)
    except ValueError:
        return special
    for _ in range(rng.integers(1, 4)):
        value = _changed(value, special, rng)
    return _wrapped(value, rng)


def _changed(value: np.ndarray, special: Any, rng: np.random.Generator) -> np.ndarray:
    """Change the type, the shape or an entry."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            match rng.integers(5):
                case 0:
                    return value.astype(DTYPES[rng.integers(len(DTYPES))])
                case 1:
                    return _entry(value, special)
                case 2:
                    return _entry(value.astype(object), special)
                case 3:
                    shapes = (
                        value[None],
                        value[..., None],
                        value[:-1],
                        np.concatenate([value, value]),
                        value.T,
                        value[:0],
                    )
                    return shapes[rng.integers(len(shapes))]
                case _:
                    return value * np.array(special)
        except (TypeError, ValueError, OverflowError, IndexError, RuntimeError):
            return value


def _wrapped(value: np.ndarray, rng: np.random.Generator) -> Any:
    """Put the value into another container."""
    try:
        match rng.integers(8):
            case 0:
                return value.tolist()
            case 1:
                return tuple(value)
            case 2:
                return _as_pandas(value)
            case 3:
                return np.ma.masked_array(value, mask=rng.random(value.shape) < 0.3)
            case 4:
                return iter(value)
            case 5:
                return np.asfortranarray(value)[::-1]
            case _:
                return value
    except (TypeError, ValueError, OverflowError, IndexError):
        return value


def kinds(failures: list[str]) -> Counter[str]:
    """Count failures by their outcome, without where they happened."""
    return Counter(text.split(": ", 1)[1][:60] for text in failures)

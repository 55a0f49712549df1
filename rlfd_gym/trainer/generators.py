"""Random generators in files: a state is taken only if NumPy itself could have come to it.

NumPy takes any state that it is given. A position beyond the end of a generator's table would read
foreign memory, and an even increment would make a PCG64 repeat itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlfd_gym import _checks

SPARE = {"has_uint32": (1, 2), "uinteger": (1, 2**32)}  # the half of a draw that is still to be used
PCG = {"state.state": (1, 2**128), "state.inc": (1, 2**128), **SPARE}
WORDS = {
    "PCG64": PCG,
    "PCG64DXSM": PCG,
    "MT19937": {"state.key": (624, 2**32), "state.pos": (1, 624 + 1)},
    "Philox": {"state.counter": (4, 2**64), "state.key": (2, 2**64), "buffer": (4, 2**64), "buffer_pos": (1, 4 + 1)}
    | SPARE,
    "SFC64": {"state.state": (4, 2**64), **SPARE},
}
"""For each of NumPy's generators the integers of its state: how many, and below what."""


def generator_in(state: Any, kinds: tuple[str, ...] = tuple(WORDS)) -> np.random.Generator:
    """Return a generator of one of these kinds in a given state, or raise an error.

    >>> before = np.random.default_rng(1)
    >>> after = generator_in(before.bit_generator.state)
    >>> bool(after.random() == before.random())
    True
    """
    kind = _checks.one_of("bit_generator", state["bit_generator"], kinds)
    clean: dict[str, Any] = {"bit_generator": kind, "state": {}}
    for name, (count, end) in WORDS[kind].items():
        *inner, last = name.split(".")
        value = (state[inner[0]] if inner else state)[last]
        words = np.atleast_1d(np.asarray(value, dtype=object)).tolist()
        if len(words) != count or not all(type(word) is int and 0 <= word < end for word in words):
            raise ValueError(f"{kind}: {name} must be {count} integers from 0 to {end - 1}")
        (clean["state"] if inner else clean)[last] = words[0] if count == 1 else np.array(words, np.uint64)
    if "state.inc" in WORDS[kind] and clean["state"]["inc"] % 2 == 0:
        raise ValueError(f"{kind}: state.inc must be odd")
    if kind == "MT19937":
        clean["state"]["key"] = clean["state"]["key"].astype(np.uint32)
        if not clean["state"]["key"].any():
            raise ValueError(f"{kind}: state.key must not be zeros, which never change")
    bits = getattr(np.random, kind)()
    bits.state = clean
    return np.random.Generator(bits)

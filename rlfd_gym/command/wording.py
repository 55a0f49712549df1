"""Messages of the library in the words of the command line: its options instead of Python's arguments.

The library names the argument that mends a mistake, such as `decimal=","`. Who typed `rlfd learn`
has an option for it, `--decimal ,`, and reads that instead.
"""

from __future__ import annotations

import re
import shlex

_VALUES = ("state", "action", "next_state", "episode", "time", "decimal", "dates", "encoding", "expert", "unvisited")
_PHRASES = (
    (r"name others in read_log\(columns=\[…\]\)", "see its spelling"),
    (r"read_log\(columns=\[…\]\) has", "there are"),
    (r"fold=False", "--no-fold"),
    (r"\bcolumns='([^']*)'", r"column \1"),
    (r"\bmax_dropped=([\d.eE+-]+)", r"--max-dropped \1"),
    (r"\b(?:raise )max_dropped\b", "raise --max-dropped"),
    (
        r"add them to the labels \(or the prior that lists them\)",
        "add them to the prior, or give --labels log: they then have the middle of the prior's range",
    ),
    (r"add them to the feasible pairs", "add them to the prior"),
    (r"leave out episode\b", "leave out --episode"),
    (r"name their column, or use \"policy\"", "name their column by --episode, or give --expert policy"),
    (r"no episode column is named", "--episode names no column"),
    (
        r"raw costs must differ to set a scale, but lie in (\[.*?\]); give low and high",
        r"costs lie in \1; give --range LOW HIGH",
    ),
    (r"by (next_state|episode)([,:])", r"by --\1\2"),
    (r"or 'cp1252'", "or cp1252"),
    (r"\bn_resamples\b", "--resamples"),
    (r"\bleast_rows\b", "--least-rows"),
    (r"^(confidence|discount|smoothing|seed|alpha|max_dropped) (must|=)", r"--\1 \2"),
    (r"\bscale (must|has)\b", r"--range \1"),
)


def as_options(message: str) -> str:
    """Return a message with options in the place of arguments.

    >>> as_options('correct them, or give decimal="," if that is how numbers are spelled')
    'correct them, or give --decimal , if that is how numbers are spelled'
    >>> as_options("more than max_dropped=0.05 allows: raise max_dropped")
    'more than --max-dropped 0.05 allows: raise --max-dropped'
    """
    for pattern, words in _PHRASES:
        message = re.sub(pattern, words, message)
    return (
        re.sub(rf"\b({'|'.join(_VALUES)})=(?:'([^']*)'|\"([^\"]*)\")", _option, message)
        .replace("--max_", "--max-")
        .replace("--next_", "--next-")
    )


def _option(found: re.Match[str]) -> str:
    name, single, double = found.groups()
    return f"--{name.replace('_', '-')} {shlex.quote(double if single is None else single)}"

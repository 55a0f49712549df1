"""The peak memory of a process, for benchmarks that run what they measure in a process of its own.

On Linux `ru_maxrss` begins with what the parent had when it was forked, so that after a large benchmark
every process would seem large. The kernel's own count for the process does not.
"""

from __future__ import annotations

import sys
from pathlib import Path

STATUS = Path("/proc/self/status")
HERE = Path(__file__).resolve().parent.parent  # for the path of such a process


def peak_memory() -> int:
    """Return the peak memory of this process in bytes."""
    if STATUS.exists():
        fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return 1024 * int(fields["VmHWM"].split()[0])
    import resource  # Unix only

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

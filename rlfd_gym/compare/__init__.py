"""The comparison of methods: tasks, methods, measures, and `run`, which compares them.

>>> from rlfd_gym import compare
>>> chosen = {"tasks": ["inventory"], "methods": ["rlfd-exact"], "demonstrations": ["exact"]}
>>> result = compare.run(**chosen, alphas=[1.0])
>>> [(row.method, round(row.share_closed, 2)) for row in result.rows]
[('optimum', 1.0), ('expert', 0.0), ('prior', 0.91), ('random', 0.02), ('rlfd-exact', 0.59)]
"""

from __future__ import annotations

from rlfd_gym.compare.cells import CellError
from rlfd_gym.compare.comparison import Comparison, run
from rlfd_gym.compare.design import Design
from rlfd_gym.compare.measures import MEASURES, Measure, legend
from rlfd_gym.compare.methods import METHODS, Lesson, Method
from rlfd_gym.compare.overview import overview, write_docs
from rlfd_gym.compare.provenance import ProvenanceError
from rlfd_gym.compare.storage import InUseError
from rlfd_gym.compare.tasks import TASKS, Instance, Task

__all__ = [
    "MEASURES", "METHODS", "TASKS", "CellError", "Comparison", "Design", "InUseError", "Instance", "Lesson", "Measure",
    "Method", "ProvenanceError", "Task", "legend", "overview", "run", "write_docs",
]  # fmt: skip

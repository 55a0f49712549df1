"""Everything side by side: tasks, methods, and a comparison that runs them, stores them and shows them.

>>> from rlfd_gym import compare
>>> result = compare.run(tasks=["inventory"], methods=["rlfd-exact"], demonstrations=["exact"], alphas=[1.0])
>>> [(row.method, round(row.share_closed, 2)) for row in result.rows]
[('optimum', 1.0), ('expert', 0.0), ('prior', 0.91), ('random', 0.02), ('rlfd-exact', 0.59)]
"""

from __future__ import annotations

from rlfd_gym.compare.comparison import Comparison, Settings, run
from rlfd_gym.compare.methods import METHODS, Lesson, Method
from rlfd_gym.compare.tables import LEGEND
from rlfd_gym.compare.tasks import TASKS, Setting, Task

__all__ = ["LEGEND", "METHODS", "TASKS", "Comparison", "Lesson", "Method", "Setting", "Settings", "Task", "run"]

"""The results in the AgentGym-RL paper, for reference only: its episodes, limits and prompts differ from ours.

Source: Xi et al., AgentGym-RL (arXiv 2509.08755), from the figures in its repository.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

TEST_TASKS: Mapping[str, int] = MappingProxyType(
    {"WebArena": 50, "Search": 400, "TextCraft": 100, "BabyAI": 90, "SciWorld": 200}
)
"""The number of test tasks per scenario; inferred for Search."""
ROW_TASKS: Mapping[str, int] = MappingProxyType({"Shopping": 15, "CMS": 15, "Maps": 10, "GitLab & Reddit": 10})
"""The number of test tasks per row with reported figures, inferred from the granularity of the figures."""


class ReportedModel(NamedTuple):
    """A model's figures in percent, by scenario and by row of WebArena.

    `read_off` names the scenarios whose figure was read off a chart, with an error of up to one point. `tasks` has the
    number of tasks where it differs from `TEST_TASKS`.
    """

    model: str
    scenarios: Mapping[str, float]
    rows: Mapping[str, float]
    read_off: frozenset[str] = frozenset()
    tasks: Mapping[str, int] = MappingProxyType({})

    def standard_error(self, scenario: str) -> float:
        """The standard error of a figure in points, with one episode per task: `sqrt(p (100 - p) / n)`."""
        percent = self.scenarios[scenario]
        return math.sqrt(percent * (100 - percent) / self.tasks.get(scenario, TEST_TASKS[scenario]))


def _web(*percents: float) -> dict[str, float]:
    return dict(zip(ROW_TASKS, percents, strict=True))


def _all(web: float, search: float, textcraft: float, babyai: float, sciworld: float) -> dict[str, float]:
    return dict(zip(TEST_TASKS, (web, search, textcraft, babyai, sciworld), strict=True))


_CHARTS = frozenset(TEST_TASKS) - {"WebArena"}
REPORTED = (
    ReportedModel("ScalingInter-7B", _all(26.0, 38.2, 91.0, 96.7, 57.0), _web(33.33, 26.67, 20.0, 20.0)),
    ReportedModel("AgentGym-RL-7B", {"WebArena": 22.0}, _web(20.0, 33.33, 0.0, 30.0)),
    ReportedModel(
        "Qwen2.5-7B",
        _all(9.76, 19.0, 42.0, 67.0, 1.5),
        _web(14.29, 6.67, 0.0, 16.67),
        _CHARTS,
        {"WebArena": 41},
    ),
    ReportedModel("GPT-4o", _all(16.0, 27.0, 83.0, 86.0, 21.0), _web(20.0, 13.33, 10.0, 20.0), _CHARTS),
    ReportedModel("o4-mini", {"WebArena": 36.0}, _web(33.33, 26.67, 20.0, 70.0)),
    ReportedModel("o3", _all(34.0, 49.5, 93.0, 94.0, 41.5), _web(33.33, 0.0, 40.0, 80.0), _CHARTS),
    ReportedModel("Gemini-2.5-Pro", _all(28.0, 36.5, 94.0, 88.0, 12.5), _web(26.67, 26.67, 0.0, 60.0), _CHARTS),
)
"""The paper's trained model first, then its baselines."""

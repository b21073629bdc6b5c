"""What the AgentGym-RL paper reports, for reference only: other episodes, limits and prompts than any run of ours.

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
"""How many tasks a scenario's figure is from; for Search it is inferred."""
ROW_TASKS: Mapping[str, int] = MappingProxyType({"Shopping": 15, "CMS": 15, "Maps": 10, "GitLab & Reddit": 10})
"""The same of the rows for which figures are known, inferred from the steps in which they come."""


class Reported(NamedTuple):
    """A model's figures in percent, by scenario and by row of WebArena.

    `read_off` names the scenarios whose figure was read off a chart, within a point. `tasks` is where a figure is from
    another number of tasks than `TEST_TASKS`.
    """

    model: str
    scenarios: Mapping[str, float]
    rows: Mapping[str, float]
    read_off: frozenset[str] = frozenset()
    tasks: Mapping[str, int] = MappingProxyType({})

    def standard_error(self, scenario: str) -> float:
        """The sampling noise of a scenario's figure in points: `sqrt(p (100 - p) / n)`, as one episode a task gives."""
        percent = self.scenarios[scenario]
        return math.sqrt(percent * (100 - percent) / self.tasks.get(scenario, TEST_TASKS[scenario]))


def _web(*percents: float) -> dict[str, float]:
    return dict(zip(ROW_TASKS, percents, strict=True))


def _all(web: float, search: float, textcraft: float, babyai: float, sciworld: float) -> dict[str, float]:
    return dict(zip(TEST_TASKS, (web, search, textcraft, babyai, sciworld), strict=True))


_CHARTS = frozenset(TEST_TASKS) - {"WebArena"}
REPORTED = (
    Reported("ScalingInter-7B", _all(26.0, 38.2, 91.0, 96.7, 57.0), _web(33.33, 26.67, 20.0, 20.0)),
    Reported("AgentGym-RL-7B", {"WebArena": 22.0}, _web(20.0, 33.33, 0.0, 30.0)),
    Reported(
        "Qwen2.5-7B",
        _all(9.76, 19.0, 42.0, 67.0, 1.5),
        _web(14.29, 6.67, 0.0, 16.67),
        _CHARTS,
        {"WebArena": 41},
    ),
    Reported("GPT-4o", _all(16.0, 27.0, 83.0, 86.0, 21.0), _web(20.0, 13.33, 10.0, 20.0), _CHARTS),
    Reported("o4-mini", {"WebArena": 36.0}, _web(33.33, 26.67, 20.0, 70.0)),
    Reported("o3", _all(34.0, 49.5, 93.0, 94.0, 41.5), _web(33.33, 0.0, 40.0, 80.0), _CHARTS),
    Reported("Gemini-2.5-Pro", _all(28.0, 36.5, 94.0, 88.0, 12.5), _web(26.67, 26.67, 0.0, 60.0), _CHARTS),
)
"""The trained model of the paper first, then what it is compared with."""

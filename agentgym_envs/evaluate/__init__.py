"""Evaluation of a policy from its trajectories: metrics with intervals, comparisons, and AgentGym-RL's 27 tasks.

All metrics are defined here; `docs/metrics.md` has the formulas.
"""

from agentgym_envs.evaluate.agentgym_rl_reported import REPORTED, ROW_TASKS, TEST_TASKS, ReportedModel
from agentgym_envs.evaluate.agentgym_rl_table import (
    AGENTGYM_RL_TABLE,
    SCENARIO_NAMES,
    AgentGymRLRow,
    AgentGymRLScenario,
    AgentGymRLTable,
    make_agentgym_rl_table,
)
from agentgym_envs.evaluate.compare import VALUES, ComparedRow, Comparison, PairedDifference, compare, paired_difference
from agentgym_envs.evaluate.estimates import Z95, Estimate, interval, wilson
from agentgym_envs.evaluate.metrics import Evaluation, Metrics, evaluate
from agentgym_envs.evaluate.mistakes import LabelledEpisode, MistakeEvaluation, MistakeMetrics, evaluate_mistakes

__all__ = [  # noqa: RUF022 (in the order of code points, as everywhere in the package)
    "AGENTGYM_RL_TABLE",
    "AgentGymRLRow",
    "AgentGymRLScenario",
    "AgentGymRLTable",
    "ComparedRow",
    "Comparison",
    "Estimate",
    "Evaluation",
    "LabelledEpisode",
    "Metrics",
    "MistakeEvaluation",
    "MistakeMetrics",
    "PairedDifference",
    "REPORTED",
    "ROW_TASKS",
    "ReportedModel",
    "SCENARIO_NAMES",
    "TEST_TASKS",
    "VALUES",
    "Z95",
    "compare",
    "evaluate",
    "evaluate_mistakes",
    "interval",
    "make_agentgym_rl_table",
    "paired_difference",
    "wilson",
]

"""What a set of trajectories says about a policy: metrics with intervals, comparisons, and AgentGym-RL's 27 tasks.

Metrics are defined here and nowhere else; `docs/metrics.md` has the formulas.
"""

from agentgym_envs.evaluate.agentgym_rl_reported import REPORTED, ROW_TASKS, TEST_TASKS, Reported
from agentgym_envs.evaluate.agentgym_rl_table import SCENARIOS, SUITE, SuiteRow, SuiteScenario, SuiteTable, suite_table
from agentgym_envs.evaluate.compare import VALUES, ComparedRow, Comparison, PairedDifference, compare, paired_difference
from agentgym_envs.evaluate.estimates import Z95, Estimate, interval, wilson
from agentgym_envs.evaluate.metrics import Evaluation, Metrics, evaluate

__all__ = [  # noqa: RUF022 (in the order of code points, as everywhere in the package)
    "ComparedRow",
    "Comparison",
    "Estimate",
    "Evaluation",
    "Metrics",
    "PairedDifference",
    "REPORTED",
    "ROW_TASKS",
    "Reported",
    "SCENARIOS",
    "SUITE",
    "SuiteRow",
    "SuiteScenario",
    "SuiteTable",
    "TEST_TASKS",
    "VALUES",
    "Z95",
    "compare",
    "evaluate",
    "interval",
    "paired_difference",
    "suite_table",
    "wilson",
]

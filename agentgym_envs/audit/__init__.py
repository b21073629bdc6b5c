"""Audit of environments: attackers that try to get rewards without solving the task.

report = audit(load_subject("AgentGym/TextCraft-v0"))
print(report.summary)
"""

from agentgym_envs.audit.attempts import (
    AnswerForm,
    AttackAttempt,
    Attacker,
    AttackFamily,
    AuditScene,
    Prelude,
    PreludeKind,
)
from agentgym_envs.audit.report import AttackerResult, AuditFinding, AuditReport, GroupResult
from agentgym_envs.audit.runner import audit
from agentgym_envs.audit.table import ATTACKERS, attacker_table, select_attackers

__all__ = [
    "ATTACKERS",
    "AnswerForm",
    "AttackAttempt",
    "AttackFamily",
    "Attacker",
    "AttackerResult",
    "AuditFinding",
    "AuditReport",
    "AuditScene",
    "GroupResult",
    "Prelude",
    "PreludeKind",
    "attacker_table",
    "audit",
    "select_attackers",
]

"""The tasks in code hosting."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.code import (
    account,
    building,
    managing,
    multi_step,
    navigation,
    reading,
    tracking,
    working,
)
from agentgym_envs.webarena.tasks.template import AnyTemplate

TEMPLATES: tuple[AnyTemplate, ...] = (
    *reading.TEMPLATES,
    *tracking.TEMPLATES,
    *navigation.TEMPLATES,
    *account.TEMPLATES,
    *managing.TEMPLATES,
    *building.TEMPLATES,
    *working.TEMPLATES,
    *multi_step.TEMPLATES,
)

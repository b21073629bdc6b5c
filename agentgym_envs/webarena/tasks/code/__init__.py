"""The tasks in code hosting."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.code import (
    account,
    batches,
    building,
    contributors,
    forms,
    managing,
    multi_step,
    navigation,
    reading,
    start_pages,
    tracking,
    vague,
    working,
)
from agentgym_envs.webarena.tasks.template import templates_in

TEMPLATES = templates_in(
    reading,
    tracking,
    navigation,
    account,
    managing,
    building,
    working,
    multi_step,
    vague,
    forms,
    contributors,
    batches,
    start_pages,
)

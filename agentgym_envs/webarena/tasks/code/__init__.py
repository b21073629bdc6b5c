"""The tasks of code hosting."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.code import building, going, longer, managing, own, reading, tracking, working
from agentgym_envs.webarena.tasks.template import Template

TEMPLATES: tuple[Template, ...] = (
    *reading.TEMPLATES,
    *tracking.TEMPLATES,
    *going.TEMPLATES,
    *own.TEMPLATES,
    *managing.TEMPLATES,
    *building.TEMPLATES,
    *working.TEMPLATES,
    *longer.TEMPLATES,
)

"""Tasks of the group maps."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.maps import editing, going, keeping, knowing, near, noting
from agentgym_envs.webarena.tasks.template import Template

TEMPLATES: tuple[Template, ...] = (
    *knowing.TEMPLATES,
    *going.TEMPLATES,
    *near.TEMPLATES,
    *noting.TEMPLATES,
    *keeping.TEMPLATES,
    *editing.TEMPLATES,
)

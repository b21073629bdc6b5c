"""Tasks of the group maps."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.maps import editing, facts, going, keeping, knowing, longer, near, noting
from agentgym_envs.webarena.tasks.template import Template

TEMPLATES: tuple[Template, ...] = (
    *facts.TEMPLATES,
    *knowing.TEMPLATES,
    *going.TEMPLATES,
    *near.TEMPLATES,
    *noting.TEMPLATES,
    *keeping.TEMPLATES,
    *editing.TEMPLATES,
    *longer.TEMPLATES,
)

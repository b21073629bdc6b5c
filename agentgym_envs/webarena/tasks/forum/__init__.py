"""Tasks of the group forum."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.forum import counting, going, longer, moderating, own, reading, voting, writing
from agentgym_envs.webarena.tasks.template import Template

TEMPLATES: tuple[Template, ...] = (
    *reading.TEMPLATES,
    *counting.TEMPLATES,
    *going.TEMPLATES,
    *voting.TEMPLATES,
    *writing.TEMPLATES,
    *own.TEMPLATES,
    *moderating.TEMPLATES,
    *longer.TEMPLATES,
)

"""Tasks of the group forum."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.forum import reading
from agentgym_envs.webarena.tasks.template import Template

TEMPLATES: tuple[Template, ...] = (*reading.TEMPLATES,)

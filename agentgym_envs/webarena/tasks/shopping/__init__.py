"""Tasks of the group shopping."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.template import Template

TEMPLATES: tuple[Template, ...] = ()

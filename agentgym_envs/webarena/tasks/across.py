"""Tasks that lead to more than one site."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.template import Template

TEMPLATES: tuple[Template, ...] = ()

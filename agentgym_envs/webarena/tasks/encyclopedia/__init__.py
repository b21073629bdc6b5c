"""Tasks that begin in the encyclopedia: what it says decides what to do on another site."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.encyclopedia import acting, mapping, start_pages
from agentgym_envs.webarena.tasks.template import templates_in

TEMPLATES = templates_in(mapping, acting, start_pages)

"""The tasks in the forum."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.forum import (
    account,
    counting,
    moderating,
    multi_step,
    navigation,
    reading,
    voting,
    writing,
)
from agentgym_envs.webarena.tasks.template import Template

TEMPLATES: tuple[Template, ...] = (
    *reading.TEMPLATES,
    *counting.TEMPLATES,
    *navigation.TEMPLATES,
    *voting.TEMPLATES,
    *writing.TEMPLATES,
    *account.TEMPLATES,
    *moderating.TEMPLATES,
    *multi_step.TEMPLATES,
)

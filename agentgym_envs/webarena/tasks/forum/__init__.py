"""The tasks in the forum."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.forum import (
    account,
    counting,
    moderating,
    multi_step,
    navigation,
    own_words,
    reading,
    series,
    start_pages,
    streaming,
    voting,
    writing,
)
from agentgym_envs.webarena.tasks.template import templates_in

TEMPLATES = templates_in(
    reading,
    counting,
    navigation,
    voting,
    writing,
    account,
    moderating,
    multi_step,
    own_words,
    series,
    start_pages,
    streaming,
)

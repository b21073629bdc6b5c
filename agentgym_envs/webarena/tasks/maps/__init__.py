"""The tasks on the map."""

from __future__ import annotations

from agentgym_envs.webarena.tasks.maps import (
    edits,
    lookups,
    multi_step,
    navigation,
    nearby,
    notes,
    place_facts,
    saved_lists,
)
from agentgym_envs.webarena.tasks.template import AnyTemplate

TEMPLATES: tuple[AnyTemplate, ...] = (
    *lookups.TEMPLATES,
    *place_facts.TEMPLATES,
    *navigation.TEMPLATES,
    *nearby.TEMPLATES,
    *notes.TEMPLATES,
    *saved_lists.TEMPLATES,
    *edits.TEMPLATES,
    *multi_step.TEMPLATES,
)

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
    rounds,
    saved_lists,
    start_pages,
    trips,
)
from agentgym_envs.webarena.tasks.template import templates_in

TEMPLATES = templates_in(
    lookups, place_facts, navigation, nearby, notes, saved_lists, edits, multi_step, trips, rounds, start_pages
)

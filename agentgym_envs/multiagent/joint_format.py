"""The joint form of a team: its instructions, observations and actions are JSON objects from agents to their texts.

A turn's `info["agents"]` holds the info of each. Reading it needs no PettingZoo.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from agentgym_envs.core import MAX_ACTION_CHARS
from agentgym_envs.errors import InvalidAction
from agentgym_envs.spaces import Utf8Text
from agentgym_envs.trajectory import Trajectory

_TEXT = Utf8Text(MAX_ACTION_CHARS)


def write_texts(texts: Mapping[str, str | None]) -> str:
    """The texts as a JSON object, in their order."""
    return json.dumps(dict(texts), ensure_ascii=False)


def write_command(texts: Mapping[str, str | None]) -> str:
    """The texts as a joint action, with `<` and backticks as JSON escapes.

    Without them, a grammar would mistake an agent's `<action>` for the action of its team.
    """
    return write_texts(texts).replace("<", "\\u003c").replace("`", "\\u0060")


def read_texts(text: str) -> dict[str, str] | None:
    """The texts of the agents; None if `text` is not an object of texts, such as the reply to a malformed action."""
    members = read_members(text)
    if members is None or not all(isinstance(value, str) for value in members.values()):
        return None
    return members


def read_seen(text: str, agents: Container[str]) -> dict[str, str] | None:
    """The observation of each agent; None if `text` is not a joint observation of these `agents`."""
    texts = read_texts(text)
    return texts if texts and all(agent in agents for agent in texts) else None


def read_actions(command: str, acting: Sequence[str]) -> dict[str, str | None]:
    """The text of each agent, None for an agent that writes nothing, in the order of `acting`.

    Raises InvalidAction unless `command` is an object with exactly these agents, each once.
    """
    actions = read_members(command)
    if actions is None or actions.keys() != set(acting):
        raise InvalidAction(
            f"This is no joint action. Write a JSON object with exactly these agents: {', '.join(acting)}."
        )
    if not all(text is None or (isinstance(text, str) and text in _TEXT) for text in actions.values()):
        raise InvalidAction("This is no joint action. What an agent writes is a text, or null if it writes nothing.")
    return {agent: actions[agent] for agent in acting}


def write_action(texts: Mapping[str, str | None]) -> str:
    """The joint action. Texts that are too long together are truncated, and invalid Unicode becomes `?`.

    So the text of one agent never makes the action of its team invalid.
    """
    plain = {agent: None if text is None else text.encode("utf-8", "replace").decode() for agent, text in texts.items()}
    action = write_command(plain)
    limit = max((len(text or "") for text in plain.values()), default=0)
    while len(action) > MAX_ACTION_CHARS:
        limit = limit * 3 // 4
        action = write_command({agent: text if text is None else text[:limit] for agent, text in plain.items()})
    return action


def is_team_record(trajectory: Trajectory) -> bool:
    """True if a record is a team's, by its instructions and first observation."""
    first = trajectory.turns[0].observation if trajectory.turns else trajectory.final_observation
    return read_seen(first, read_texts(trajectory.instructions) or ()) is not None


def own_info(info: Mapping[str, Any], agent: str, key: str = "agents") -> Mapping[str, Any]:
    """An agent's part of the info of a joint turn; empty without one."""
    parts = info.get(key)
    own = parts.get(agent) if isinstance(parts, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def read_members(text: str) -> dict[str, Any] | None:
    """The members of a JSON object; None for any other text, and for an object with a repeated name."""
    if not text.lstrip().startswith("{"):  # most texts are not objects, and the viewer's search reads very many
        return None
    try:
        found: dict[str, Any] = json.loads(text, object_pairs_hook=_each_once)
    except (ValueError, RecursionError):
        return None
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a repeated name")
    return found

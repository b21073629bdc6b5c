"""The joint form of a team's observations and actions: a JSON object from the agents to their texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentgym_envs.core import MAX_ACTION_CHARS
from agentgym_envs.errors import InvalidAction
from agentgym_envs.spaces import Utf8Text

_TEXT = Utf8Text(MAX_ACTION_CHARS)


def write_texts(texts: Mapping[str, str | None]) -> str:
    """The JSON object, in the order of `texts`."""
    return json.dumps(dict(texts), ensure_ascii=False)


def read_texts(text: str) -> dict[str, str] | None:
    """The texts of the agents; None if it is no object of texts, as the answer to a malformed action is none."""
    pairs = _pairs(text)
    if pairs is None or not all(isinstance(value, str) for _, value in pairs):
        return None
    return dict(pairs)


def read_actions(command: str, acting: Sequence[str]) -> dict[str, str | None]:
    """What each agent writes, None for one that writes nothing, in the order of `acting`.

    Raises InvalidAction unless it is an object with exactly these agents, each once.
    """
    pairs = _pairs(command) or []
    if sorted(name for name, _ in pairs) != sorted(acting):
        raise InvalidAction(
            f"This is no joint action. Write a JSON object with exactly these agents: {', '.join(acting)}."
        )
    actions = dict(pairs)
    if not all(text is None or (isinstance(text, str) and text in _TEXT) for text in actions.values()):
        raise InvalidAction("This is no joint action. What an agent writes is a text, or null if it writes nothing.")
    return {agent: actions[agent] for agent in acting}


def write_action(texts: Mapping[str, str | None]) -> str:
    """The joint action. The longest texts are cut if together they are too long, and what is no Unicode becomes `?`.

    So what one agent writes never makes an action of its whole team none.
    """
    plain = {agent: None if text is None else text.encode("utf-8", "replace").decode() for agent, text in texts.items()}
    action = write_texts(plain)
    most = max((len(text or "") for text in plain.values()), default=0)
    while len(action) > MAX_ACTION_CHARS:
        most = most * 3 // 4
        action = write_texts({agent: text if text is None else text[:most] for agent, text in plain.items()})
    return action


def _pairs(text: str) -> list[tuple[str, Any]] | None:
    """The members of a JSON object, as often as they are named; None if it is none."""
    try:
        found = json.loads(text, object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        return None
    return list(found) if isinstance(found, _Members) else None


class _Members(list[tuple[str, Any]]):
    """An object as the list of its members: a name that stands twice is seen twice."""

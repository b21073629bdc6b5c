"""How the answers of a record are read: by the grammars that its episode was played with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.grammar import GRAMMARS, ActionGrammar, BareGrammar, make_grammar
from agentgym_envs.trajectory import Trajectory


def grammar_of(trajectory: Trajectory) -> ActionGrammar:
    """The grammar that an episode was played with; the bare one if its own is not known here."""
    return _made(trajectory.env_kwargs.get("grammar"), trajectory.env_id)


def agent_grammar_of(trajectory: Trajectory) -> ActionGrammar:
    """What the agents of a team write in; around their texts is `grammar_of`."""
    inner = trajectory.env_kwargs.get("env_kwargs")
    options: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    chosen = trajectory.env_kwargs.get("agent_grammar") or options.get("grammar")
    return _made(chosen, trajectory.env_kwargs.get("env_id") or trajectory.env_id)


def read_answer(answer: str, grammar: ActionGrammar) -> tuple[str, str | None]:
    """Thought and command; None for what cannot be read as one."""
    try:
        return grammar.parse(answer)
    except InvalidAction:
        return "", None


def _made(name: Any, env_id: Any) -> ActionGrammar:
    try:
        return make_grammar(name or "bare", _grammars(env_id))
    except UsageError:
        return BareGrammar()


def _grammars(env_id: Any) -> Mapping[str, Any]:
    """The grammars of an environment, which may word some in its own way; the suite's, if it cannot be had here."""
    from agentgym_envs.registration import env_class, env_ids

    if env_id not in env_ids():  # "module:Id" would import whatever a file names that somebody sent
        return GRAMMARS
    try:
        return env_class(env_id).grammars
    except Exception:  # an extra is missing: reading an episode must not need it
        return GRAMMARS

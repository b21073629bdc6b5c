"""Parsing of recorded answers with the grammar of their episode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.grammar import GRAMMARS, ActionGrammar, BareGrammar, make_grammar
from agentgym_envs.trajectory import Trajectory


def grammar_of(trajectory: Trajectory) -> ActionGrammar:
    """The grammar of an episode; the bare one if that is unknown here."""
    return _made(trajectory.env_kwargs.get("grammar"), trajectory.env_id, trajectory.env_kwargs)


def agent_grammar_of(trajectory: Trajectory) -> ActionGrammar:
    """The grammar of the agents of a team. The joint actions around their texts have that of `grammar_of`."""
    inner = trajectory.env_kwargs.get("env_kwargs")
    options: Mapping[str, Any] = inner if isinstance(inner, Mapping) else {}
    chosen = trajectory.env_kwargs.get("agent_grammar") or options.get("grammar")
    return _made(chosen, trajectory.env_kwargs.get("env_id") or trajectory.env_id, options)


def read_answer(answer: str, grammar: ActionGrammar) -> tuple[str, str | None]:
    """Return the thought and the command; the command is None if the answer cannot be parsed."""
    try:
        return grammar.parse(answer)
    except InvalidAction:
        return "", None


def _made(name: Any, env_id: Any, options: Mapping[str, Any]) -> ActionGrammar:
    try:
        return make_grammar(name or "bare", _grammars(env_id, options))
    except UsageError:
        return BareGrammar()


def _grammars(env_id: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The grammars of an environment, which may override some; the common ones if it is not installed."""
    from agentgym_envs.registration import env_class, env_ids

    if env_id not in env_ids():  # "module:Id" would import any module that an untrusted file names
        return GRAMMARS
    try:
        return env_class(env_id).grammars_for(options)
    except Exception:  # an extra is missing; it must not be required to read an episode
        return GRAMMARS

"""Playing attempts, and the episodes before them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium as gym

from agentgym_envs.audit.attempts import AttackAttempt, Host, Prelude, PreludeKind
from agentgym_envs.core import text_env
from agentgym_envs.errors import EpisodeOver
from agentgym_envs.hosting.remote_env import RemoteEnv
from agentgym_envs.hosting.worker import WorkerPool
from agentgym_envs.validate.episodes import EpisodeStart, NextAction, RecordedEpisode, play, replaying
from agentgym_envs.validate.semantic import shifted_clock

Env = gym.Env[Any, Any]
Make = Callable[[], Env]
Begun = Callable[[], Any]
_MOST_RESTARTS = 24


def play_attempt(env: Env, start: EpisodeStart, attempt: AttackAttempt, make: Make) -> list[RecordedEpisode]:
    """Play an attempt in an environment; `make` makes others for the episodes before it."""
    with contextlib.ExitStack() as stack:
        if attempt.host is not None:
            env = stack.enter_context(hosted(env, attempt.host))
        rivals = [prelude for prelude in attempt.before if prelude.kind is PreludeKind.RIVAL]
        for prelude in attempt.before:
            if prelude not in rivals:
                _play_prelude(env, prelude, make, stack)
        if attempt.clock_shift:
            stack.enter_context(shifted_clock(attempt.clock_shift))
        if attempt.policy is not None:
            return [play(env, start, attempt.policy, attempt.turns)]
        return list(_episodes(env, start, attempt, lambda: [_play_elsewhere(one, make, stack) for one in rivals]))


@contextlib.contextmanager
def hosted(env: Env, host: Host) -> Iterator[Env]:
    """An environment with the id and arguments of another one, in a worker process or behind a server."""
    from agentgym_envs.http.run import background_server  # heavy

    spec = text_env(env).spec
    assert spec is not None  # or the attacker would not have asked for a host
    with contextlib.ExitStack() as stack:
        if host is Host.SERVER:
            options = {**spec.kwargs, "base_url": stack.enter_context(background_server([spec.id]))}
            made: Env = gym.make(spec.id, **options)
        else:
            pool = stack.enter_context(contextlib.closing(WorkerPool(1)))
            made = RemoteEnv(spec.id, pool, spec.kwargs)
        stack.callback(made.close)
        yield made


def _episodes(
    env: Env, start: EpisodeStart, attempt: AttackAttempt, begun: Callable[[], Any]
) -> Iterator[RecordedEpisode]:
    left = list(attempt.actions)
    for _ in range(_MOST_RESTARTS if attempt.restart else 1):
        episode = play(env, start, _after(begun, replaying(left)), len(left))
        yield episode
        left = left[max(1, len(episode.steps)) :]
        if not left:
            return


def _after(begun: Begun, act: NextAction) -> NextAction:
    """A policy that calls a function after the reset."""

    def next_action(env: Env, episode: RecordedEpisode) -> str | None:
        if not episode.steps:
            begun()
        return act(env, episode)

    return next_action


def play_actions(env: Env, start: EpisodeStart, actions: Sequence[str]) -> RecordedEpisode:
    """Play messages until they or the episode end."""
    return play(env, start, replaying(actions), len(actions))


def _play_prelude(env: Env, prelude: Prelude, make: Make, stack: contextlib.ExitStack) -> None:
    if prelude.kind is PreludeKind.EPISODE:
        play_actions(env, prelude.start, prelude.actions)
        return
    other = _play_elsewhere(prelude, make, stack)
    text_env(env).restore(text_env(other).snapshot())


def _play_elsewhere(prelude: Prelude, make: Make, stack: contextlib.ExitStack) -> Env:
    other = make()
    stack.callback(other.close)
    play_actions(other, prelude.start, prelude.actions)
    return other


def carried_out_beyond(env: Env, attempt: AttackAttempt) -> bool:
    """True if the environment takes a step after the end of an attempt's episode."""
    for message in attempt.beyond:
        try:
            env.step(message)
        except EpisodeOver:
            continue
        return True
    return False

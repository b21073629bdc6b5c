"""Episodes whose states the oracle labels while the policy plays them.

`play_labelled` plays like `play_many`, and asks the oracle in every state that the policy visits. The label of a turn
is in its info (`OracleLabel`). With `oracle_share`, the oracle's answer is played in a share of the turns: the mixture
of policies of DAgger (Ross et al., arXiv 1011.0686, section 3).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from agentgym_envs.core import Solution, TextEnv, text_env
from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import tools_of
from agentgym_envs.hosting.connection import Request
from agentgym_envs.hosting.methods import Env
from agentgym_envs.registration import has_slow_oracle
from agentgym_envs.rollout.chat import ChatCodec
from agentgym_envs.rollout.engines import BatchEngine, Engine, Generation, Sampling
from agentgym_envs.rollout.play import (
    EpisodeSpec,
    Limits,
    StepRunner,
    TokenPlayer,
    check_text_only,
    run_episode,
    run_many,
)
from agentgym_envs.rollout.policies import Answer
from agentgym_envs.rollout.tokens import TokenTrajectory
from agentgym_envs.trajectory import Turn
from agentgym_envs.vector.pool import MakeEnvs, RunnerPool
from agentgym_envs.vector.runner import EnvRunner, Result

_KEY = "oracle"
"""The key of a turn's info with its label."""


@dataclass(frozen=True, slots=True)
class OracleLabel:
    """The oracle's answer in the state before a turn.

    answer: the first command of the way to the goal, in the environment's grammar; None if no way is known.
    turns_to_go: the number of commands of that way; None if no way is known.
    exact: there is a proof that no way is shorter, or that there is none.
    played: the turn's action was the oracle's answer, not one of the policy.
    agrees: the turn's action has the command of `answer`.
    """

    answer: str | None
    turns_to_go: int | None
    exact: bool
    played: bool = False
    agrees: bool = False

    @classmethod
    def of(cls, turn: Turn) -> Self | None:
        """The label of a turn; None if the oracle was not asked."""
        found = turn.info.get(_KEY)
        return None if found is None else cls(**found)

    @property
    def out_of_reach(self) -> bool:
        """True if it is proven that no way leads to the goal."""
        return self.exact and self.turns_to_go is None


@dataclass(slots=True)
class OracleClock:
    """The seconds that the oracle may take (None: no limit), and those that it has taken.

    A call that has begun is not interrupted, so the last one may exceed the limit.
    """

    limit: float | None = None
    spent: float = field(default=0.0, init=False)

    def ask(self, env: TextEnv) -> Solution | None:
        """The solution of the present state; None if the seconds are used up."""
        if self.limit is not None and self.spent >= self.limit:
            return None
        began = time.perf_counter()
        try:
            return env.solution()
        finally:
            self.spent += time.perf_counter() - began


def carried_over(before: Solution, command: str | None, *, unchanged: bool) -> Solution | None:
    """The solution of the state after `command`, if it follows from the one before; the episode must not be over.

    It does if the state is `unchanged`, or if the command is the first of several that lead to the goal.
    """
    if unchanged:
        return before
    if before.commands and len(before.commands) > 1 and command == before.commands[0]:
        return Solution(before.commands[1:], before.exact)
    return None


async def play_labelled(
    specs: Sequence[EpisodeSpec],
    envs: MakeEnvs | RunnerPool,
    engine: Engine,
    codec: ChatCodec,
    *,
    limits: Limits,
    sampling: Sampling | None = None,
    oracle_share: float = 0.0,
    clock: OracleClock | None = None,
    seed: int = 0,
    concurrency: int = 256,
    on_done: Callable[[TokenTrajectory], None] | None = None,
) -> list[TokenTrajectory]:
    """Play many episodes like `play_many`, and label every turn.

    If `clock` has a limit, environments with a slow oracle (`TextEnv.slow_oracle`) are played after all others, so that
    they get the seconds that are left.

    Args:
        specs: the episodes.
        envs: the environments, or their pool.
        engine: samples the policy's answers.
        codec: encodes text for the engine.
        limits: the limits of an episode.
        sampling: parameters of sampling.
        oracle_share: the probability that a turn is the oracle's, in [0, 1]. Its answer is played if there is one that
            fits the token limits.
        clock: the oracle's seconds. States after them have no label, and their turns are the policy's.
        seed: with an episode's specification, decides which turns are the oracle's.
        concurrency: number of episodes at a time.
        on_done: receives each finished episode.
    """
    clock = clock or OracleClock()

    async def one(runner: EnvRunner, spec: EpisodeSpec) -> TokenTrajectory:
        episode = _LabelledEpisode(runner, engine, codec, spec.within(limits), sampling, clock)
        return await episode.play(spec, oracle_share, seed)

    batch = engine if isinstance(engine, BatchEngine) else None
    played = dict[int, TokenTrajectory]()
    for turn in _slow_oracles_last(specs) if clock.limit is not None else [list(range(len(specs)))]:
        episodes = await run_many([specs[index] for index in turn], envs, one, concurrency, on_done, batch)
        played.update(zip(turn, episodes, strict=True))
    return [played[index] for index in range(len(specs))]


def _slow_oracles_last(specs: Sequence[EpisodeSpec]) -> list[list[int]]:
    """The indices of the episodes whose oracle is quick, and those of the others, which are played after them."""
    slow = {env: has_slow_oracle(env) for env in {spec.env for spec in specs}}
    return [[index for index, spec in enumerate(specs) if slow[spec.env] is late] for late in (False, True)]


class _LabelledEpisode:
    """Plays one episode."""

    def __init__(
        self,
        runner: StepRunner,
        engine: Engine,
        codec: ChatCodec,
        limits: Limits,
        sampling: Sampling | None,
        clock: OracleClock,
    ) -> None:
        env = text_env(runner.last_env)
        check_text_only(env)
        self._runner, self._limits = _WatchedRunner(runner), limits
        self._codec, self._clock = codec.with_tools(tools_of(env.grammar)), clock
        self._engine = _GuidedEngine(engine)
        sampling = sampling or Sampling(limits.max_turn_tokens)
        self._player = TokenPlayer(env.instructions, self._engine, self._codec, limits, sampling)
        self._known: Solution | None = None
        self._key: object = None
        self._command: str | None = None

    async def play(self, spec: EpisodeSpec, oracle_share: float, seed: int) -> TokenTrajectory:
        """Play the episode; a turn is the oracle's with probability `oracle_share`."""
        rng = random.Random(repr((seed, spec.task, spec.seed, sorted(spec.meta.items()))))

        async def act(observation: str) -> Answer | None:
            return await self._act(observation, rng.random() < oracle_share)

        trajectory = await run_episode(self._runner, act, spec, self._limits, self._player.reward)
        return self._player.finish(trajectory)

    async def _act(self, observation: str, oracles_turn: bool) -> Answer | None:
        env = text_env(self._runner.last_env)
        solution = self._solve(env)
        commands = solution.commands if solution is not None else None
        text = env.grammar.format(commands[0]) if commands else None
        self._engine.next_ids = self._codec.encode_answer(text) if oracles_turn and text is not None else None
        answer = await self._player.act(observation)
        if answer is None:
            return None
        self._command = _command(env, answer.text)
        if solution is None:
            return answer
        agrees = bool(commands) and self._command == commands[0]  # type: ignore[index]  # it is not empty
        label = OracleLabel(text, len(commands) if commands else None, solution.exact, self._engine.guided, agrees)
        return Answer(answer.text, {**answer.info, _KEY: asdict(label)})

    def _solve(self, env: TextEnv) -> Solution | None:
        """The solution of the present state. What follows from the last one costs no time of the oracle."""
        key = self._runner.info["state_key"]
        found = carried_over(self._known, self._command, unchanged=key == self._key) if self._known else None
        self._known, self._key = found or self._clock.ask(env), key
        return self._known


class _WatchedRunner:
    """A runner that keeps the info of the last reset or step."""

    def __init__(self, runner: StepRunner) -> None:
        self._runner = runner
        self.info: Mapping[str, Any] = {}

    @property
    def last_env(self) -> Env:
        return self._runner.last_env

    @property
    def error(self) -> Exception | None:
        return self._runner.error

    def failed(self, request: Request, error: Exception) -> Result:
        return self._runner.failed(request, error)

    async def run(self, request: Request, seconds: float | None = None) -> Result:
        result = await self._runner.run(request, seconds)
        if not isinstance(result, Exception):
            self.info = result[-1]
        return result


class _GuidedEngine:
    """Returns `next_ids`, if there are any and they are short enough, in place of the engine's answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.next_ids: list[int] | None = None
        self.guided = False
        """True if the last answer was not the engine's."""

    async def generate(self, prompt_ids: Sequence[int], sampling: Sampling) -> Generation:
        self.guided = self.next_ids is not None and len(self.next_ids) <= sampling.max_tokens
        if self.guided and self.next_ids is not None:
            return Generation(self.next_ids, "stop")
        return await self._engine.generate(prompt_ids, sampling)


def _command(env: TextEnv, action: str) -> str | None:
    try:
        return env.grammar.parse(action).command
    except InvalidAction:
        return None

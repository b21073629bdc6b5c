"""`TextEnv`: the base class of every scenario, with text observations and actions and one convention for failures."""

from __future__ import annotations

import hashlib
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np

from agentgym_envs.difficulty import dial
from agentgym_envs.errors import EnvError, EpisodeOver, InvalidAction, NoOracle, UsageError
from agentgym_envs.grammar import ENV_GRAMMARS, ActionGrammar, make_grammar
from agentgym_envs.seeding import SeededEnv, episode_generator
from agentgym_envs.spaces import Utf8Text
from agentgym_envs.task import Task, TaskSet, check_selection

MAX_ACTION_CHARS = 16_384
MAX_OBSERVATION_CHARS = 262_144
ENV_FAILED = "The environment failed. This episode is over."
TRANSPORT_OPTIONS = frozenset({"render_mode", "base_url", "token", "dialect", "timeout", "connect_timeout"})
"""Arguments of `gym.make` for the connection or the rendering. Records of episodes leave them out."""
RESET_OPTIONS = frozenset({"task", "split", "group"})


class StopReason(StrEnum):
    """The reason why an episode ended."""

    SUCCESS = "success"
    """The goal was reached."""
    FAILURE = "failure"
    """The environment ended the episode before the goal was reached."""
    TURN_LIMIT = "turn_limit"
    """The turn limit was reached, or the environment's own step limit."""
    TOKEN_LIMIT = "token_limit"
    """The token budget of the trajectory was used up."""
    ENV_ERROR = "env_error"
    """The environment failed. Such an episode is no evidence about the policy and is never trained on."""
    CLOSED = "closed"
    """The environment was closed during the episode."""


class Transition(NamedTuple):
    """The result of a command.

    `reward` is the increase of the score; the rewards of an episode sum to a value in [0, 1]. `success` is True if a
    terminated episode reached its goal; by default, if the score is 1. `info` (JSON) is merged into the step's info.
    `truncated` means that the environment's own step limit was reached; the stop reason is then `turn_limit`.
    """

    observation: str
    reward: float = 0.0
    terminated: bool = False
    success: bool | None = None
    info: Mapping[str, Any] = {}
    truncated: bool = False


class Solution(NamedTuple):
    """The commands from a state to the goal; None if no way is known.

    `exact` means that there is a proof: no sequence of commands is shorter, or none reaches the goal.
    """

    commands: tuple[str, ...] | None
    exact: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The beginning of an episode: enough to bring any environment with the same arguments to the same state.

    `state_copy` is set by scenarios that can copy their state, so that restoring needs no replay. It stays in this
    process: a pickled snapshot has none.
    """

    task_id: str
    seed: int
    actions: tuple[str, ...] = field(default=())
    state_copy: Any = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Snapshot, (self.task_id, self.seed, self.actions)


class TextEnv(SeededEnv, ABC):
    """Base class of every scenario.

    A scenario implements `_begin` and `_act`, and optionally others of the methods below, such as `_state` and `_plan`.

    Observations and actions are strings. Errors of the policy get a reply in text; errors of the caller are raised;
    failures of the environment (`EnvError` from `_begin` or `_act`) end the episode as `env_error`.

    The `info` of each reset and step has these keys:

    - `task_id` and `seed`: `reset(seed=info["seed"], options={"task": info["task_id"]})` repeats the episode;
    - `turn`: 0 at reset;
    - `score`: in [0, 1], so far;
    - `success`;
    - `stop_reason`: None while the episode runs, then a `StopReason`;
    - `state_key`: a hash of task and state; for one task and seed, equal keys mean equal states;
    - `invalid_action`: after a step, None or the reason;
    - `error`: only after `env_error`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (Gymnasium's name and type)
    blocking: bool = False
    """True if a step waits for something outside this process. It then runs in a thread of its own."""
    heavy: ClassVar[bool] = False
    """True if steps need much CPU or the environment owns a process. Servers then keep it in a worker process."""
    slow_oracle: ClassVar[bool] = False
    """Declared, not measured: plans of the oracle take seconds. Where environments share its time, they come last."""
    guess_rates: ClassVar[Mapping[str, float] | None] = None  # of a lucky answer, by group ("" for others); for audits
    native_async: ClassVar[bool] = False
    """True if `areset` and `astep` wait without a thread, so that one event loop can run many episodes."""
    remote_options: ClassVar[frozenset[str]] = frozenset({"grammar", "split", "groups", "instructions", "render_mode"})
    """The arguments that clients of a server may give; never a path or an address."""
    grammars: Mapping[str, Callable[[], ActionGrammar]] = ENV_GRAMMARS
    """The grammars by name, including the scenario's own."""

    tasks: TaskSet
    rules: str = ""
    """The description of the world and its commands, for the system prompt."""

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        difficulty: Sequence[int] | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """A reset without a task draws from `split` and `groups`; None means all.

        `difficulty`, a range of the oracle's turns such as (3, 8), restricts the tasks that are drawn.
        `instructions` replaces the text for the system prompt; "" for an empty one.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UsageError(f"render_mode must be one of {self.metadata['render_modes']} or None, got {render_mode!r}")
        check_selection(self.tasks, split, groups)
        self.tasks = dial(self.tasks, difficulty, split=split, groups=groups)
        self.grammar = make_grammar(grammar, self.grammars)
        self.difficulty = difficulty
        self.split, self.groups = split, None if groups is None else tuple(groups)
        self._instructions = instructions
        self.render_mode = render_mode
        self.action_space = Utf8Text(MAX_ACTION_CHARS)
        self.observation_space = Utf8Text(MAX_OBSERVATION_CHARS)
        self.task: Task | None = None
        self.episode_seed = 0
        self._stop: StopReason | None = StopReason.CLOSED
        self._turn, self._score, self._success, self._closed = 0, 0.0, False, False
        self._actions: list[str] = []
        self._observation = ""

    @classmethod
    def needs_worker(cls, options: Mapping[str, Any]) -> bool:
        """True if a server should keep an environment with these arguments in a worker process."""
        return cls.heavy or cls.blocking

    @classmethod
    def grammars_for(cls, options: Mapping[str, Any]) -> Mapping[str, Callable[[], ActionGrammar]]:
        """The grammars of an environment with these arguments, for a client that has only the class."""
        return cls.grammars

    def prepare(self) -> None:
        """Load what the first episode needs. Servers call this after making an environment. Raises EnvError."""

    @property
    def instructions(self) -> str:
        """The text for the system prompt: the rules of the world and the format of an answer."""
        if self._instructions is not None:
            return self._instructions
        return f"{self.rules}\n\n{self.grammar.instructions}".strip()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: determines every random choice of the episode, and the task unless `options` name one. Without a
                seed, the environment's own generator gives the next one.
            options: `{"task": id}`, or `{"split": name, "group": name}` to draw from.

        Raises:
            UsageError, UnknownTask: invalid options.
        """
        task, rng = self._prepare(seed, options)
        try:
            self._observation = self._begin(task, rng)
        except EnvError as error:
            return self._failed_reset(error)
        except UsageError:
            self._stop = StopReason.CLOSED  # no episode has begun
            raise
        return self._observation, self._info(self._details())

    async def areset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Reset without blocking the event loop, if the environment is `native_async`."""
        task, rng = self._prepare(seed, options)
        try:
            self._observation = await self._begin_async(task, rng)
        except EnvError as error:
            return self._failed_reset(error)
        except UsageError:
            self._stop = StopReason.CLOSED  # no episode has begun
            raise
        return self._observation, self._info(self._details())

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one action, written in the environment's grammar.

        Raises:
            EpisodeOver: no episode is running.
            UsageError: the action is not a string.
        """
        self._take(action)
        try:
            return self._finish_step(self._perform(action), None)
        except InvalidAction as error:
            return self._finish_step(Transition(str(error)), str(error))
        except EnvError as error:
            return self._failed_step(error)

    async def astep(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Step without blocking the event loop, if the environment is `native_async`."""
        self._take(action)
        try:
            return self._finish_step(await self._perform_async(action), None)
        except InvalidAction as error:
            return self._finish_step(Transition(str(error)), str(error))
        except EnvError as error:
            return self._failed_step(error)

    def oracle(self) -> Iterator[str]:
        """Return the commands (bare, not in the grammar) that solve the current state. Raises NoOracle."""
        if self._stop is not None:
            raise NoOracle("no episode is running, so there is nothing to solve; call reset() first")
        return iter(self._plan())

    def solution(self) -> Solution:
        """The shortest known way from the current state to the goal, without regard to limits of turns and steps.

        By default the oracle's plan, which is not exact. An episode that ended has reached its goal or never will.
        """
        if self._stop is StopReason.SUCCESS:
            return Solution((), True)
        if self._stop is StopReason.FAILURE:
            return Solution(None, True)
        return self._solution()

    def random_command(self, rng: random.Random) -> str:
        """A random command (bare), plausible where that is cheap; by default a random text."""
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=8))

    def snapshot(self) -> Snapshot:
        """The episode so far as task, seed and actions. Raises EpisodeOver before the first episode."""
        if self.task is None:
            raise EpisodeOver("no episode was begun, so there is nothing to save; call reset() first")
        state = None if self._stop in (StopReason.ENV_ERROR, StopReason.CLOSED) else self._save()
        state_copy = None if state is None else (type(self), self.task, self._progress(), state)
        return Snapshot(self.task.id, self.episode_seed, tuple(self._actions), state_copy)

    def restore(self, snapshot: Snapshot) -> str:
        """Bring the environment to a snapshot's state, and return the last observation.

        The episode is replayed, unless the snapshot has a copy of the state. Raises UsageError if it is not a snapshot.
        """
        if not isinstance(snapshot, Snapshot):
            raise UsageError(f"restore takes a result of snapshot(), got {snapshot!r:.80}")
        if snapshot.state_copy is not None:
            return self._restore_copy(snapshot)
        self.reset(seed=snapshot.seed, options={"task": snapshot.task_id})
        for action in snapshot.actions:
            self.step(action)
        return self._observation

    def status(self) -> dict[str, Any]:
        """The status of the episode (JSON): task_id, seed, turn, score, success and stop_reason.

        Before the first episode, `stop_reason` is "closed".
        """
        return {
            "task_id": None if self.task is None else self.task.id,
            "seed": self.episode_seed,
            "turn": self._turn,
            "score": self._score,
            "success": self._success,
            "stop_reason": None if self._stop is None else self._stop.value,
        }

    @property
    def copies_state(self) -> bool:
        """True if a snapshot holds a copy of the state, so that restoring it needs no replay."""
        return type(self)._save is not TextEnv._save

    def render(self) -> Any:
        """The state as text in render mode "ansi"; None without a mode. Scenarios may add modes."""
        return self._draw() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Free all resources. Closing twice is allowed."""
        if self._closed:
            return
        self._closed = True
        self._stop = self._stop or StopReason.CLOSED
        self._close()

    @abstractmethod
    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        """Set up the task and return the first observation. Every random choice comes from `rng`."""

    @abstractmethod
    def _act(self, command: str) -> Transition:
        """Carry out a command. Raises InvalidAction, with the reply, if it is invalid; EnvError on a failure."""

    async def _begin_async(self, task: Task, rng: np.random.Generator) -> str:
        """The asynchronous `_begin` of a `native_async` environment."""
        return self._begin(task, rng)

    async def _act_async(self, command: str) -> Transition:
        """The asynchronous `_act` of a `native_async` environment."""
        return self._act(command)

    def _perform(self, action: str) -> Transition:
        """Parse an action and carry out its command. Environments with typed actions override it."""
        return self._act(self._command(action))

    async def _perform_async(self, action: str) -> Transition:
        """`_perform` for an environment that is `native_async`."""
        return await self._act_async(self._command(action))

    def _save(self) -> Any:
        """A copy of the state for `_load`, of this or another environment with the same options; None if unsupported.

        The copy must never change, and may be loaded more than once.
        """
        return None

    def _load(self, state: Any) -> None:
        """Restore a result of `_save`. Raises UsageError, and changes nothing, if it is of other options."""
        raise NotImplementedError

    def _state(self) -> str:
        """A canonical text of the state, hashed into `state_key`; by default all actions so far."""
        return "\n".join(self._actions)

    def _plan(self) -> Sequence[str]:
        """The commands that solve the current state."""
        raise NoOracle(f"{type(self).__name__} has no oracle")

    def _solution(self) -> Solution:
        """The shortest known way to the goal. A scenario that can prove its ways overrides it."""
        try:
            return Solution(tuple(self.oracle()), False)
        except NoOracle:
            return Solution(None, False)

    def _details(self) -> Mapping[str, Any]:
        """The scenario's own keys for the info of a reset (JSON)."""
        return {}

    def _draw(self) -> str:
        return self._observation

    def _close(self) -> None:
        """Free the scenario's resources. Called once."""

    def _prepare(self, seed: int | None, options: Mapping[str, Any] | None) -> tuple[Task, np.random.Generator]:
        """Choose the task of a new episode, and reset the state of the last one."""
        episode_seed = self._seed_episode(seed)
        rng, key = episode_generator(episode_seed)
        task = self._choose(options or {}, key)
        self._start(task, episode_seed)
        return task, rng

    def _seed_episode(self, seed: int | None) -> int:
        if self._closed:
            raise EpisodeOver("this environment is closed; make a new one")
        return self._next_seed(seed)

    def _start(self, task: Task, episode_seed: int) -> None:
        self.task, self.episode_seed = task, episode_seed
        self._turn, self._score, self._success, self._stop = 0, 0.0, False, None
        self._actions = []

    def _progress(self) -> tuple[float, bool, StopReason | None, str]:
        return self._score, self._success, self._stop, self._observation

    def _restore_copy(self, snapshot: Snapshot) -> str:
        kind, task, progress, state = snapshot.state_copy
        if kind is not type(self):
            raise UsageError(f"the snapshot is of a {kind.__name__}, this environment is a {type(self).__name__}")
        self._load(state)
        self._start(task, self._seed_episode(snapshot.seed))
        self._actions, self._turn = list(snapshot.actions), len(snapshot.actions)
        self._score, self._success, self._stop, self._observation = progress
        return self._observation

    def _take(self, action: str) -> None:
        """Record an action. Raises EpisodeOver without a running episode, UsageError for a wrong type."""
        if self._stop is not None:
            raise EpisodeOver(f"no episode is running (the last one, if any, ended: {self._stop}); call reset() first")
        if not isinstance(action, str):
            raise UsageError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
        self._turn += 1
        self._actions.append(action[: MAX_ACTION_CHARS + 1])  # enough of a too long action to be too long when replayed

    def _choose(self, options: Mapping[str, Any], key: int) -> Task:
        if not options:
            return self.tasks.draw(key, split=self.split, groups=self.groups)
        if not isinstance(options, Mapping):
            raise UsageError(f"the options of reset are a dict, got {options!r:.80}")
        if unknown := sorted(set(options) - RESET_OPTIONS):
            raise UsageError(f"reset knows the options {sorted(RESET_OPTIONS)}, not {unknown}")
        if wrong := {k: v for k, v in options.items() if not isinstance(v, str) and (k, v) != ("split", None)}:
            raise UsageError(f"reset takes names as its options, got {wrong}")
        if "task" in options:
            return self._named(options)
        groups = (options["group"],) if "group" in options else self.groups
        return self.tasks.draw(key, split=options.get("split", self.split), groups=groups)

    def _named(self, options: Mapping[str, Any]) -> Task:
        """The task of that id. Raises UsageError if the options also name another group or split."""
        task = self.tasks.get(options["task"])
        for name, actual in (("group", task.group), ("split", task.split)):
            if options.get(name, actual) not in (actual, None):
                raise UsageError(f"{task.id!r} is of the {name} {actual!r}, not {options[name]!r}: leave it out")
        return task

    def _command(self, action: str) -> str:
        self._check_length(action)
        command = self.grammar.parse(action).command
        if command not in self.action_space:  # a JSON escape can produce a lone surrogate, which a reply would echo
            raise InvalidAction("The action holds a character that is not valid Unicode text.")
        return command

    def _check_length(self, action: str) -> None:
        if len(action) > MAX_ACTION_CHARS:
            raise InvalidAction(f"The action is too long (at most {MAX_ACTION_CHARS} characters).")

    def _finish_step(
        self, transition: Transition, invalid: str | None
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, success, details, truncated = transition
        self._observation = observation
        self._score += reward
        if terminated:
            self._success = self._score >= 1.0 - 1e-9 if success is None else success
            self._stop = StopReason.SUCCESS if self._success else StopReason.FAILURE
        elif truncated:
            self._stop = StopReason.TURN_LIMIT
        info = self._info(details)
        info["invalid_action"] = invalid
        return observation, reward, terminated, truncated and not terminated, info

    def _failed_reset(self, error: EnvError) -> tuple[str, dict[str, Any]]:
        self._stop, self._observation = StopReason.ENV_ERROR, ENV_FAILED
        return ENV_FAILED, self._info({"error": describe(error)})

    def _failed_step(self, error: EnvError) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._stop, self._observation = StopReason.ENV_ERROR, ENV_FAILED
        return ENV_FAILED, 0.0, False, True, self._info({"invalid_action": None, "error": describe(error)})

    def _info(self, details: Mapping[str, Any]) -> dict[str, Any]:
        assert self.task is not None
        # A failed environment has no state, and asking for it might fail again.
        state = TextEnv._state(self) if self._stop is StopReason.ENV_ERROR else self._state()
        key = hashlib.blake2b(f"{self.task.id}\n{state}".encode("utf-8", "surrogatepass"), digest_size=8)
        return {
            "task_id": self.task.id,
            "seed": self.episode_seed,
            "turn": self._turn,
            "score": self._score,
            "success": self._success,
            "stop_reason": None if self._stop is None else self._stop.value,
            "state_key": key.hexdigest(),
            **details,
        }


def text_env(env: gym.Env[str, str]) -> TextEnv:
    """The `TextEnv` under any wrappers. Raises UsageError for any other environment."""
    base = env.unwrapped
    if not isinstance(base, TextEnv):
        raise UsageError(f"expected an environment of this suite (a TextEnv), got {type(base).__name__}")
    return base


def describe(error: BaseException) -> str:
    """The text of an error for `info["error"]`."""
    return f"{type(error).__name__}: {error}"

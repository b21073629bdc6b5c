"""`TextEnv`: what every scenario is. Text in, text out, and one convention for rewards, ends and failures."""

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

from agentgym_envs.errors import EnvError, EpisodeOver, InvalidAction, NoOracle, UsageError
from agentgym_envs.grammar import GRAMMARS, ActionGrammar, make_grammar
from agentgym_envs.spaces import Utf8Text
from agentgym_envs.task import Task, TaskSet, check_selection

MAX_ACTION_CHARS = 16_384
MAX_OBSERVATION_CHARS = 262_144
ENV_FAILED = "The environment failed. This episode is over."
TRANSPORT_OPTIONS = frozenset({"render_mode", "base_url", "token", "dialect", "timeout", "connect_timeout"})
"""Arguments of `gym.make` that say how an environment is reached or shown; no record of an episode holds them."""
RESET_OPTIONS = frozenset({"task", "split", "group"})


class StopReason(StrEnum):
    """Why an episode ended."""

    SUCCESS = "success"
    """The goal was reached."""
    FAILURE = "failure"
    """The environment ended the episode short of the goal."""
    TURN_LIMIT = "turn_limit"
    """The limit of turns was reached, or the environment's own limit of steps."""
    TOKEN_LIMIT = "token_limit"
    """The token budget of the trajectory was used up."""
    ENV_ERROR = "env_error"
    """The machine failed: such an episode says nothing about the policy and is never trained on."""
    CLOSED = "closed"
    """The environment was closed under the episode."""


class Transition(NamedTuple):
    """What a command did. `reward` is what the score gained; the rewards of an episode lie in [0, 1] in sum.

    `success` says whether a terminated episode reached its goal; by default, whether the score is 1.
    `info` is JSON and is merged into the step's info. `truncated` says that the environment's own limit of steps cut
    the episode short, which is told as `turn_limit`.
    """

    observation: str
    reward: float = 0.0
    terminated: bool = False
    success: bool | None = None
    info: Mapping[str, Any] = {}
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An episode up to now: enough to bring any environment of the same configuration to the same state.

    `kept` is what a scenario that can copy its state keeps besides, so that nothing need be played again. It stays in
    this process: a pickled snapshot goes without it.
    """

    task_id: str
    seed: int
    actions: tuple[str, ...] = field(default=())
    kept: Any = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Snapshot, (self.task_id, self.seed, self.actions)


class TextEnv(gym.Env[str, str], ABC):
    """Base class of every scenario. A scenario writes `_begin` and `_act`, and `_state`, `_plan`, `_close` if it can.

    Observations and actions are strings. What the policy gets wrong is answered in text; what the caller gets wrong
    is raised; what the machine gets wrong (`EnvError` out of `_begin` or `_act`) ends the episode as `env_error`.

    `info` of every reset and step holds `task_id`, `seed` (that of this episode, so that
    `reset(seed=info["seed"], options={"task": info["task_id"]})` plays it again), `turn` (0 at reset), `score` (in
    [0, 1], so far), `success`, `stop_reason` (None while the episode runs, else a `StopReason`) and `state_key` (equal
    for equal states); on a step also `invalid_action` (None, or why); on `env_error` also `error`.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (Gymnasium's name and type)
    blocking: bool = False
    """Whether a step waits for something outside this process, so that it is given a thread of its own."""
    heavy: ClassVar[bool] = False
    """Whether a step burns CPU for long or the environment owns a process, so that servers keep it in a worker."""
    native_async: ClassVar[bool] = False
    """Whether `areset` and `astep` wait without a thread, so that one event loop carries many episodes."""
    remote_options: ClassVar[frozenset[str]] = frozenset({"grammar", "split", "groups", "instructions", "render_mode"})
    """The arguments that a stranger may give when the environment is served; never a path or an address."""
    grammars: Mapping[str, Callable[[], ActionGrammar]] = GRAMMARS
    """The grammars by name, with those that the scenario words in its own way."""

    tasks: TaskSet
    rules: str = ""
    """What the scenario's world is and which commands it knows, for the system prompt."""

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """`split` and `groups` are what a reset without a task draws from; `split=None` draws from all.

        `instructions` replaces the text meant for the system prompt; "" is none at all.
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise UsageError(f"render_mode must be one of {self.metadata['render_modes']} or None, got {render_mode!r}")
        check_selection(self.tasks, split, groups)
        self.grammar = make_grammar(grammar, self.grammars)
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
        """Whether a server keeps environments of these arguments in a worker process."""
        return cls.heavy or cls.blocking

    def prepare(self) -> None:
        """Load what the first episode would wait for. Servers do so when they make an environment. Raises EnvError."""

    @property
    def instructions(self) -> str:
        """What a system prompt must tell the model: the rules of the world and the form of an answer."""
        if self._instructions is not None:
            return self._instructions
        return f"{self.rules}\n\n{self.grammar.instructions}".strip()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode.

        Args:
            seed: decides the task, unless `options` name one, and every random choice of the episode. Without it
                the episode takes the next seed of the environment's own generator.
            options: `{"task": id}`, or `{"split": name, "group": name}` to draw from.

        Raises:
            UsageError, UnknownTask: options that cannot be.
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
        """`reset` that lets the event loop go on meanwhile, if the environment is `native_async`."""
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
            EpisodeOver: no episode runs.
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
        """`step` that lets the event loop go on meanwhile, if the environment is `native_async`."""
        self._take(action)
        try:
            return self._finish_step(await self._perform_async(action), None)
        except InvalidAction as error:
            return self._finish_step(Transition(str(error)), str(error))
        except EnvError as error:
            return self._failed_step(error)

    def oracle(self) -> Iterator[str]:
        """The commands (bare, not yet in the grammar) that solve the current state. Raises NoOracle."""
        if self._stop is not None:
            raise NoOracle("no episode runs, so there is nothing to solve; call reset() first")
        return iter(self._plan())

    def random_command(self, rng: random.Random) -> str:
        """A random command (bare), as sensible as is cheap; by default a random text."""
        return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=8))

    def snapshot(self) -> Snapshot:
        """The running episode as task, seed and actions. Raises EpisodeOver if none was begun."""
        if self.task is None:
            raise EpisodeOver("no episode was begun, so there is nothing to save; call reset() first")
        state = None if self._stop in (StopReason.ENV_ERROR, StopReason.CLOSED) else self._save()
        kept = None if state is None else (type(self), self.task, self._progress(), state)
        return Snapshot(self.task.id, self.episode_seed, tuple(self._actions), kept)

    def restore(self, snapshot: Snapshot) -> str:
        """Bring the environment to a snapshot's state; returns the last observation.

        It is played again, unless the environment can copy its state and the snapshot is of this process. Raises
        UsageError for what is none.
        """
        if not isinstance(snapshot, Snapshot):
            raise UsageError(f"restore takes what snapshot() gave, got {snapshot!r:.80}")
        if snapshot.kept is not None:
            return self._restore_copy(snapshot)
        observation, _ = self.reset(seed=snapshot.seed, options={"task": snapshot.task_id})
        for action in snapshot.actions:
            observation, *_ = self.step(action)
        return observation

    def status(self) -> dict[str, Any]:
        """How the episode stands (JSON): task_id, seed, turn, score, success, stop_reason ("closed" before any)."""
        return {
            "task_id": None if self.task is None else self.task.id,
            "seed": self.episode_seed,
            "turn": self._turn,
            "score": self._score,
            "success": self._success,
            "stop_reason": None if self._stop is None else self._stop.value,
        }

    def render(self) -> Any:
        """The state as text if the render mode is "ansi"; None without one. A scenario may know further modes."""
        return self._draw() if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Free everything; closing twice is fine."""
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
        """Carry out a command. Raises InvalidAction with the reply if it is none, EnvError if the machine fails."""

    async def _begin_async(self, task: Task, rng: np.random.Generator) -> str:
        """`_begin` for an environment that is `native_async`."""
        return self._begin(task, rng)

    async def _act_async(self, command: str) -> Transition:
        """`_act` for an environment that is `native_async`."""
        return self._act(command)

    def _perform(self, action: str) -> Transition:
        """Parse an action and carry out its command. Environments with typed actions override it."""
        return self._act(self._command(action))

    async def _perform_async(self, action: str) -> Transition:
        """`_perform` for an environment that is `native_async`."""
        return await self._act_async(self._command(action))

    def _save(self) -> Any:
        """A copy of the scenario's state for `_load`, of this or another environment of the same options; or None.

        Nothing may change it afterwards, and it may be loaded more than once.
        """
        return None

    def _load(self, state: Any) -> None:
        """Go to a state that `_save` gave. Raises UsageError, with nothing changed, if its options were others."""
        raise NotImplementedError

    def _state(self) -> str:
        """A canonical text of the state, hashed into `state_key`; by default all that was done so far."""
        return "\n".join(self._actions)

    def _plan(self) -> Sequence[str]:
        """The commands that solve the current state."""
        raise NoOracle(f"{type(self).__name__} has no oracle")

    def _details(self) -> Mapping[str, Any]:
        """The scenario's own keys in the info of a reset (JSON)."""
        return {}

    def _draw(self) -> str:
        return self._observation

    def _close(self) -> None:
        """Free what the scenario holds; called once."""

    def _prepare(self, seed: int | None, options: Mapping[str, Any] | None) -> tuple[Task, np.random.Generator]:
        """Choose the task of a new episode and forget the last one."""
        episode_seed = self._seed_episode(seed)
        rng = np.random.Generator(np.random.PCG64(episode_seed))
        task = self._choose(options or {}, int(rng.integers(2**63)))
        self._start(task, episode_seed)
        return task, rng

    def _seed_episode(self, seed: int | None) -> int:
        gym.Env.reset(self, seed=seed)
        if self._closed:
            raise EpisodeOver("this environment is closed; make a new one")
        return int(self.np_random.integers(2**31)) if seed is None else seed

    def _start(self, task: Task, episode_seed: int) -> None:
        self.task, self.episode_seed = task, episode_seed
        self._turn, self._score, self._success, self._stop = 0, 0.0, False, None
        self._actions = []

    def _progress(self) -> tuple[float, bool, StopReason | None, str]:
        return self._score, self._success, self._stop, self._observation

    def _restore_copy(self, snapshot: Snapshot) -> str:
        kind, task, progress, state = snapshot.kept
        if kind is not type(self):
            raise UsageError(f"the snapshot is of a {kind.__name__}, this environment is a {type(self).__name__}")
        self._load(state)
        self._start(task, self._seed_episode(snapshot.seed))
        self._actions, self._turn = list(snapshot.actions), len(snapshot.actions)
        self._score, self._success, self._stop, self._observation = progress
        return self._observation

    def _take(self, action: str) -> None:
        """Note an action down. Raises EpisodeOver or UsageError if none can be taken, or not this one."""
        if self._stop is not None:
            raise EpisodeOver(f"no episode runs (the last one ended: {self._stop}); call reset() first")
        if not isinstance(action, str):
            raise UsageError(f"an action is a string, got {type(action).__name__}: {action!r:.80}")
        self._turn += 1
        self._actions.append(action[: MAX_ACTION_CHARS + 1])  # of one that is too long, enough to be so when replayed

    def _choose(self, options: Mapping[str, Any], key: int) -> Task:
        if not isinstance(options, Mapping):
            raise UsageError(f"the options of reset are a dict, got {options!r:.80}")
        if not options:
            return self.tasks.draw(key, split=self.split, groups=self.groups)
        if unknown := sorted(set(options) - RESET_OPTIONS):
            raise UsageError(f"reset knows the options {sorted(RESET_OPTIONS)}, not {unknown}")
        if wrong := {k: v for k, v in options.items() if not isinstance(v, str) and (k, v) != ("split", None)}:
            raise UsageError(f"reset takes names as its options, got {wrong}")
        if "task" in options:
            return self._named(options)
        groups = (options["group"],) if "group" in options else self.groups
        return self.tasks.draw(key, split=options.get("split", self.split), groups=groups)

    def _named(self, options: Mapping[str, Any]) -> Task:
        """The task that is named. Raises UsageError if it is not of the group or split that is named besides."""
        task = self.tasks.get(options["task"])
        for name, actual in (("group", task.group), ("split", task.split)):
            if options.get(name, actual) not in (actual, None):
                raise UsageError(
                    f"{task.id!r} is of the {name} {actual!r}, not {options[name]!r}: leave the {name} out"
                )
        return task

    def _command(self, action: str) -> str:
        self._check_length(action)
        command = self.grammar.parse(action).command
        if command not in self.action_space:  # a JSON escape can smuggle a lone surrogate in, and a reply would echo it
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
        # A machine that failed has no state to tell of, and asking it might fail again.
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
    """The `TextEnv` under any wrappers. Raises UsageError if there is none."""
    base = env.unwrapped
    if not isinstance(base, TextEnv):
        raise UsageError(f"expected an environment of this suite (a TextEnv), got {type(base).__name__}")
    return base


def lost_task(task_id: object) -> Task:
    """Stands for the task of an episode that failed before it began, if nobody can look the task up now."""
    return Task("unknown" if task_id is None else str(task_id), "train", "unknown", ENV_FAILED)


def describe(error: BaseException) -> str:
    """An error as `info["error"]` tells it."""
    return f"{type(error).__name__}: {error}"

"""`RemoteEnv`: an environment whose world is in another process or on another machine, as if it were here."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.core import Snapshot, StopReason, TextEnv, Transition, lost_task
from agentgym_envs.errors import EnvError, NoOracle, SessionLost, UnknownTask, UsageError
from agentgym_envs.grammar import GRAMMARS, ActionGrammar
from agentgym_envs.hosting.connection import Connection, EnvProvider, PendingCall, RemoteSession
from agentgym_envs.hosting.pictures import picture_from_json
from agentgym_envs.hosting.session_host import rng_to_json, set_rng
from agentgym_envs.registration import env_class
from agentgym_envs.task import Split, Task, TaskSet

ResetResult = tuple[str, dict[str, Any]]
StepResult = tuple[str, float, bool, bool, dict[str, Any]]


class Request(NamedTuple):
    """A reset or a step that is asked of an environment."""

    method: Literal["reset", "step"]
    action: str = ""
    seed: int | None = None
    options: dict[str, Any] | None = None


class RemoteEnv(TextEnv):
    """Stands for an environment elsewhere: same observations, rewards, infos and exceptions.

    A failure of the way there or of the place ends the running episode as `env_error`; the next reset finds another
    place. Seeds are drawn here, so that the sequence of episodes is that of a local environment.
    """

    blocking = True
    native_async = True

    def __init__(self, env_id: str, provider: EnvProvider, options: Mapping[str, Any]) -> None:
        """`options` are those of the environment; raises what making it here would raise, and EnvError."""
        self._env_id, self._opener, self._options = env_id, provider, dict(options)
        self._opened: RemoteSession | None = None
        self._age, self._closed = 0, False
        self._open()
        what = self._place.description
        self.rules, self.grammars = what["rules"], _grammars_of(env_id)
        self.metadata = TextEnv.metadata | {"render_modes": what["render_modes"]}
        self.tasks = TwinTasks(self._ask_anew, what["tasks"])
        super().__init__(
            grammar=self._options.get("grammar", "bare"),
            split=what["split"],
            groups=what["groups"],
            instructions=what["instructions"],
            render_mode=self._options.get("render_mode"),
        )
        # What a record of an episode says of its environment. `gym.make` puts its own in this place.
        self.spec = EnvSpec(env_id.rpartition(":")[2], kwargs=dict(options))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """Begin an episode there; see `TextEnv.reset`."""
        arguments = self._reset_arguments(seed, options)
        try:
            return self._begun(arguments, self._ask_anew("reset", arguments))
        except EnvError as error:
            return self._lost_reset(arguments, error)

    def step(self, action: str) -> StepResult:
        """Take an action there; see `TextEnv.step`."""
        self._take(action)
        try:
            return self._stepped(self._ask("step", {"action": self._actions[-1]}))
        except EnvError as error:
            return self._failed_step(error)

    async def areset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> ResetResult:
        """`reset` without blocking the event loop."""
        result: ResetResult = await self._await(Request("reset", seed=seed, options=options))
        return result

    async def astep(self, action: str) -> StepResult:
        """`step` without blocking the event loop."""
        result: StepResult = await self._await(Request("step", action))
        return result

    def posted(self, ask: Request, done: Callable[[Any], None]) -> tuple[Connection, PendingCall] | None:
        """The call that `ask` comes to, and where to post it, together with those of other twins.

        `done` takes what `reset` or `step` would return or raise; None if it will hear so without a call being posted.
        Raises what the caller got wrong.
        """
        if ask.method == "reset":
            return self._posted_reset(self._reset_arguments(ask.seed, ask.options), done)
        self._take(ask.action)
        place = self._opened
        if place is None:
            done(self._failed_step(SessionLost("the session was lost")))
            return None
        arguments = {"action": self._actions[-1]}
        call = PendingCall(place.session, "step", arguments, lambda reply: done(self._settle(place, reply)))
        return place.connection, call

    def abandon(self) -> None:
        """Give up a call that hangs: the session is freed by force, and the next reset opens another."""
        self._age += 1
        opened, self._opened = self._opened, None
        if opened:
            opened.connection.abandon(opened.session)

    def oracle(self) -> Iterator[str]:
        """See `TextEnv.oracle`."""
        if self._stop is not None:
            raise NoOracle("no episode runs, so there is nothing to solve; call reset() first")
        return iter(self._ask("oracle", {}))

    def random_command(self, rng: random.Random) -> str:
        """See `TextEnv.random_command`; the state of `rng` goes there and comes back."""
        reply = self._ask("random_command", {"rng": rng_to_json(rng)})
        set_rng(rng, reply["rng"])
        return str(reply["command"])

    def restore(self, snapshot: Snapshot) -> str:
        """See `TextEnv.restore`; the actions are played again there, in one call."""
        self._seed_episode(snapshot.seed)  # a restore is a reset
        return self._replay(snapshot)

    def _replay(self, snapshot: Snapshot) -> str:
        arguments = {"task_id": snapshot.task_id, "seed": snapshot.seed, "actions": list(snapshot.actions)}
        reply = self._ask_anew("restore", arguments)
        self._start(self.tasks.get(snapshot.task_id), snapshot.seed)
        self._actions = list(snapshot.actions)
        self._note(reply["observation"], reply)
        return self._observation

    def render(self) -> Any:
        """See `TextEnv.render`."""
        return None if self.render_mode is None else picture_from_json(self._ask_anew("render", {}))

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state["_opened"] = None
        state["tasks"] = None
        state["_reopen"] = self.snapshot() if self.task is not None and self._stop is None else None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        snapshot = state.pop("_reopen")
        self.__dict__.update(state)
        if self._closed:
            return
        self._open()
        self.tasks = TwinTasks(self._ask_anew, self._place.description["tasks"])
        if snapshot is not None:
            self._replay(snapshot)

    @property
    def _place(self) -> RemoteSession:
        if self._opened is None:
            raise SessionLost("the session was lost; call reset() to begin on another")
        return self._opened

    def _open(self) -> None:
        age = self._age
        opened = self._opener.open(self._env_id, self._options)
        if self._closed or age != self._age:  # while it was under way; nobody would ever close the session
            opened.connection.close_session(opened.session)
            raise _given_up()
        self._opened = opened

    def _ask(self, method: str, arguments: Mapping[str, Any]) -> Any:
        place = self._place
        try:
            return place.connection.call(place.session, method, arguments)
        except SessionLost:
            if self._opened is place:
                self._opened = None
            raise

    def _ask_anew(self, method: str, arguments: Mapping[str, Any]) -> Any:
        """Ask where a lost session may be replaced: nothing of the episode is needed."""
        if self._opened is not None:
            try:
                return self._ask(method, arguments)
            except SessionLost:
                pass
        self._open()
        return self._ask(method, arguments)

    def _reset_arguments(self, seed: int | None, options: Mapping[str, Any] | None) -> dict[str, Any]:
        episode_seed = self._seed_episode(seed)
        if not isinstance(options or {}, Mapping):
            raise UsageError(f"the options of reset are a dict, got {options!r:.80}")
        chosen = dict(options or {})
        try:
            json.dumps(chosen)
        except (TypeError, ValueError) as error:
            raise UsageError(f"the options of reset must be JSON, got {chosen!r:.200}: {error}") from None
        return {"seed": int(episode_seed), "options": chosen}

    def _begun(self, arguments: Mapping[str, Any], reply: Mapping[str, Any]) -> ResetResult:
        self._start(self._known(reply["task"]), arguments["seed"])
        self._note(reply["observation"], reply["info"])
        return self._observation, reply["info"]

    def _known(self, row: Mapping[str, Any]) -> Task:
        task = Task(**row)
        if isinstance(self.tasks, TwinTasks):
            self.tasks.remember(task)
        return task

    def _stepped(self, reply: Mapping[str, Any]) -> StepResult:
        info = reply["info"]
        self._note(reply["observation"], info)
        return self._observation, reply["reward"], reply["terminated"], reply["truncated"], info

    def _note(self, observation: str, status: Mapping[str, Any]) -> None:
        self._observation = observation
        self._turn, self._score, self._success = status["turn"], status["score"], status["success"]
        stop = status["stop_reason"]
        self._stop = None if stop is None else StopReason(stop)

    def _lost_reset(self, arguments: Mapping[str, Any], error: EnvError) -> ResetResult:
        """The episode that could not begin, of a task that nobody can look up now."""
        self._start(lost_task(arguments["options"].get("task")), arguments["seed"])
        return self._failed_reset(error)

    def _settle(self, place: RemoteSession, reply: Any) -> StepResult | Exception:
        """What `step` returns or raises, from what the connection replied."""
        if self._opened is not place:
            return _given_up()
        if isinstance(reply, SessionLost):
            self._opened = None
        if isinstance(reply, EnvError):
            return self._failed_step(reply)
        return reply if isinstance(reply, Exception) else self._stepped(reply)

    def _posted_reset(
        self, arguments: dict[str, Any], done: Callable[[Any], None]
    ) -> tuple[Connection, PendingCall] | None:
        place = self._opened
        if place is None:
            self._reset_aside(arguments, done)
            return None

        def settle(reply: Any) -> None:
            if self._opened is not place:
                done(_given_up())
            elif isinstance(reply, SessionLost):
                self._opened = None
                self._reset_aside(arguments, done)
            elif isinstance(reply, EnvError):
                done(self._lost_reset(arguments, reply))
            else:
                done(reply if isinstance(reply, Exception) else self._begun(arguments, reply))

        return place.connection, PendingCall(place.session, "reset", arguments, settle)

    def _reset_aside(self, arguments: Mapping[str, Any], done: Callable[[Any], None]) -> None:
        """Reset in a thread, because opening a session takes long. One that was given up leaves the twin alone."""
        age = self._age

        def target() -> None:
            try:
                reply = self._ask_anew("reset", arguments)
                done(self._begun(arguments, reply) if age == self._age else _given_up())
            except EnvError as error:
                done(self._lost_reset(arguments, error) if age == self._age else error)
            except Exception as error:  # else nobody would ever hear of it
                done(error)

        threading.Thread(target=target, daemon=True).start()

    async def _await(self, ask: Request) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def done(result: Any) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_set, future, result)

        if posted := self.posted(ask, done):
            connection, call = posted
            connection.post([call])
        result = await future
        if isinstance(result, Exception):
            raise result
        return result

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        raise AssertionError("a twin resets elsewhere")

    def _act(self, command: str) -> Transition:
        raise AssertionError("a twin acts elsewhere")

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened:
            opened.connection.close_session(opened.session)


class TwinTasks(TaskSet):
    """The task set of an environment elsewhere; tasks that were seen once are kept."""

    def __init__(self, ask: Callable[[str, Mapping[str, Any]], Any], what: Mapping[str, Any]) -> None:
        """`ask` carries out a method there; `what` is the part `tasks` of `describe_env`."""
        self._ask = ask
        self.name, self.version = str(what["name"]), int(what["version"])
        self._groups, self._digest = tuple(what["groups"]), str(what["digest"])
        self._counts = what.get("counts")  # a server of an earlier version does not tell them
        self._seen: dict[str, Task] = {}

    def get(self, task_id: str) -> Task:
        """The task of that id. Raises UnknownTask."""
        if not isinstance(task_id, str):
            raise UnknownTask(f"there is no task {task_id!r} in {self.name!r}; a task's name is a string")
        known = self._seen.get(task_id)
        return known or self.remember(Task(**self._ask("task", {"id": task_id})))

    def draw(self, key: int, *, split: str | None = None, groups: Sequence[str] | None = None) -> Task:
        """The task that a number stands for."""
        return self.remember(Task(**self._ask("draw", {"key": key, "split": split, "groups": _listed(groups)})))

    def sample(
        self, count: int | None = None, *, split: str | None = None, groups: Sequence[str] | None = None, seed: int = 0
    ) -> list[Task]:
        """Distinct tasks, chosen by `seed`."""
        arguments = {"count": count, "split": split, "groups": _listed(groups), "seed": seed}
        return [self.remember(Task(**row)) for row in self._ask("sample", arguments)]

    def remember(self, task: Task) -> Task:
        """Keep a task; returns it. Only the newest thousands are kept, for some sets have no end."""
        if len(self._seen) >= _KEPT_TASKS:
            self._seen.pop(next(iter(self._seen)))
        self._seen[task.id] = task
        return task

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the groups."""
        return self._groups

    def counts(self) -> dict[str, dict[Split, int]] | None:
        """See `TaskSet.counts`; None as well where the other end does not tell."""
        return None if self._counts is None else {group: dict(splits) for group, splits in self._counts.items()}

    def __len__(self) -> int:
        if self._counts is None:
            raise TypeError(f"nobody knows how many tasks {self.name!r} has; most likely there is no end of them")
        return sum(sum(splits.values()) for splits in self._counts.values())

    def __bool__(self) -> bool:
        return True  # and not the length, which a set without end has not

    def __iter__(self) -> Iterator[Task]:
        return iter(self.sample())

    @property
    def digest(self) -> str:
        """SHA-256 over everything that decides what the tasks are."""
        return self._digest


_KEPT_TASKS = 10_000


def _grammars_of(env_id: str) -> Mapping[str, Callable[[], ActionGrammar]]:
    """How an environment words its grammars; the common ones if only the server knows it."""
    try:
        return env_class(env_id).grammars
    except (gym.error.Error, ImportError, UsageError):
        return GRAMMARS


def _given_up() -> SessionLost:
    return SessionLost("this call was given up")


def _set(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():  # nobody waits for a call that was given up
        future.set_result(result)


def _listed(groups: Sequence[str] | None) -> list[str] | None:
    return None if groups is None else list(groups)

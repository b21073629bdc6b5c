"""An environment on a server of AgentGym itself, or on any that speaks one of its five protocols.

    env = gym.make("AgentGym/TextCraft-v0", base_url="http://127.0.0.1:36001", dialect="agentgym")

AgentGym's servers tell errors with status 200 and have five scales of scores. Here every failure is an `EnvError`, so
that an episode ends as `env_error` and never as a reward of 0, and a reward is what a score in [0, 1] gained.
"""

from __future__ import annotations

import itertools
import logging
import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import httpx
import numpy as np

from agentgym_envs.core import TextEnv, Transition
from agentgym_envs.errors import EnvError, InvalidAction, ServerFull, SessionLost, UsageError
from agentgym_envs.grammar import GRAMMARS, ActionGrammar
from agentgym_envs.http.dialects.agentgym import ids
from agentgym_envs.http.dialects.agentgym.tasks import IndexTasks, rows_of
from agentgym_envs.http.wire import dump
from agentgym_envs.registration import env_class
from agentgym_envs.task import Task

_log = logging.getLogger(__name__)
_CLOSE_SECONDS = 2.0
_turns = itertools.count()


class Told(NamedTuple):
    """What a step's reply says, on our scale."""

    observation: str
    score: float
    done: bool
    success: bool


class Protocol:
    """What is peculiar to one scenario: names of fields, and what its scores mean."""

    key: ClassVar[str] = "id"
    index_key: ClassVar[str] = "data_idx"
    constants: ClassVar[Mapping[str, Any]] = {}
    """What every reset sends besides."""

    def creation(self) -> dict[str, Any]:
        """The body that makes an environment."""
        return {}

    def number(self, reply: Any) -> int:
        """The number of the new environment."""
        return _whole(reply, self.key)

    def command(self, command: str) -> str:
        """A command as the server understands it."""
        return command

    def begun(self, reply: Any) -> str:
        """The first observation."""
        return _text(reply, "observation")

    def told(self, reply: Any, score: float) -> Told:
        """What a step came to, after an episode that had reached `score`. Raises InvalidAction or EnvError."""
        raise NotImplementedError


class TextCraft(Protocol):
    """The reward is 1 when the goal is crafted."""

    def told(self, reply: Any, score: float) -> Told:
        """The score is the best reward so far."""
        reward, done = _share(_amount(reply, "reward")), _flag(reply, "done")
        return Told(_text(reply, "observation"), max(score, reward), done, done and reward >= 1.0)


class BabyAI(Protocol):
    """`score` is a sum of rewards that may grow past 1 or fall below 0; the episode is over on success only."""

    def command(self, command: str) -> str:
        """The prompt of AgentGym says `pick up`, its server knows `pickup`."""
        first, _, rest = command.partition(" ")
        return f"pickup {rest[3:]}" if first.lower() == "pick" and rest.lower().startswith("up ") else command

    def told(self, reply: Any, score: float) -> Told:
        """The score, cut to [0, 1]."""
        done = _flag(reply, "done")
        return Told(_text(reply, "observation"), _share(_amount(reply, "score")), done, done)


class SciWorld(Protocol):
    """`score` is in points out of 100; -100 is a failure, which is worth 0."""

    def begun(self, reply: Any) -> str:
        """The description of the task and what is seen, as AgentGym's client joins them."""
        return f"{_text(reply, 'task_description')}\n{_text(reply, 'observation')}"

    def told(self, reply: Any, score: float) -> Told:
        """Points as a share."""
        points, done = _amount(reply, "score"), _flag(reply, "done")
        return Told(_text(reply, "observation"), _share(points / 100), done, done and points >= 100)


class SearchQA(TextCraft):
    """The reward is 1 for the right answer, which ends the episode."""

    key, index_key = "env_idx", "id"

    def creation(self) -> dict[str, Any]:
        """An environment is made with a question; any will do, since a reset follows."""
        return {"id": 0}

    def number(self, reply: Any) -> int:
        """The bare reply."""
        return _whole({self.key: reply}, self.key)

    def begun(self, reply: Any) -> str:
        """The bare reply."""
        return _text({"observation": reply}, "observation")

    def told(self, reply: Any, score: float) -> Told:
        """An invalid action is known by its reply only."""
        told = super().told(reply, score)
        if told.observation.startswith("Your previous action is invalid.") and not told.done:
            raise InvalidAction(told.observation)
        return told


class WebArena(Protocol):
    """The reward counts at the end only. What its server could not carry out has no info."""

    key, index_key = "env_idx", "idx"
    constants: ClassVar[Mapping[str, Any]] = {"seed": 0}

    def begun(self, reply: Any) -> str:
        """The observation; its server tells a failure in this place."""
        observation = _text(reply, "observation")
        if observation == "TimeoutError":
            raise EnvError("the server could not reset its environment (TimeoutError)")
        return observation

    def told(self, reply: Any, score: float) -> Told:
        """An observation without info is the text of an exception, which is as good as always a bad action's."""
        observation, done = _text(reply, "observation"), _flag(reply, "terminated")
        if _flag(reply, "truncated") and not done:
            raise EnvError("the server cut the episode")
        if _field(reply, "info") is None and not done:
            raise InvalidAction(observation)
        reward = _share(_amount(reply, "reward")) if done else score
        return Told(observation, reward, done, done and reward >= 1.0)


PROTOCOLS: dict[str, type[Protocol]] = {
    "textcraft": TextCraft,
    "babyai": BabyAI,
    "sciworld": SciWorld,
    "searchqa": SearchQA,
    "webarena": WebArena,
}


class Place(NamedTuple):
    """An environment on a server."""

    url: str
    number: int


class AgentGymEnv(TextEnv):
    """An environment behind one of AgentGym's protocols.

    A task is an index, `textcraft-agentgym/17`; its goal is known only to the server. AgentGym publishes no list of
    which indices are for training but for the questions of searchqa, so the tasks of the other scenarios are all of
    the split `test`, and `split=None` (any) is the default here. What an index means may differ between servers:
    TextCraft's depend on the order in which a machine lists a folder. An episode is decided by its index alone: the
    server takes no seed.

    A step is sent once, for a server of AgentGym would act twice on a repetition. After a failure the environment is
    given up, and the next reset makes another.
    """

    blocking = True

    def __init__(
        self,
        scenario: str,
        urls: Sequence[str],
        *,
        token: str | None = None,
        timeout: float = 120.0,
        connect_timeout: float = 10.0,
        rules: str = "",
        grammars: Mapping[str, Callable[[], ActionGrammar]] = GRAMMARS,
        split: str | None = None,
        **options: Any,
    ) -> None:
        """Make an environment on one of the servers.

        Args:
            scenario: one of `PROTOCOLS`.
            urls: addresses under which `/create` lies; taken in turns.
            token: sent as `Authorization: Bearer`, if any.
            timeout: seconds that a server may be silent.
            connect_timeout: seconds to look for a server that answers and has room.
            rules: what a system prompt says of the world.
            grammars: by name, what the grammar may be.
            split: what a reset without a task draws from; None is all.
            **options: the other arguments of `TextEnv`.

        Raises:
            UsageError: an unknown scenario, and what `TextEnv` refuses.
            EnvError: no server made an environment.
        """
        if scenario not in PROTOCOLS:
            raise UsageError(f"AgentGym has no scenario {scenario!r}; choose from {', '.join(PROTOCOLS)}")
        self.tasks, self.rules, self.grammars = IndexTasks(f"{scenario}-agentgym", rows_of(scenario)), rules, grammars
        super().__init__(split=split, **options)
        self._protocol = PROTOCOLS[scenario]()
        self._urls, self._token, self._timeout, self._connect_timeout = tuple(urls), token, timeout, connect_timeout
        self._place: Place | None = None
        self._connect()
        self._place = self._open()

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        if self._place is None:
            self._place = self._open()
        protocol = self._protocol
        body = {protocol.index_key: task.data["index"], **protocol.constants}
        try:
            return protocol.begun(self._ask("reset", body))
        except EnvError:
            self._give_up()
            raise

    def _act(self, command: str) -> Transition:
        try:
            reply = self._ask("step", {"action": self._protocol.command(command)})
            told = self._protocol.told(reply, self._score)
        except EnvError:
            self._give_up()
            raise
        return Transition(told.observation, told.score - self._score, told.done, told.success)

    def _close(self) -> None:
        self._give_up()
        self._http.close()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_http"]
        state["_place"] = None
        state["_again"] = self.snapshot() if self.task is not None and self._stop is None else None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        snapshot = state.pop("_again")
        self.__dict__.update(state)
        self._connect()
        if snapshot is not None:
            self.restore(snapshot)

    def _connect(self) -> None:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        timeout = httpx.Timeout(self._timeout, connect=5.0)
        self._http = httpx.Client(headers=headers, timeout=timeout, verify=_ssl_context(), trust_env=False)
        weakref.finalize(self, self._http.close)

    def _open(self) -> Place:
        """A new environment on the first server that makes one. Raises EnvError."""
        end, start = time.monotonic() + self._connect_timeout, next(_turns)
        urls = [self._urls[(start + place) % len(self._urls)].rstrip("/") for place in range(len(self._urls))]
        while True:
            for url in urls:
                try:
                    return Place(url, self._protocol.number(self._post(url, "create", self._protocol.creation())))
                except (SessionLost, ServerFull) as error:
                    problem = error
            if time.monotonic() >= end:
                raise problem
            time.sleep(0.25)

    def _ask(self, path: str, body: Mapping[str, Any]) -> Any:
        assert self._place is not None
        return self._post(self._place.url, path, {self._protocol.key: self._place.number, **body})

    def _give_up(self) -> None:
        """Leave the environment to its server, and tell it so if it listens."""
        place, self._place = self._place, None
        if place is None:
            return
        try:
            self._post(place.url, "close", {self._protocol.key: place.number}, timeout=_CLOSE_SECONDS)
        except EnvError as error:
            _log.debug("an environment could not be closed: %s", error)

    def _post(self, url: str, path: str, body: Mapping[str, Any], **how: Any) -> Any:
        """The reply. Raises EnvError for what is none: SessionLost if nothing came, ServerFull if there is no room."""
        where = f"{url}/{path}"
        try:
            response = self._http.post(where, content=dump(body), **how)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SessionLost(f"{where} cannot be reached ({type(error).__name__}: {error})") from None
        if response.status_code != 200:
            kind = ServerFull if response.status_code in (429, 503) else EnvError
            raise kind(f"{where} answered HTTP {response.status_code}: {response.text[:200]}")
        try:
            reply = response.json()
        except ValueError:
            raise EnvError(f"{where} answered without JSON: {response.text[:200]}") from None
        if isinstance(reply, dict) and "error" in reply:
            raise EnvError(f"{where}: {reply['error']}")
        return reply


def agentgym_env(env_id: str, urls: Sequence[str], **options: Any) -> AgentGymEnv:
    """What `gym.make(env_id, base_url=urls, dialect="agentgym")` makes; see `AgentGymEnv` for the options.

    Raises UsageError for an id of a scenario that AgentGym has not.
    """
    scenario = ids.scenario_of(env_id)
    if scenario is None:
        known = ", ".join(f"{prefix}-..." for prefix in ids.PREFIXES.values())
        raise UsageError(f"AgentGym has no {env_id!r}; it has {known}")
    made = env_class(env_id)
    return AgentGymEnv(scenario, urls, rules=made.rules, grammars=made.grammars, **options)


@lru_cache(maxsize=1)
def _ssl_context() -> Any:
    """Shared, for it takes longer to make than everything else here."""
    return httpx.create_ssl_context()


def _share(score: float) -> float:
    return min(1.0, max(0.0, score))


def _field(reply: Any, name: str) -> Any:
    if not isinstance(reply, dict) or name not in reply:
        raise EnvError(f"the reply of the server has no {name!r}: {str(reply)[:200]}")
    return reply[name]


def _text(reply: Any, name: str) -> str:
    value = _field(reply, name)
    if not isinstance(value, str):
        raise EnvError(f"the server's {name!r} is not a text: {str(value)[:200]}")
    return value


def _flag(reply: Any, name: str) -> bool:
    value = _field(reply, name)
    if not isinstance(value, bool):
        raise EnvError(f"the server's {name!r} is neither true nor false: {str(value)[:200]}")
    return value


def _amount(reply: Any, name: str) -> float:
    value = _field(reply, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise EnvError(f"the server's {name!r} is not a number: {str(value)[:200]}")
    return float(value)


def _whole(reply: Any, name: str) -> int:
    value = _field(reply, name)
    if type(value) is not int:
        raise EnvError(f"the server's {name!r} is not a whole number: {str(value)[:200]}")
    return value

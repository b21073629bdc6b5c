"""Environments on a server of AgentGym itself, or on any server of one of its five protocols.

    env = gym.make("AgentGym/TextCraft-v0", base_url="http://127.0.0.1:36001", dialect="agentgym")

AgentGym's servers report errors with status 200 and use five different scales of scores. Here every failure is an
`EnvError`, so it ends the episode as `env_error` and never becomes a reward of 0. A reward is the gain of a score in
[0, 1].
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
from agentgym_envs.http.dialects.agentgym.tasks import IndexTasks, index_groups
from agentgym_envs.http.unix_socket import UNIX, socket_path
from agentgym_envs.http.wire import dump
from agentgym_envs.registration import env_class
from agentgym_envs.task import Task

_log = logging.getLogger(__name__)
_CLOSE_SECONDS = 2.0
_turns = itertools.count()


class ScoredReply(NamedTuple):
    """The reply to a step, with the score on our scale."""

    observation: str
    score: float
    done: bool
    success: bool


class ScenarioClient:
    """The differences of one scenario's protocol: its field names and the meaning of its scores."""

    key: ClassVar[str] = "id"
    index_key: ClassVar[str] = "data_idx"
    reset_fields: ClassVar[Mapping[str, Any]] = {}
    """Additional fields of every reset."""

    def creation_body(self) -> dict[str, Any]:
        """The body that makes an environment."""
        return {}

    def number(self, reply: Any) -> int:
        """The number of the new environment."""
        return _whole(reply, self.key)

    def command(self, command: str) -> str:
        """A command in the form that the server expects."""
        return command

    def first_observation(self, reply: Any) -> str:
        """The first observation."""
        return _text(reply, "observation")

    def read_step(self, reply: Any, score: float) -> ScoredReply:
        """Parse the reply to a step; `score` is the one before the step. Raises InvalidAction or EnvError."""
        raise NotImplementedError


class TextCraftClient(ScenarioClient):
    """The reward is 1 when the goal is crafted."""

    def read_step(self, reply: Any, score: float) -> ScoredReply:
        """Parse the reply to a step; the score is the best reward so far."""
        reward, done = _share(_amount(reply, "reward")), _flag(reply, "done")
        return ScoredReply(_text(reply, "observation"), max(score, reward), done, done and reward >= 1.0)


class BabyAIClient(ScenarioClient):
    """`score` is a sum of rewards that may exceed 1 or fall below 0; an episode ends only by success."""

    def command(self, command: str) -> str:
        """Replace `pick up` of AgentGym's prompt by `pickup`, which its server expects."""
        first, _, rest = command.partition(" ")
        return f"pickup {rest[3:]}" if first.lower() == "pick" and rest.lower().startswith("up ") else command

    def read_step(self, reply: Any, score: float) -> ScoredReply:
        """Parse the reply to a step; the score is clipped to [0, 1]."""
        done = _flag(reply, "done")
        return ScoredReply(_text(reply, "observation"), _share(_amount(reply, "score")), done, done)


class SciWorldClient(ScenarioClient):
    """`score` is in points out of 100; -100 is a failure and gives 0."""

    def first_observation(self, reply: Any) -> str:
        """The description of the task and the observation, joined as in AgentGym's client."""
        return f"{_text(reply, 'task_description')}\n{_text(reply, 'observation')}"

    def read_step(self, reply: Any, score: float) -> ScoredReply:
        """Parse the reply to a step; the score is the points divided by 100."""
        points, done = _amount(reply, "score"), _flag(reply, "done")
        return ScoredReply(_text(reply, "observation"), _share(points / 100), done, done and points >= 100)


class SearchQAClient(TextCraftClient):
    """The reward is 1 for the right answer, which ends the episode."""

    key, index_key = "env_idx", "id"

    def creation_body(self) -> dict[str, Any]:
        """The body with any question, since a reset follows."""
        return {"id": 0}

    def number(self, reply: Any) -> int:
        """The reply itself."""
        return _whole({self.key: reply}, self.key)

    def first_observation(self, reply: Any) -> str:
        """The reply itself."""
        return _text({"observation": reply}, "observation")

    def read_step(self, reply: Any, score: float) -> ScoredReply:
        """Parse the reply to a step; an invalid action is recognizable only by the text."""
        step = super().read_step(reply, score)
        if step.observation.startswith("Your previous action is invalid.") and not step.done:
            raise InvalidAction(step.observation)
        return step


class WebArenaClient(ScenarioClient):
    """Only the last reward counts. The reply to an action that the server could not carry out has no info."""

    key, index_key = "env_idx", "idx"
    reset_fields: ClassVar[Mapping[str, Any]] = {"seed": 0}

    def first_observation(self, reply: Any) -> str:
        """The observation. Raises EnvError if it reports a failure."""
        observation = _text(reply, "observation")
        if observation == "TimeoutError":
            raise EnvError("the server could not reset its environment (TimeoutError)")
        return observation

    def read_step(self, reply: Any, score: float) -> ScoredReply:
        """Parse the reply to a step. An observation without info is an error message, nearly always of a bad action."""
        observation, done = _text(reply, "observation"), _flag(reply, "terminated")
        if _flag(reply, "truncated") and not done:
            raise EnvError("the server truncated the episode")
        if _field(reply, "info") is None and not done:
            raise InvalidAction(observation)
        reward = _share(_amount(reply, "reward")) if done else score
        return ScoredReply(observation, reward, done, done and reward >= 1.0)


CLIENTS: dict[str, type[ScenarioClient]] = {
    "textcraft": TextCraftClient,
    "babyai": BabyAIClient,
    "sciworld": SciWorldClient,
    "searchqa": SearchQAClient,
    "webarena": WebArenaClient,
}


class EnvAddress(NamedTuple):
    """The address of an environment: its server and its number there."""

    url: str
    number: int


class AgentGymEnv(TextEnv):
    """An environment behind one of AgentGym's protocols.

    A task is an index, such as `textcraft-agentgym/17`; only the server has its goal. Except for the questions of
    searchqa, AgentGym does not publish which indices are for training. So the tasks of the other scenarios all have
    the split `test`, and the default is `split=None` (any). The task of an index may differ between servers:
    TextCraft's depend on the order of files in a folder. An index alone determines an episode, since the server takes
    no seed.

    A step is never repeated, since a server of AgentGym would act twice. After a failure the environment is abandoned,
    and the next reset makes another.
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
            scenario: one of `CLIENTS`.
            urls: addresses with the path `/create`; used in turns.
            token: sent as `Authorization: Bearer`, if any.
            timeout: seconds that a server may be silent.
            connect_timeout: seconds to look for a server that answers and has room.
            rules: the rules of the world, for the system prompt.
            grammars: the action grammars by name.
            split: the split from which a reset without a task draws; None means all.
            **options: the other arguments of `TextEnv`.

        Raises:
            UsageError: an unknown scenario, or arguments that `TextEnv` refuses.
            EnvError: no server made an environment.
        """
        if scenario not in CLIENTS:
            raise UsageError(f"AgentGym has no scenario {scenario!r}; choose from {', '.join(CLIENTS)}")
        self.tasks, self.rules, self.grammars = (
            IndexTasks(f"{scenario}-agentgym", index_groups(scenario)),
            rules,
            grammars,
        )
        super().__init__(split=split, **options)
        self._scenario = CLIENTS[scenario]()
        self._urls, self._token, self._timeout, self._connect_timeout = tuple(urls), token, timeout, connect_timeout
        self._bases = {url.rstrip("/"): _base(url, index) for index, url in enumerate(urls)}
        self._address: EnvAddress | None = None
        self._connect()
        self._address = self._open()

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        if self._address is None:
            self._address = self._open()
        scenario = self._scenario
        body = {scenario.index_key: task.data["index"], **scenario.reset_fields}
        try:
            return scenario.first_observation(self._call("reset", body))
        except EnvError:
            self._abandon_env()
            raise

    def _act(self, command: str) -> Transition:
        try:
            reply = self._call("step", {"action": self._scenario.command(command)})
            step = self._scenario.read_step(reply, self._score)
        except EnvError:
            self._abandon_env()
            raise
        return Transition(step.observation, step.score - self._score, step.done, step.success)

    def _close(self) -> None:
        self._abandon_env()
        self._http.close()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_http"]
        state["_address"] = None
        state["_snapshot"] = self.snapshot() if self.task is not None and self._stop is None else None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        snapshot = state.pop("_snapshot")
        self.__dict__.update(state)
        self._connect()
        if snapshot is not None:
            self.restore(snapshot)

    def _connect(self) -> None:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        timeout = httpx.Timeout(self._timeout, connect=5.0)
        mounts = {
            base: httpx.HTTPTransport(uds=socket_path(url)) for url, base in self._bases.items() if url.startswith(UNIX)
        }
        self._http = httpx.Client(
            headers=headers, timeout=timeout, verify=_ssl_context(), trust_env=False, mounts=mounts
        )
        weakref.finalize(self, self._http.close)

    def _open(self) -> EnvAddress:
        """Make an environment on the first server that accepts it. Raises EnvError."""
        end, start = time.monotonic() + self._connect_timeout, next(_turns)
        urls = [self._urls[(start + index) % len(self._urls)].rstrip("/") for index in range(len(self._urls))]
        while True:
            for url in urls:
                try:
                    return EnvAddress(
                        url, self._scenario.number(self._post(url, "create", self._scenario.creation_body()))
                    )
                except (SessionLost, ServerFull) as error:
                    problem = error
            if time.monotonic() >= end:
                raise problem
            time.sleep(0.25)

    def _call(self, path: str, body: Mapping[str, Any]) -> Any:
        assert self._address is not None
        return self._post(self._address.url, path, {self._scenario.key: self._address.number, **body})

    def _abandon_env(self) -> None:
        """Close the environment on its server, if that can be reached."""
        address, self._address = self._address, None
        if address is None:
            return
        try:
            self._post(address.url, "close", {self._scenario.key: address.number}, timeout=_CLOSE_SECONDS)
        except EnvError as error:
            _log.debug("an environment could not be closed: %s", error)

    def _post(self, url: str, path: str, body: Mapping[str, Any], **how: Any) -> Any:
        """Send a request and return the reply.

        Raises:
            SessionLost: the server cannot be reached.
            ServerFull: the server has no room.
            EnvError: the reply is an error or not JSON.
        """
        where = f"{url}/{path}"
        try:
            response = self._http.post(f"{self._bases.get(url, url)}/{path}", content=dump(body), **how)
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
    """Make an environment for `gym.make(env_id, base_url=urls, dialect="agentgym")`.

    `options` are the arguments of `AgentGymEnv`. Raises UsageError for a scenario that AgentGym lacks.
    """
    scenario = ids.scenario_of(env_id)
    if scenario is None:
        known = ", ".join(f"{prefix}-..." for prefix in ids.PREFIXES.values())
        raise UsageError(f"AgentGym has no {env_id!r}; it has {known}")
    made = env_class(env_id)
    return AgentGymEnv(scenario, urls, rules=made.rules, grammars=made.grammars, **options)


@lru_cache(maxsize=1)
def _ssl_context() -> Any:
    """The TLS context; shared, since making it is the slowest step here."""
    return httpx.create_ssl_context()


def _base(url: str, index: int) -> str:
    """The URL of requests to a server; for a Unix socket a name of its own, by which httpx finds the socket."""
    return f"http://socket-{index}.invalid" if url.startswith(UNIX) else url.rstrip("/")


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

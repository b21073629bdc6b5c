"""The differences between the five protocols: field names, meaning of an index, scale of scores, form of replies.

Each scenario is one class. `options_of` maps an index to one of our tasks; the other methods build replies. To change
a protocol or to add one, edit only this file.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from agentgym_envs.babyai.levels import agentgym_task as babyai_task
from agentgym_envs.core import StopReason
from agentgym_envs.errors import AgentGymError, UnknownTask
from agentgym_envs.hosting.images import image_from_json, to_png
from agentgym_envs.http.dialects.agentgym import ids
from agentgym_envs.http.dialects.agentgym.textcraft_emulator import TextCraftEmulator, refused
from agentgym_envs.http.protocol import BadRequest
from agentgym_envs.sciworld.tasks import agentgym_task as sciworld_task

CallEnv = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Calls a remote method of the environment."""


def whole_number(body: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """Read a whole number from a body. Raises BadRequest."""
    value = body.get(key, default)
    if type(value) is not int:
        raise BadRequest(f"the body must hold {key!r}, a whole number")
    return value


class Refused(AgentGymError):
    """A request that AgentGym's server answers with an error message."""


@dataclass(slots=True)
class ClientSession:
    """An environment of a client and the state of its episode; scores are on our scale.

    `last_reply` is the last reply in AgentGym's form; only TextCraft uses `emulator`.
    """

    number: int
    token: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    index: int = 0
    task: Mapping[str, Any] = field(default_factory=dict)
    prompt: str | None = None
    observation: str = ""
    reward: float = 0.0
    score: float = 0.0
    terminated: bool = False
    truncated: bool = False
    info: Mapping[str, Any] = field(default_factory=dict)
    last_reply: dict[str, Any] = field(default_factory=dict)
    emulator: TextCraftEmulator | None = None

    @property
    def done(self) -> bool:
        """True if the episode is over."""
        return self.terminated or self.truncated

    def begin(self, index: int, reply: Mapping[str, Any]) -> None:
        """Store the reply to a reset."""
        self.index, self.task, self.prompt = index, reply["task"], reply["observation"]
        self.observation, self.info = reply["observation"], reply["info"]
        self.reward = self.score = 0.0
        self.terminated = self.truncated = False
        self.emulator = None

    def advance(self, reply: Mapping[str, Any]) -> None:
        """Store the reply to a step."""
        self.observation, self.info, self.reward = reply["observation"], reply["info"], reply["reward"]
        self.score += self.reward
        self.terminated, self.truncated = reply["terminated"], reply["truncated"]


class ScenarioServer:
    """One protocol. `key` is the field name of the environment's number, `index_key` that of the task's index."""

    name: ClassVar[str]
    """The folder of its paths."""
    kind: ClassVar[str]
    """The key in `ids.PREFIXES` of the environments that it serves."""
    greeting: ClassVar[str]
    key: ClassVar[str] = "id"
    index_key: ClassVar[str] = "data_idx"
    first_index: ClassVar[int | None] = 0
    """The default index of a reset; None if the index is required."""
    about_indices: ClassVar[str] = ""
    """An addition to the error message for an index without a task."""
    seed: ClassVar[int] = 0
    """The seed of every episode, since an index alone determines an episode in AgentGym."""
    error_status: ClassVar[int] = 200
    options: ClassVar[Mapping[str, Any]] = {}
    """Constructor arguments of its environments, as far as they accept them."""
    get_paths: ClassVar[tuple[str, ...]] = ()
    """Further paths for GET; `path_reply` answers them."""
    post_paths: ClassVar[tuple[str, ...]] = ()
    """Further paths for POST; `path_reply` answers them."""

    def options_of(self, index: int) -> dict[str, Any]:
        """The reset options for an index. Raises UnknownTask."""
        raise NotImplementedError

    def index_at_creation(self, number: int, body: Mapping[str, Any]) -> int | None:
        """The index of the first episode, if a new environment starts one."""
        return None

    async def act(self, session: ClientSession, action: str, call: CallEnv) -> Mapping[str, Any]:
        """Carry out an action. Returns our environment's reply with the text of AgentGym's."""
        reply: Mapping[str, Any] = await call("step", {"action": action})
        return reply

    def creation_reply(self, session: ClientSession) -> Any:
        """The reply to a creation."""
        return {self.key: session.number}

    def reset_reply(self, session: ClientSession) -> Any:
        """The reply to a reset."""
        raise NotImplementedError

    def failed_reset_reply(self, error: AgentGymError) -> Any:
        """The reply to a failed reset; raises the error unless the protocol has a reply for it."""
        raise error

    def step_reply(self, session: ClientSession) -> Any:
        """The reply to a step."""
        raise NotImplementedError

    def observation_reply(self, session: ClientSession) -> Any:
        """The reply to GET /observation. Raises Refused."""
        self.refuse_if_over(session)
        return session.observation

    def close_reply(self, number: int, was_open: bool) -> Any:
        """The reply to a close. Raises Refused."""
        return was_open

    async def path_reply(self, path: str, session: ClientSession, call: CallEnv) -> Any:
        """The reply to one of `get_paths` and `post_paths`. Raises Refused."""
        raise Refused(f"this server does not reproduce /{path}")

    def missing_message(self, number: int, existed: bool) -> str:
        """The error message for an environment that does not exist or no longer exists."""
        return f"The id {number} is not valid."

    def refuse_if_over(self, session: ClientSession) -> None:
        """Raise Refused if the episode has ended."""
        if session.done:
            raise Refused(f"The task with environment {session.number} has finished.")


class TextCraftServer(ScenarioServer):
    """TextCraft, with the bugs that a client can observe."""

    name, kind, greeting = "textcraft", "textcraft", "This is environment TextCraft."
    seed = 42
    get_paths = ("detail",)

    def options_of(self, index: int) -> dict[str, Any]:
        """The task of the index modulo the number of goals."""
        return {"task": f"textcraft/{index % ids.TEXTCRAFT_GOALS}"}

    def index_at_creation(self, number: int, body: Mapping[str, Any]) -> int:
        """The environment's own number. AgentGym accepts `commands` and `goal` and ignores both."""
        return number

    async def act(self, session: ClientSession, action: str, call: CallEnv) -> Mapping[str, Any]:
        """Carry out an action as AgentGym would; see `TextCraftEmulator`."""
        emulator = self._emulator(session)
        try:
            attempt = emulator.attempt(action)
        except ValueError as error:
            raise Refused(str(error)) from None
        reply = await call("step", {"action": attempt.command})
        answer = emulator.settle(attempt, reply["observation"])
        if answer is not None:
            return {**reply, "observation": answer}
        done = await call("snapshot", {})
        await call("restore", {**done, "actions": done["actions"][:-1]})
        return refused(reply, attempt.refusal)

    def _emulator(self, session: ClientSession) -> TextCraftEmulator:
        if session.emulator is None:
            session.emulator = TextCraftEmulator(session.prompt or "")
        return session.emulator

    def creation_reply(self, session: ClientSession) -> Any:
        """The reply to a reset, since an episode has started."""
        return self.reset_reply(session)

    def reset_reply(self, session: ClientSession) -> Any:
        """The number and the observation."""
        return {"id": session.number, **self._step_fields(session)}

    def step_reply(self, session: ClientSession) -> Any:
        """The observation, the reward (1 or 0) and the end of the episode."""
        return self._step_fields(session)

    def observation_reply(self, session: ClientSession) -> Any:
        """The last observation, also after the end of the episode."""
        return session.observation

    async def path_reply(self, path: str, session: ClientSession, call: CallEnv) -> Any:
        """The last reply, for /detail."""
        return {**self._step_fields(session), "deleted": False}

    def _step_fields(self, session: ClientSession) -> dict[str, Any]:
        return {"observation": session.observation, "reward": int(session.reward), "done": session.done}


class BabyAIServer(ScenarioServer):
    """BabyAI. `score` is the sum of the rewards; AgentGym's client uses it as the reward."""

    name, kind, greeting = "babyai", "babyai", "This is environment BabyAI."
    post_paths, options = ("render",), MappingProxyType({"render_mode": "rgb_array"})

    def options_of(self, index: int) -> dict[str, Any]:
        """The task of an index: the remainder is the level, the quotient the seed."""
        return {"task": babyai_task(index)}

    def reset_reply(self, session: ClientSession) -> Any:
        """The observation, which begins with the goal."""
        return {**self._step_fields(session), "deleted": False}

    def step_reply(self, session: ClientSession) -> Any:
        """The reward of this step and the sum so far."""
        return self._step_fields(session)

    def observation_reply(self, session: ClientSession) -> Any:
        """A dict whose observation begins with the goal. Raises Refused once the episode is over."""
        self.refuse_if_over(session)
        if session.prompt is None:
            fields = {"observation": "Environment not initialized", "reward": 0, "score": 0, "done": False}
        else:
            goal = f"Your goal: {session.task['goal']}\n"
            fields = {**self._step_fields(session), "observation": goal + session.observation.removeprefix(goal)}
        return {**fields, "deleted": False}

    async def path_reply(self, path: str, session: ClientSession, call: CallEnv) -> Any:
        """The world as a PNG file in a data URL, for /render."""
        image = image_from_json(await call("render", {}))
        if not isinstance(image, np.ndarray):
            return await super().path_reply(path, session, call)
        return f"data:image/png;base64,{base64.b64encode(to_png(image)).decode()}"

    def _step_fields(self, session: ClientSession) -> dict[str, Any]:
        return {
            "observation": session.observation,
            "reward": session.reward,
            "score": session.score,
            "done": session.done,
        }


_SCIWORLD_KEYS = {
    "action_hint": {"possible_actions": "possible_actions", "possible_objects": "possible_objects"},
    "goals": {"goals": "goal_progress"},
}
"""The fields of the replies to ScienceWorld's paths, and the keys of our info with their values."""


class SciWorldServer(ScenarioServer):
    """ScienceWorld. Scores are points out of 100, or -100 after a wrong focus. More than 100 moves end an episode."""

    name, kind, greeting = "sciworld", "sciworld", "This is environment ScienceWorld."
    numbering: ClassVar[str] = "agentgym"
    options = MappingProxyType({"max_moves": 100, "info": ("possible_actions", "possible_objects", "goal_progress")})
    get_paths = ("action_hint", "goals", "detail", "task_description", "object_tree", "state")
    post_paths = ("step_visual",)

    def options_of(self, index: int) -> dict[str, Any]:
        """Task and variation; an index below 0 counts from the end, as in Python lists."""
        size = ids.size(ids.sciworld_ranges(self.numbering))
        if not -size <= index < size:
            raise UnknownTask("list index out of range")
        return {"task": sciworld_task(index % size, self.numbering)}

    def reset_reply(self, session: ClientSession) -> Any:
        """Task, variation, description and, apart from these, the observation."""
        _, name, variation = session.task["id"].split("/")
        description = self._description(session)
        seen = session.observation.removeprefix(description).removeprefix("\n")
        session.observation = seen
        session.last_reply = {
            "task_name": name,
            "var_num": int(variation),
            "task_description": description,
            "deleted": False,
            **self._step_fields(session, 0),
        }
        return session.last_reply

    def step_reply(self, session: ClientSession) -> Any:
        """`reward` is the change of the points, `score` their total."""
        fields = self._step_fields(session, session.last_reply["score"])
        session.last_reply = {**session.last_reply, **fields}
        return fields

    def observation_reply(self, session: ClientSession) -> Any:
        """The last observation. Raises Refused before the first reset and once the episode is over."""
        self._running(session)
        return session.observation

    def missing_message(self, number: int, existed: bool) -> str:
        """The error message, with a text of its own for a closed environment."""
        if existed:
            return f"The task with environment {number} has been deleted."
        return super().missing_message(number, existed)

    def close_reply(self, number: int, was_open: bool) -> Any:
        """True. Raises Refused for an environment that does not exist."""
        if not was_open:
            raise Refused(f"The environment {number} is not there, or was closed before.")
        return True

    async def path_reply(self, path: str, session: ClientSession, call: CallEnv) -> Any:
        """The values that the environment reports in its info. Raises Refused for others."""
        if path == "detail":
            self.refuse_if_over(session)
            return session.last_reply or {"deleted": False, "done": False}
        self._running(session)
        if path == "task_description":
            return {path: self._description(session)}
        keys = _SCIWORLD_KEYS.get(path, {path: path})
        if missing := [key for key in keys.values() if key not in session.info]:
            raise Refused(f"this server does not reproduce /{path}: the environment does not report {missing[0]}")
        return {name: session.info[key] for name, key in keys.items()}

    def _running(self, session: ClientSession) -> None:
        self.refuse_if_over(session)
        if session.prompt is None:
            raise Refused("no episode was begun; reset first")

    def _description(self, session: ClientSession) -> str:
        return str(session.info.get("task_description", session.task["goal"]))

    def _step_fields(self, session: ClientSession, before: int) -> dict[str, Any]:
        failed = session.terminated and session.info.get("stop_reason") == StopReason.FAILURE
        points = -100 if failed else round(100 * session.score)
        return {"observation": session.observation, "reward": points - before, "score": points, "done": session.done}


class PublishedSciWorldServer(SciWorldServer):
    """ScienceWorld with the numbering of AgentGym's published data, which lacks one task."""

    name = "sciworld-4339"
    numbering = "agentgym-published"


_SEARCHQA_PROMPT = """\
Think first, inside <think>...</think>. If you lack knowledge, write <search>your query</search> and stop there: what \
was found comes back inside <information>...</information>. Think again about whatever you were told. Once you are \
sure, or need no search at all, write your answer inside <answer>...</answer>, without explanations; for example, \
<answer> Beijing </answer>. Do so in every turn."""
_SEARCHQA_RIGHT = "Congratulations! You have answered the question correctly."
_SEARCHQA_WRONG = "Sorry, your answer is incorrect. Please try again."
_SEARCHQA_INVALID = (
    "Your previous action is invalid. If you want to search, you should put the query between <search> and </search>. "
    "If you want to give the final answer, you should put the answer between <answer> and </answer>. Please try again."
)


class SearchQAServer(ScenarioServer):
    """Questions and a search engine. Errors have the status 500.

    It is meant for an environment that continues after a wrong answer, with the published questions.
    """

    name, kind, greeting = "searchqa", "searchqa", "ok"
    key, index_key, first_index = "env_idx", "id", None
    about_indices = ". AgentGym's indices are rows of the published files, which the server finds in questions=DIR"
    error_status = 500

    def options_of(self, index: int) -> dict[str, Any]:
        """The question with that number."""
        ids.find(ids.SEARCH, index)
        return {"task": f"searchqa/{index}"}

    def index_at_creation(self, number: int, body: Mapping[str, Any]) -> int:
        """The index in the body, by default 0."""
        return whole_number(body, "id", 0)

    async def act(self, session: ClientSession, action: str, call: CallEnv) -> Mapping[str, Any]:
        """Carry out an action; results of a search are unchanged, other texts are AgentGym's."""
        reply = await super().act(session, action, call)
        info = reply["info"]
        if info["invalid_action"] is not None:
            return {**reply, "observation": _SEARCHQA_INVALID}
        if info.get("answer") is not None:
            return {**reply, "observation": _SEARCHQA_RIGHT if info["success"] else _SEARCHQA_WRONG}
        return reply

    def creation_reply(self, session: ClientSession) -> Any:
        """The number alone."""
        return session.number

    def reset_reply(self, session: ClientSession) -> Any:
        """The prompt alone: the instructions and the question."""
        return f"{_SEARCHQA_PROMPT}\n\n Question: {session.task['goal']}"

    def step_reply(self, session: ClientSession) -> Any:
        """Observation, reward and end of the episode, with an empty info."""
        return {"observation": session.observation, "reward": float(session.reward), "done": session.done, "info": None}

    def observation_reply(self, session: ClientSession) -> Any:
        """The prompt, always."""
        return self.reset_reply(session)

    def missing_message(self, number: int, existed: bool) -> str:
        """The message for the log; a client checks only the status."""
        return f"Env {number} not found"


class WebArenaServer(ScenarioServer):
    """Sites in a browser. A failed reset is reported in the observation, as AgentGym's client expects."""

    name, kind, greeting = "webarena", "webarena", "ok"
    key, index_key, first_index = "env_idx", "idx", None
    options = MappingProxyType({"grammar": "fenced"})
    get_paths = ("observation_metadata",)

    def options_of(self, index: int) -> dict[str, Any]:
        """The task with that number."""
        if not 0 <= index < ids.WEBARENA_TASKS:
            raise UnknownTask(f"there is no task {index}; they go from 0 to {ids.WEBARENA_TASKS - 1}")
        return {"task": f"webarena/{index}"}

    async def act(self, session: ClientSession, action: str, call: CallEnv) -> Mapping[str, Any]:
        """Carry out the action in the first pair of triple backticks of the text, as AgentGym does.

        The environment's own grammar uses the last pair, so the text after the first pair is removed.
        """
        *kept, rest = action.split("```", 2)
        return await super().act(session, "```".join([*kept, "" if len(kept) == 2 else rest]), call)

    def reset_reply(self, session: ClientSession) -> Any:
        """The observation, the sites, and the intent as `object`."""
        sites = session.task["data"].get("sites", [])
        return {"observation": session.observation, "sites": sites, "object": session.task["goal"]}

    def failed_reset_reply(self, error: AgentGymError) -> Any:
        """The observation by which AgentGym's client detects a failure."""
        return {"observation": "TimeoutError", "sites": "Error", "object": "Error"}

    def step_reply(self, session: ClientSession) -> Any:
        """The values of Gymnasium's `step`, by name."""
        return {
            "observation": session.observation,
            "reward": session.reward,
            "terminated": session.terminated,
            "truncated": session.truncated,
            "info": session.info,
        }

    def observation_reply(self, session: ClientSession) -> Any:
        """The last observation, also after the end of the episode."""
        return session.observation

    def close_reply(self, number: int, was_open: bool) -> Any:
        """A confirmation or an error message."""
        return {"closed": "closed" if was_open else f"Close Env {number} Error: {number}"}


SCENARIOS: tuple[type[ScenarioServer], ...] = (
    TextCraftServer,
    BabyAIServer,
    SciWorldServer,
    PublishedSciWorldServer,
    SearchQAServer,
    WebArenaServer,
)
"""Every protocol."""

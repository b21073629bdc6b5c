"""What the five protocols have not in common: names of fields, what an index means, scales of scores, forms of replies.

A scenario is one class. `options_of` says which of our tasks an index is; the other methods word replies. Adding to or
changing a protocol is done here and nowhere else.
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
from agentgym_envs.hosting.pictures import picture_from_json, to_png
from agentgym_envs.http.dialects.agentgym import ids
from agentgym_envs.http.dialects.agentgym.texts import Account, refused
from agentgym_envs.http.protocol import BadRequest
from agentgym_envs.sciworld.tasks import agentgym_task as sciworld_task

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
"""Asks the environment for a method."""


def whole(body: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """A whole number in a body. Raises BadRequest."""
    value = body.get(key, default)
    if type(value) is not int:
        raise BadRequest(f"the body must hold {key!r}, a whole number")
    return value


class Refused(AgentGymError):
    """A request that AgentGym's server answers with an error of this text."""


@dataclass(slots=True)
class Slot:
    """An environment of a client, and what is known of its episode: scores on our scale, the last reply, the task.

    `detail` is the last reply as the dialect told it; `account` is TextCraft's.
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
    detail: dict[str, Any] = field(default_factory=dict)
    account: Account | None = None

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self.terminated or self.truncated

    def begin(self, index: int, reply: Mapping[str, Any]) -> None:
        """Note the reply to a reset."""
        self.index, self.task, self.prompt = index, reply["task"], reply["observation"]
        self.observation, self.info = reply["observation"], reply["info"]
        self.reward = self.score = 0.0
        self.terminated = self.truncated = False
        self.account = None

    def advance(self, reply: Mapping[str, Any]) -> None:
        """Note the reply to a step."""
        self.observation, self.info, self.reward = reply["observation"], reply["info"], reply["reward"]
        self.score += self.reward
        self.terminated, self.truncated = reply["terminated"], reply["truncated"]


class Scenario:
    """One protocol. `key` names the field of the environment's number, `index_key` that of the task's."""

    name: ClassVar[str]
    """The folder of its paths."""
    kind: ClassVar[str]
    """A key of `ids.PREFIXES`: which of our environments it serves."""
    greeting: ClassVar[str]
    key: ClassVar[str] = "id"
    index_key: ClassVar[str] = "data_idx"
    first_index: ClassVar[int | None] = 0
    """What a reset without an index means; None if it must name one."""
    about_indices: ClassVar[str] = ""
    """What is said besides of an index that the environment has no task for."""
    seed: ClassVar[int] = 0
    """Of every episode: an index alone decides it, as in AgentGym."""
    error_status: ClassVar[int] = 200
    options: ClassVar[Mapping[str, Any]] = {}
    """What its environments are made with, if they know it."""
    questions: ClassVar[tuple[str, ...]] = ()
    """Further paths that are asked with GET; `answer` answers them."""
    orders: ClassVar[tuple[str, ...]] = ()
    """The same with POST."""

    def options_of(self, index: int) -> dict[str, Any]:
        """The options of our reset for an index. Raises UnknownTask."""
        raise NotImplementedError

    def index_at_creation(self, number: int, body: Mapping[str, Any]) -> int | None:
        """The task that a new environment begins with, if it begins with one."""
        return None

    async def act(self, slot: Slot, action: str, call: Call) -> Mapping[str, Any]:
        """Carry out an action; returns the reply of our environment, worded as AgentGym words it."""
        reply: Mapping[str, Any] = await call("step", {"action": action})
        return reply

    def created(self, slot: Slot) -> Any:
        """The reply to a creation."""
        return {self.key: slot.number}

    def began(self, slot: Slot) -> Any:
        """The reply to a reset."""
        raise NotImplementedError

    def not_begun(self, error: AgentGymError) -> Any:
        """The reply to a reset that failed; raises the error unless the protocol has a reply of its own for it."""
        raise error

    def stepped(self, slot: Slot) -> Any:
        """The reply to a step."""
        raise NotImplementedError

    def observed(self, slot: Slot) -> Any:
        """The reply to GET /observation. Raises Refused."""
        self.refuse_if_over(slot)
        return slot.observation

    def closed(self, number: int, was_open: bool) -> Any:
        """The reply to a close. Raises Refused."""
        return was_open

    async def answer(self, path: str, slot: Slot, call: Call) -> Any:
        """The reply to a further path. Raises Refused."""
        raise Refused(f"this server does not reproduce /{path}")

    def no_slot(self, number: int, was_there: bool) -> str:
        """What is said of an environment that is not there, or not any more."""
        return f"The id {number} is not valid."

    def refuse_if_over(self, slot: Slot) -> None:
        """Raise Refused if the episode has ended."""
        if slot.done:
            raise Refused(f"The task with environment {slot.number} has finished.")


class TextCraft(Scenario):
    """TextCraft, bug for bug as far as a client can tell."""

    name, kind, greeting = "textcraft", "textcraft", "This is environment TextCraft."
    seed = 42
    questions = ("detail",)

    def options_of(self, index: int) -> dict[str, Any]:
        """The goal at that place, modulo the number of goals."""
        return {"task": f"textcraft/{index % ids.TEXTCRAFT_GOALS}"}

    def index_at_creation(self, number: int, body: Mapping[str, Any]) -> int:
        """The environment's own number. AgentGym takes `commands` and `goal` and heeds neither."""
        return number

    async def act(self, slot: Slot, action: str, call: Call) -> Mapping[str, Any]:
        """See `texts.Account`."""
        account = self._account(slot)
        try:
            attempt = account.attempt(action)
        except ValueError as error:
            raise Refused(str(error)) from None
        reply = await call("step", {"action": attempt.command})
        answer = account.settle(attempt, reply["observation"])
        if answer is not None:
            return {**reply, "observation": answer}
        done = await call("snapshot", {})
        await call("restore", {**done, "actions": done["actions"][:-1]})
        return refused(reply, attempt.refusal)

    def _account(self, slot: Slot) -> Account:
        if slot.account is None:
            slot.account = Account(slot.prompt or "")
        return slot.account

    def created(self, slot: Slot) -> Any:
        """With the first observation, since an episode has begun."""
        return self.began(slot)

    def began(self, slot: Slot) -> Any:
        """The number and the observation."""
        return {"id": slot.number, **self._told(slot)}

    def stepped(self, slot: Slot) -> Any:
        """The reward is 1 or 0."""
        return self._told(slot)

    def observed(self, slot: Slot) -> Any:
        """Also after the end."""
        return slot.observation

    async def answer(self, path: str, slot: Slot, call: Call) -> Any:
        """/detail: the last reply."""
        return {**self._told(slot), "deleted": False}

    def _told(self, slot: Slot) -> dict[str, Any]:
        return {"observation": slot.observation, "reward": int(slot.reward), "done": slot.done}


class BabyAI(Scenario):
    """BabyAI. `score` is the sum of the rewards, and what AgentGym's client takes for its reward."""

    name, kind, greeting = "babyai", "babyai", "This is environment BabyAI."
    orders, options = ("render",), MappingProxyType({"render_mode": "rgb_array"})

    def options_of(self, index: int) -> dict[str, Any]:
        """The index goes round the levels; the seed is the number of the round."""
        return {"task": babyai_task(index)}

    def began(self, slot: Slot) -> Any:
        """The observation begins with the goal."""
        return {**self._told(slot), "deleted": False}

    def stepped(self, slot: Slot) -> Any:
        """The reward of this step and the sum so far."""
        return self._told(slot)

    def observed(self, slot: Slot) -> Any:
        """A dict, with the goal in front of what is seen; refused once the episode is over."""
        self.refuse_if_over(slot)
        if slot.prompt is None:
            told = {"observation": "Environment not initialized", "reward": 0, "score": 0, "done": False}
        else:
            goal = f"Your goal: {slot.task['goal']}\n"
            told = {**self._told(slot), "observation": goal + slot.observation.removeprefix(goal)}
        return {**told, "deleted": False}

    async def answer(self, path: str, slot: Slot, call: Call) -> Any:
        """/render: the world as a PNG, in a data URL."""
        picture = picture_from_json(await call("render", {}))
        if not isinstance(picture, np.ndarray):
            return await super().answer(path, slot, call)
        return f"data:image/png;base64,{base64.b64encode(to_png(picture)).decode()}"

    def _told(self, slot: Slot) -> dict[str, Any]:
        return {
            "observation": slot.observation,
            "reward": slot.reward,
            "score": slot.score,
            "done": slot.done,
        }


_SCIWORLD_KEYS = {
    "action_hint": {"possible_actions": "possible_actions", "possible_objects": "possible_objects"},
    "goals": {"goals": "goal_progress"},
}
"""What a path of ScienceWorld's tells, and the key of our info that holds it."""


class SciWorld(Scenario):
    """ScienceWorld. Scores are points out of 100; after a wrong focus -100. More than 100 moves end an episode."""

    name, kind, greeting = "sciworld", "sciworld", "This is environment ScienceWorld."
    numbering: ClassVar[str] = "agentgym"
    options = MappingProxyType({"max_moves": 100, "info": ("possible_actions", "possible_objects", "goal_progress")})
    questions = ("action_hint", "goals", "detail", "task_description", "object_tree", "state")
    orders = ("step_visual",)

    def options_of(self, index: int) -> dict[str, Any]:
        """Task and variation; an index below 0 counts from the end, as Python's lists do."""
        size = ids.size(ids.sciworld_parts(self.numbering))
        if not -size <= index < size:
            raise UnknownTask("list index out of range")
        return {"task": sciworld_task(index % size, self.numbering)}

    def began(self, slot: Slot) -> Any:
        """Task, variation and description apart from what is seen."""
        _, name, variation = slot.task["id"].split("/")
        description = self._description(slot)
        seen = slot.observation.removeprefix(description).removeprefix("\n")
        slot.observation = seen
        slot.detail = {
            "task_name": name,
            "var_num": int(variation),
            "task_description": description,
            "deleted": False,
            **self._told(slot, 0),
        }
        return slot.detail

    def stepped(self, slot: Slot) -> Any:
        """`reward` is the change of the points, `score` all of them."""
        told = self._told(slot, slot.detail["score"])
        slot.detail = {**slot.detail, **told}
        return told

    def observed(self, slot: Slot) -> Any:
        """Refused before the first reset and once the episode is over."""
        self._running(slot)
        return slot.observation

    def no_slot(self, number: int, was_there: bool) -> str:
        """A closed environment is told from one that never was."""
        if was_there:
            return f"The task with environment {number} has been deleted."
        return super().no_slot(number, was_there)

    def closed(self, number: int, was_open: bool) -> Any:
        """True; an environment that is not there is an error."""
        if not was_open:
            raise Refused(f"The environment {number} is not there, or was closed before.")
        return True

    async def answer(self, path: str, slot: Slot, call: Call) -> Any:
        """What the environment tells in the info of its steps; the rest is not reproduced."""
        if path == "detail":
            self.refuse_if_over(slot)
            return slot.detail or {"deleted": False, "done": False}
        self._running(slot)
        if path == "task_description":
            return {path: self._description(slot)}
        keys = _SCIWORLD_KEYS.get(path, {path: path})
        if missing := [key for key in keys.values() if key not in slot.info]:
            raise Refused(f"this server does not reproduce /{path}: the environment does not tell {missing[0]}")
        return {name: slot.info[key] for name, key in keys.items()}

    def _running(self, slot: Slot) -> None:
        self.refuse_if_over(slot)
        if slot.prompt is None:
            raise Refused("no episode was begun; reset first")

    def _description(self, slot: Slot) -> str:
        return str(slot.info.get("task_description", slot.task["goal"]))

    def _told(self, slot: Slot, before: int) -> dict[str, Any]:
        failed = slot.terminated and slot.info.get("stop_reason") == StopReason.FAILURE
        points = -100 if failed else round(100 * slot.score)
        return {"observation": slot.observation, "reward": points - before, "score": points, "done": slot.done}


class PublishedSciWorld(SciWorld):
    """The same with the numbering of AgentGym's published data, which lacks one task."""

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


class SearchQA(Scenario):
    """Questions and a search engine. Errors have the status 500.

    It is meant for an environment that lets a wrong answer go on, with the published questions.
    """

    name, kind, greeting = "searchqa", "searchqa", "ok"
    key, index_key, first_index = "env_idx", "id", None
    about_indices = ". AgentGym's indices are rows of the published files, which the server finds in questions=DIR"
    error_status = 500

    def options_of(self, index: int) -> dict[str, Any]:
        """The question of that number."""
        ids.find(ids.SEARCH, index)
        return {"task": f"searchqa/{index}"}

    def index_at_creation(self, number: int, body: Mapping[str, Any]) -> int:
        """The question that the body names, else the first."""
        return whole(body, "id", 0)

    async def act(self, slot: Slot, action: str, call: Call) -> Mapping[str, Any]:
        """What a search finds is told as it is; the rest in AgentGym's words."""
        reply = await super().act(slot, action, call)
        info = reply["info"]
        if info["invalid_action"] is not None:
            return {**reply, "observation": _SEARCHQA_INVALID}
        if info.get("answer") is not None:
            return {**reply, "observation": _SEARCHQA_RIGHT if info["success"] else _SEARCHQA_WRONG}
        return reply

    def created(self, slot: Slot) -> Any:
        """The bare number."""
        return slot.number

    def began(self, slot: Slot) -> Any:
        """The bare prompt: what to do, and the question."""
        return f"{_SEARCHQA_PROMPT}\n\n Question: {slot.task['goal']}"

    def stepped(self, slot: Slot) -> Any:
        """With an empty info."""
        return {"observation": slot.observation, "reward": float(slot.reward), "done": slot.done, "info": None}

    def observed(self, slot: Slot) -> Any:
        """Always the prompt."""
        return self.began(slot)

    def no_slot(self, number: int, was_there: bool) -> str:
        """For the log: a client looks at the status."""
        return f"Env {number} not found"


class WebArena(Scenario):
    """Sites in a browser. A reset that fails tells so in the observation, as AgentGym's client expects."""

    name, kind, greeting = "webarena", "webarena", "ok"
    key, index_key, first_index = "env_idx", "idx", None
    options = MappingProxyType({"grammar": "fenced"})
    questions = ("observation_metadata",)

    def options_of(self, index: int) -> dict[str, Any]:
        """The task of that number."""
        if not 0 <= index < ids.WEBARENA_TASKS:
            raise UnknownTask(f"there is no task {index}; they go from 0 to {ids.WEBARENA_TASKS - 1}")
        return {"task": f"webarena/{index}"}

    async def act(self, slot: Slot, action: str, call: Call) -> Mapping[str, Any]:
        """A client sends all that its model wrote, and the first pair of triple backticks counts, as in AgentGym.

        For the environment's own grammar it is the last, so what follows the first is left out.
        """
        *kept, rest = action.split("```", 2)
        return await super().act(slot, "```".join([*kept, "" if len(kept) == 2 else rest]), call)

    def began(self, slot: Slot) -> Any:
        """`object` is the intent."""
        sites = slot.task["data"].get("sites", [])
        return {"observation": slot.observation, "sites": sites, "object": slot.task["goal"]}

    def not_begun(self, error: AgentGymError) -> Any:
        """AgentGym's client knows a failure by this observation."""
        return {"observation": "TimeoutError", "sites": "Error", "object": "Error"}

    def stepped(self, slot: Slot) -> Any:
        """In Gymnasium's words."""
        return {
            "observation": slot.observation,
            "reward": slot.reward,
            "terminated": slot.terminated,
            "truncated": slot.truncated,
            "info": slot.info,
        }

    def observed(self, slot: Slot) -> Any:
        """Also after the end."""
        return slot.observation

    def closed(self, number: int, was_open: bool) -> Any:
        """A word, or what went wrong."""
        return {"closed": "closed" if was_open else f"Close Env {number} Error: {number}"}


SCENARIOS: tuple[type[Scenario], ...] = (TextCraft, BabyAI, SciWorld, PublishedSciWorld, SearchQA, WebArena)
"""Every protocol."""

"""The logs of AgentGym-RL's trainer, read as trajectories: `{folder}/step{N}/{rank}.json`, a JSON list of records.

A record is `{"item_id": 17, "conversations": [{"role", "content"}, ...], "reward": 1.0}`. It does not name the
environment, which is guessed from the wording of the first messages, nor how the episode ended. Its reward is that of
the last step; SciWorld's are percent.

Source: AgentGym-RL, arXiv 2509.08755.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, Turn

UNKNOWN_ENV, UNKNOWN_STOP = "AgentGym-RL", "unknown"
_WORDINGS = {
    "TextCraft": ("crafting commands", "crafting recipes", "minecraft"),
    "BabyAI": ("exploration master", "there is a wall", "turn left, turn right"),
    "SciWorld": ("science world", "scienceworld", "this room is called"),
    "WebArena": ("accessibility tree", "web browser", "navigating"),
    "Search": ("search engine", "<search>", "question:"),
}
_PROMISE = re.compile(r"\s*ok\b", re.IGNORECASE)  # "OK. I'll follow your instructions ...", which nobody sampled
_STEP = re.compile(r"step(?:\w*_)?([0-9]+)")


class _Message(msgspec.Struct):
    content: str
    role: str = ""


class _Record(msgspec.Struct):
    conversations: list[_Message]
    item_id: int | float | str | None = None
    reward: float | None = 0.0


def find_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The records of a log with the offset of each. Raises TrajectoryError if it is no list (or not yet complete)."""
    try:
        records = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise TrajectoryError(f"not a complete JSON list: {error}") from None
    place = 0
    for record in records:
        text = bytes(record)
        place = data.find(text, place)
        yield place, text
        place += len(text)


def read_record(text: bytes, path: Path) -> Trajectory:
    """One record as a trajectory. `path` is that of its file and names the step. Raises TrajectoryError."""
    try:
        record = msgspec.json.decode(text, type=_Record)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise TrajectoryError(f"not a record of AgentGym-RL: {error}") from None
    instructions, conversation = _split(record.conversations)
    scenario = _guess(instructions, conversation)
    reward = record.reward or 0.0
    share = min(max(reward / 100 if scenario == "SciWorld" else reward, 0.0), 1.0)
    success = reward > 0 if scenario == "BabyAI" else share >= 1
    turns, last = _turns(conversation, share)
    return Trajectory(
        env_id=f"{UNKNOWN_ENV}/{scenario}" if scenario else UNKNOWN_ENV,
        task=Task(f"item/{record.item_id}", "train", "ungrouped", _goal(turns[0].observation if turns else last)),
        seed=0,
        instructions=instructions,
        turns=turns,
        final_observation=last,
        score=share,
        success=success,
        stop_reason="success" if success else UNKNOWN_STOP,
        env_kwargs={"grammar": "react"} if any("Action:" in turn.action for turn in turns) else {},
        meta={"logged_reward": reward, **_step_of(path)},
    )


def _split(messages: Sequence[_Message]) -> tuple[str, list[_Message]]:
    """What was said before the episode began, and the episode: AgentGym tells the rules as a first exchange."""
    start = 0
    while start < len(messages) and messages[start].role == "system":
        start += 1
    head = messages[start : start + 3]
    if len(head) == 3 and head[0].role == "user" and _is_answer(head[1]) and _PROMISE.match(head[1].content):
        start += 2
    told = [message.content for message in messages[:start] if not _is_answer(message)]
    return "\n\n".join(told), list(messages[start:])


def _turns(messages: Sequence[_Message], score: float) -> tuple[tuple[Turn, ...], str]:
    """The turns and what was seen after the last of them, which is the one that the reward is written to."""
    turns, seen = list[Turn](), ""
    last = max((place for place, message in enumerate(messages) if _is_answer(message)), default=-1)
    for place, message in enumerate(messages):
        if _is_answer(message):
            turns.append(Turn(seen, message.content, score if place == last else 0.0))
            seen = ""
        else:
            seen = f"{seen}\n\n{message.content}" if seen else message.content
    return tuple(turns), seen


def _guess(instructions: str, messages: Sequence[_Message]) -> str:
    """The scenario whose words are met most in what was told first; none if none is met."""
    told = "\n".join([instructions, *(message.content for message in messages[:1])]).lower()
    counts = {name: sum(told.count(wording) for wording in wordings) for name, wordings in _WORDINGS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""


def _goal(observation: str) -> str:
    """The line of the first observation that tells the goal, if there is one, else its first line."""
    lines = [line.strip() for line in observation.splitlines() if line.strip()]
    told = (line for line in lines if re.match(r"(your )?(goal|task|question|objective)\b", line, re.IGNORECASE))
    return next(told, lines[0] if lines else "")[:300]


def _is_answer(message: _Message) -> bool:
    return message.role in ("assistant", "gpt")


def _step_of(path: Path) -> dict[str, Any]:
    folder = path.absolute().parent.name
    match = _STEP.fullmatch(folder)
    return {"step": int(match[1]) if match else None, "training": "test" not in folder}

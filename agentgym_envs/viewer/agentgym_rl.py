"""The logs of AgentGym-RL's trainer, read as trajectories: `{folder}/step{N}/{rank}.json`, a JSON list of records.

A record is `{"item_id": 17, "conversations": [{"role", "content"}, ...], "reward": 1.0}`. It names neither the
environment, which is guessed from keywords in the first messages, nor the stop reason. Its reward is that of the last
step, in percent for SciWorld.

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
_KEYWORDS = {
    "TextCraft": ("crafting commands", "crafting recipes", "minecraft"),
    "BabyAI": ("exploration master", "there is a wall", "turn left, turn right"),
    "SciWorld": ("science world", "scienceworld", "this room is called"),
    "WebArena": ("accessibility tree", "web browser", "navigating"),
    "Search": ("search engine", "<search>", "question:"),
}
_ACKNOWLEDGEMENT = re.compile(r"\s*ok\b", re.IGNORECASE)  # "OK. I'll follow your instructions ...", not sampled
_STEP = re.compile(r"step(?:\w*_)?([0-9]+)")


class _Message(msgspec.Struct):
    content: str
    role: str = ""


class _Record(msgspec.Struct):
    conversations: list[_Message]
    item_id: int | float | str | None = None
    reward: float | None = 0.0


def find_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the records of a log with their offsets. Raises TrajectoryError if it is not a complete JSON list."""
    try:
        records = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise TrajectoryError(f"not a complete JSON list: {error}") from None
    offset = 0
    for record in records:
        text = bytes(record)
        offset = data.find(text, offset)
        yield offset, text
        offset += len(text)


def read_record(text: bytes, path: Path) -> Trajectory:
    """Convert a record to a trajectory. The path of its file contains the step. Raises TrajectoryError."""
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
    """Split off the instructions, which AgentGym sends as a system message or as the first exchange."""
    start = 0
    while start < len(messages) and messages[start].role == "system":
        start += 1
    head = messages[start : start + 3]
    if len(head) == 3 and head[0].role == "user" and _is_answer(head[1]) and _ACKNOWLEDGEMENT.match(head[1].content):
        start += 2
    instructions = [message.content for message in messages[:start] if not _is_answer(message)]
    return "\n\n".join(instructions), list(messages[start:])


def _turns(messages: Sequence[_Message], score: float) -> tuple[tuple[Turn, ...], str]:
    """The turns and the final observation. The last turn gets the reward."""
    turns, seen = list[Turn](), ""
    last = max((index for index, message in enumerate(messages) if _is_answer(message)), default=-1)
    for index, message in enumerate(messages):
        if _is_answer(message):
            turns.append(Turn(seen, message.content, score if index == last else 0.0))
            seen = ""
        else:
            seen = f"{seen}\n\n{message.content}" if seen else message.content
    return tuple(turns), seen


def _guess(instructions: str, messages: Sequence[_Message]) -> str:
    """Guess the scenario from keywords in the instructions and the first observation; "" if nothing matches."""
    text = "\n".join([instructions, *(message.content for message in messages[:1])]).lower()
    counts = {name: sum(text.count(keyword) for keyword in keywords) for name, keywords in _KEYWORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""


def _goal(observation: str) -> str:
    """The line of the first observation with the goal, else its first line."""
    lines = [line.strip() for line in observation.splitlines() if line.strip()]
    goals = (line for line in lines if re.match(r"(your )?(goal|task|question|objective)\b", line, re.IGNORECASE))
    return next(goals, lines[0] if lines else "")[:300]


def _is_answer(message: _Message) -> bool:
    return message.role in ("assistant", "gpt")


def _step_of(path: Path) -> dict[str, Any]:
    folder = path.absolute().parent.name
    match = _STEP.fullmatch(folder)
    return {"step": int(match[1]) if match else None, "training": "test" not in folder}

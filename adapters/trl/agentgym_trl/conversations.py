"""Demonstrations from files: our own trajectories, or conversations in the format of AgentGym's AgentTraj-L.

Source of the second format: AgentGym, arXiv 2406.04151. A record is `{"item_id": ..., "conversations": [...]}`, and
each of its messages `{"from": "human" | "gpt", "loss": true | false | null, "value": TEXT}`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_envs.errors import TrajectoryError
from agentgym_envs.rollout import ChatCodec, Generation, TokenBuilder
from agentgym_envs.trajectory import Message, Trajectory, read_trajectories
from agentgym_trl.collator import TrainingRow, make_row

_ROLES = ("human", "gpt")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message to the model and its answer; `trained` is False for an answer that is only context."""

    message: str
    answer: str
    trained: bool


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """One record: at least one exchange, and the last one is trained on."""

    id: str
    exchanges: tuple[Exchange, ...]

    @classmethod
    def from_record(cls, record: Any) -> ConversationRecord:
        """Read a record, without the messages after the last answer to train on.

        An answer is trained on unless its `loss` is false.

        Raises:
            TrajectoryError: it is not such a record, "human" and "gpt" do not alternate, or no answer is trained on.
        """
        messages = record.get("conversations") if isinstance(record, dict) else None
        if not isinstance(messages, list):
            raise TrajectoryError('not a conversation: it must be an object with a list "conversations"')
        for number, message in enumerate(messages):
            _check_message(message, number)
        pairs = zip(messages[::2], messages[1::2], strict=False)
        exchanges = [Exchange(h["value"], g["value"], g.get("loss") is not False) for h, g in pairs]
        while exchanges and not exchanges[-1].trained:
            exchanges.pop()
        if not exchanges:
            raise TrajectoryError('nothing to train on: no message from "gpt" with a loss that is not false')
        return cls(str(record.get("item_id", "")), tuple(exchanges))


def encode_conversation(conversation: ConversationRecord, codec: ChatCodec) -> list[TrainingRow]:
    """Encode a conversation as tokens and labels, one row per context, by the same rule as rollouts.

    The first message is the prompt. Contexts in which nothing is trained on are left out, unless all are.
    """
    messages, contexts = list[Message](), list[TokenBuilder]()
    for exchange in conversation.exchanges:
        messages.append({"role": "user", "content": exchange.message})
        if contexts and codec.continues(messages):
            contexts[-1].add_between(contexts[-1].between(exchange.message))
        else:
            contexts.append(TokenBuilder(codec, codec.encode_prompt(messages)))
        answer = codec.encode_answer(exchange.answer)
        if exchange.trained:
            contexts[-1].add_answer(Generation(answer, "stop"))
        else:
            contexts[-1].add_between(answer)
        messages.append({"role": "assistant", "content": exchange.answer})
    trained = [context for context in contexts if any(context.mask)] or contexts[:1]
    return [make_row(context.prompt_ids, context.ids, context.mask) for context in trained]


def read_demonstrations(path: str | Path) -> Sequence[Trajectory | ConversationRecord]:
    """Read a file of trajectories (JSONL) or conversations (a JSON list, or JSONL), detected from its content.

    Raises:
        TrajectoryError: the file has neither format, or a record is invalid; names file and line, or index in the list.
        OSError: the file cannot be read.
    """
    content = Path(path).read_bytes()
    if not content.strip():
        return []
    if content.lstrip().startswith(b"["):
        return list(_conversations(str(path), enumerate(_parse(f"{path}", content), 1)))
    first = _parse(f"{path}:1", content.splitlines()[0])
    if "conversations" in first:
        lines = [(n, line) for n, line in enumerate(content.splitlines(), 1) if line.strip()]
        return list(_conversations(str(path), ((n, _parse(f"{path}:{n}", line)) for n, line in lines)))
    if "schema" in first or "turns" in first:
        return list(read_trajectories(path))
    raise _unknown_format(f"{path}:1")


def _conversations(path: str, records: Iterator[tuple[int, Any]]) -> Iterator[ConversationRecord]:
    for number, record in records:
        try:
            yield ConversationRecord.from_record(record)
        except TrajectoryError as error:
            item = record.get("item_id") if isinstance(record, dict) else None
            name = "" if item is None else f" (item_id {item!r})"
            raise TrajectoryError(f"{path}:{number}{name}: {error}") from None


def _parse(location: str, text: bytes) -> Any:
    """Parse a JSON list or object. Raises TrajectoryError for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list | dict):
        raise _unknown_format(location)
    return value


def _check_message(message: Any, number: int) -> None:
    role = message.get("from") if isinstance(message, dict) else None
    wanted = _ROLES[number % 2]
    if role != wanted:
        raise TrajectoryError(f'message {number + 1} must be from "{wanted}", as the two alternate; got {role!r}')
    if not isinstance(message.get("value"), str):
        raise TrajectoryError(f'message {number + 1} must have a text as its "value"')
    if message.get("loss") not in (True, False, None):
        raise TrajectoryError(f'the "loss" of message {number + 1} must be true, false or null')


def _unknown_format(location: str) -> TrajectoryError:
    return TrajectoryError(
        f"{location}: neither a trajectory (JSONL as agentgym writes it) nor a conversation (a JSON list or JSONL of "
        'objects with "item_id" and "conversations")'
    )

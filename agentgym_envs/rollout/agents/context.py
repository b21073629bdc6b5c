"""Context policies: how much of an episode a model is shown when it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.agents.conversation import Conversation
from agentgym_envs.rollout.agents.models import Dialogue
from agentgym_envs.rollout.play import Limits
from agentgym_envs.trajectory import Message

NOTE_TOKENS = 256
"""The most tokens of a summary, and of a lesson."""
SUMMARISE = (
    "Before you go on, write a summary of this episode so far, for yourself: what you know of the goal and the world, "
    "what you did, what it led to, and what is left to do. Earlier turns will be hidden and only the summary is kept. "
    "Write at most 100 words, and no action yet."
)


@dataclass(frozen=True, slots=True)
class Context:
    """A context policy; `str` gives what `parse_context` reads. `turns` is K, 0 for `full`."""

    kind: Literal["full", "last", "summarise"] = "full"
    turns: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == "full" else f"{self.kind}:{self.turns}"


def parse_context(text: str) -> Context:
    """The context policy that a text names. Raises UsageError.

    - `full`: the whole conversation. The episode ends as `token_limit` when the budget leaves no room.
    - `last:K`: the first observation and the last K turns; a line tells that turns are left out.
    - `summarise:K` (or `summarize:K`): once 2K turns stand, or the budget runs short, the model writes a summary of all
      so far; the first observation, the summary and the last K turns are kept.

    Under the last two, turns are left out earlier if an answer would not have its room.
    """
    kind, colon, number = text.strip().lower().replace("summarize", "summarise").partition(":")
    if kind == "full" and not colon:
        return Context()
    if kind in ("last", "summarise") and number.isdecimal() and int(number) > 0:
        return Context("last" if kind == "last" else "summarise", int(number))
    raise UsageError(
        f"there is no context policy {text!r}; choose full, last:K or summarise:K, with K the turns to keep (last:5)"
    )


async def shown(context: Context, conversation: Conversation, dialogue: Dialogue) -> list[Message]:
    """The messages that the model is to answer now; perhaps it was asked for a summary first."""
    if context.kind == "full":
        return conversation.messages()
    played = len(conversation.answers)
    if context.kind == "last":
        conversation.first = max(conversation.first, played - context.turns)
    else:
        await _keep_summary(context, conversation, dialogue)
    conversation.first = shortened(conversation, dialogue, answer_room(dialogue.limits))
    if dialogue.room(conversation.messages()) < 1:
        conversation.summary = ""
    if dialogue.room(conversation.messages()) < 1:
        conversation.plan = ""
    return conversation.messages()


def answer_room(limits: Limits) -> int:
    """The tokens that are kept free for an answer: a whole one, but at most a quarter of the budget."""
    return max(1, min(limits.max_turn_tokens, limits.max_tokens // 4))


def shortened(conversation: Conversation, dialogue: Dialogue, room: int, ask: str = "") -> int:
    """The first turn to show so that `room` tokens are left for an answer; if none will do, the number of turns."""
    played = len(conversation.answers)
    for first in range(conversation.first, played):
        if dialogue.room(conversation.messages(first, ask=ask)) >= room:
            return first
    return played


async def _keep_summary(context: Context, conversation: Conversation, dialogue: Dialogue) -> None:
    """Have a summary written where one is due, and leave out what it stands for.

    If the reason is the room, enough is left out for the next turns to need none: half of the budget is freed.
    """
    played = len(conversation.answers)
    short = _short(conversation, dialogue)
    if not short and played - conversation.first < 2 * context.turns:
        return
    asked = await _summarise(conversation, dialogue)
    conversation.first = max(conversation.first, played - context.turns)
    if short and asked:
        conversation.first += 1  # whatever the room is now: with all turns, the summary would not be shown
        free = max(dialogue.limits.max_tokens // 2, note_room(dialogue.limits) + 2 * answer_room(dialogue.limits))
        conversation.first = shortened(conversation, dialogue, free, SUMMARISE)


def _short(conversation: Conversation, dialogue: Dialogue) -> bool:
    """Whether one more turn might leave no room to ask for a summary of all that is shown.

    Never in two turns in a row: where even that much does not help, a summary for every action would not either.
    """
    if len(conversation.answers) < conversation.asked + 2:
        return False
    room = dialogue.room(conversation.messages(ask=SUMMARISE))
    return room < note_room(dialogue.limits) + answer_room(dialogue.limits)


def note_room(limits: Limits) -> int:
    """The tokens that are kept free for a summary or a lesson."""
    return min(NOTE_TOKENS, answer_room(limits))


async def _summarise(conversation: Conversation, dialogue: Dialogue) -> bool:
    """Have the model write its summary anew; whether there was room to ask. An empty one leaves the last as it is."""
    cap = note_room(dialogue.limits)
    first = shortened(conversation, dialogue, cap, SUMMARISE)
    reply = await dialogue.reply(conversation.messages(first, ask=SUMMARISE), cap)
    if reply is None:
        return False
    conversation.asked = len(conversation.answers)
    if text := reply.text.strip():
        conversation.summary, conversation.summarised = text, conversation.asked
        conversation.summaries += 1
    return True

"""Context policies: the part of an episode that a model sees when it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentgym_envs.errors import UsageError
from agentgym_envs.rollout.agents.conversation import Conversation
from agentgym_envs.rollout.agents.models import Dialogue
from agentgym_envs.rollout.play import Limits
from agentgym_envs.trajectory import Message

SUMMARY_TOKENS = 256
"""The maximum number of tokens of a summary and of a lesson."""
SUMMARISE = (
    "Before you go on, write a summary of this episode so far, for yourself: what you know of the goal and the world, "
    "what you did, what it led to, and what is left to do. Earlier turns will be hidden and only the summary is kept. "
    "Write at most 100 words, and no action yet."
)


@dataclass(frozen=True, slots=True)
class Context:
    """A context policy. `str()` gives the form that `parse_context` reads. `turns` is K, 0 for `full`."""

    kind: Literal["full", "last", "summarise"] = "full"
    turns: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == "full" else f"{self.kind}:{self.turns}"


def parse_context(text: str) -> Context:
    """Parse a context policy. Raises UsageError.

    - `full`: the whole conversation. The episode ends as `token_limit` when the budget is used up.
    - `last:K`: the first observation and the last K turns; a line says that turns are left out.
    - `summarise:K` (or `summarize:K`): after 2K turns, or when the budget runs short, the model writes a summary of all
      so far; the first observation, the summary and the last K turns are kept.

    The last two leave turns out earlier if an answer would not fit.
    """
    kind, colon, number = text.strip().lower().replace("summarize", "summarise").partition(":")
    if kind == "full" and not colon:
        return Context()
    if kind in ("last", "summarise") and number.isdecimal() and int(number) > 0:
        return Context("last" if kind == "last" else "summarise", int(number))
    raise UsageError(
        f"there is no context policy {text!r}; choose full, last:K or summarise:K, with K the turns to keep (last:5)"
    )


async def visible_messages(context: Context, conversation: Conversation, dialogue: Dialogue) -> list[Message]:
    """The messages that the model answers next. May first ask the model for a summary."""
    if context.kind == "full":
        return conversation.messages()
    played = len(conversation.answers)
    if context.kind == "last":
        conversation.first = max(conversation.first, played - context.turns)
    else:
        await _keep_summary(context, conversation, dialogue)
    conversation.first = first_turn_that_fits(conversation, dialogue, answer_room(dialogue.limits))
    if dialogue.room(conversation.messages()) < 1:
        conversation.summary = ""
    if dialogue.room(conversation.messages()) < 1:
        conversation.plan = ""
    return conversation.messages()


def answer_room(limits: Limits) -> int:
    """The tokens reserved for an answer: a full answer, but at most a quarter of the budget."""
    return max(1, min(limits.max_turn_tokens, limits.max_tokens // 4))


def first_turn_that_fits(conversation: Conversation, dialogue: Dialogue, room: int, ask: str = "") -> int:
    """The first turn to show so that `room` tokens remain for an answer; the number of turns if none leaves that."""
    played = len(conversation.answers)
    for first in range(conversation.first, played):
        if dialogue.room(conversation.messages(first, ask=ask)) >= room:
            return first
    return played


async def _keep_summary(context: Context, conversation: Conversation, dialogue: Dialogue) -> None:
    """Ask for a summary if one is due, and leave out the turns that it covers.

    If the budget is the reason, half of it is freed, so that the next turns need no summary.
    """
    played = len(conversation.answers)
    short = _runs_short(conversation, dialogue)
    if not short and played - conversation.first < 2 * context.turns:
        return
    asked = await _summarise(conversation, dialogue)
    conversation.first = max(conversation.first, played - context.turns)
    if short and asked:
        conversation.first += 1  # even if all turns fit: with all turns shown, the summary would not be
        free = max(dialogue.limits.max_tokens // 2, summary_room(dialogue.limits) + 2 * answer_room(dialogue.limits))
        conversation.first = first_turn_that_fits(conversation, dialogue, free, SUMMARISE)


def _runs_short(conversation: Conversation, dialogue: Dialogue) -> bool:
    """True if one more turn might leave no room to ask for a summary of the visible turns.

    Never in two successive turns: if one summary did not free enough, a summary for every action would not either.
    """
    if len(conversation.answers) < conversation.asked_at + 2:
        return False
    room = dialogue.room(conversation.messages(ask=SUMMARISE))
    return room < summary_room(dialogue.limits) + answer_room(dialogue.limits)


def summary_room(limits: Limits) -> int:
    """The tokens reserved for a summary or a lesson."""
    return min(SUMMARY_TOKENS, answer_room(limits))


async def _summarise(conversation: Conversation, dialogue: Dialogue) -> bool:
    """Ask the model for a new summary; False if the budget is too small. An empty answer keeps the old summary."""
    cap = summary_room(dialogue.limits)
    first = first_turn_that_fits(conversation, dialogue, cap, SUMMARISE)
    reply = await dialogue.reply(conversation.messages(first, ask=SUMMARISE), cap)
    if reply is None:
        return False
    conversation.asked_at = len(conversation.answers)
    if text := reply.text.strip():
        conversation.summary, conversation.summarised_until = text, conversation.asked_at
        conversation.summaries += 1
    return True

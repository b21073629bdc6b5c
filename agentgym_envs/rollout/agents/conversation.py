"""The conversation of one attempt, and the part of it that the model sees."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentgym_envs.trajectory import Message


@dataclass(slots=True)
class Conversation:
    """Observations and answers of one attempt, with the agent's plan and summary.

    `observations` has one more entry than `answers` while an answer is pending. Turns are counted from 0; those before
    `first` are no longer shown. `plan` was written before turn `planned_at`. `summary` covers the turns before
    `summarised_until`; it was last asked for before turn `asked_at`. `summaries` counts the summaries written.
    """

    system: str
    observations: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    opening: list[Message] = field(default_factory=list)
    """The first observation and the messages about the plan; empty without a plan."""
    first: int = 0
    plan: str = ""
    planned_at: int = 0
    summary: str = ""
    summarised_until: int = 0
    summaries: int = 0
    asked_at: int = 0

    def messages(self, first: int | None = None, *, ask: str = "") -> list[Message]:
        """The messages to answer, with the turns from `first` on; `ask` is appended to the newest observation.

        With all turns, the messages are the exact conversation, so that they continue the earlier messages. Otherwise
        one message holds the first observation, the plan and summary of the omitted turns, and the next observation.
        """
        first = self.first if first is None else first
        visible = [{"role": "system", "content": self.system}] if self.system else []
        if first:
            visible.append(user(self._head(first)))
        else:
            visible += self.opening or [user(self.observations[0])]
        for answer, observation in zip(self.answers[first:], self.observations[first + 1 :], strict=True):
            visible += [{"role": "assistant", "content": answer}, user(observation)]
        if ask:
            visible[-1] = user(f"{visible[-1]['content']}\n\n{ask}")
        return visible

    def _head(self, first: int) -> str:
        plan = f"Your plan:\n{self.plan}" if self.plan and self.planned_at < first else ""
        summary = f"Your summary of {_turns(self.summarised_until)}:\n{self.summary}" if self.summary else ""
        omitted = (
            f"({_turns(first).capitalize()} of this episode {'is' if first == 1 else 'are'} not shown. Then you saw:)"
        )
        return "\n\n".join(
            part for part in (self.observations[0], plan, summary, omitted, self.observations[first]) if part
        )


def user(content: str) -> Message:
    """A user message."""
    return {"role": "user", "content": content}


def _turns(count: int) -> str:
    return "turn 1" if count == 1 else f"turns 1 to {count}"

"""What was said in one try, and what of it a model is shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from agentgym_envs.trajectory import Message


@dataclass(slots=True)
class Conversation:
    """Observations and answers of one try, with what the agent keeps beside them.

    `observations` has one more entry than `answers` while an answer is waited for. Turns are counted from 0; those
    before `first` are not shown any more. `plan` was written before turn `planned`, `summary` covers the turns before
    `summarised`, `summaries` counts how often one was written; before turn `asked` one was asked for last.
    """

    system: str
    observations: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    opening: list[Message] = field(default_factory=list)
    """The messages before the first action, if there are more than the first observation: those about the plan."""
    first: int = 0
    plan: str = ""
    planned: int = 0
    summary: str = ""
    summarised: int = 0
    summaries: int = 0
    asked: int = 0

    def messages(self, first: int | None = None, *, ask: str = "") -> list[Message]:
        """The messages to answer, with the turns from `first` on; `ask` stands behind the newest observation.

        With all turns they are what was said, word for word, so that they continue the messages before. Otherwise one
        message holds the first observation, what is kept of the turns left out, and what was seen after these.
        """
        first = self.first if first is None else first
        shown = [{"role": "system", "content": self.system}] if self.system else []
        if first:
            shown.append(user(self._head(first)))
        else:
            shown += self.opening or [user(self.observations[0])]
        for answer, observation in zip(self.answers[first:], self.observations[first + 1 :], strict=True):
            shown += [{"role": "assistant", "content": answer}, user(observation)]
        if ask:
            shown[-1] = user(f"{shown[-1]['content']}\n\n{ask}")
        return shown

    def _head(self, first: int) -> str:
        plan = f"Your plan:\n{self.plan}" if self.plan and self.planned < first else ""
        summary = f"Your summary of {_turns(self.summarised)}:\n{self.summary}" if self.summary else ""
        left = (
            f"({_turns(first).capitalize()} of this episode {'is' if first == 1 else 'are'} not shown. Then you saw:)"
        )
        return "\n\n".join(
            part for part in (self.observations[0], plan, summary, left, self.observations[first]) if part
        )


def user(content: str) -> Message:
    """A message to the model."""
    return {"role": "user", "content": content}


def _turns(count: int) -> str:
    return "turn 1" if count == 1 else f"turns 1 to {count}"

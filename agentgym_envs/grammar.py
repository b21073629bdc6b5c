"""Grammars: the format of an action in a model's answer (bare, ReAct, tag, fenced block, tool call).

A grammar parses an assistant message into a command for the environment (`parse`), describes the format to the
model (`instructions`), and writes a command in it (`format`, used for demonstrations). For every command that the
grammar can hold, without surrounding white space, `parse(format(command)).command == command`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from agentgym_envs.errors import InvalidAction, UsageError


class Parsed(NamedTuple):
    """A thought (may be empty) and the command for the environment."""

    thought: str
    command: str


class ActionGrammar(Protocol):
    """Turns one assistant message into a command."""

    @property
    def name(self) -> str:
        """The name for `make_grammar`."""

    @property
    def instructions(self) -> str:
        """The description of the format, for the system prompt."""

    def parse(self, text: str) -> Parsed:
        """Parse a message. Raises InvalidAction, whose text is the reply to the model, and no other error."""

    def format(self, command: str, thought: str = "") -> str:
        """Write a message that `parse` can read."""


@dataclass(frozen=True, slots=True)
class BareGrammar:
    """The whole message is the command."""

    name: str = "bare"
    instructions: str = "Answer with one action and nothing else."

    def parse(self, text: str) -> Parsed:
        """Return the message without surrounding white space."""
        return Parsed("", text.strip())

    def format(self, command: str, thought: str = "") -> str:
        """Return the command. This format cannot hold a thought."""
        return command


_REACT = re.compile(r"(?:\A|\n)[ \t]*action[ \t]*:", re.IGNORECASE)
_THOUGHT = re.compile(r"\A\s*thought[ \t]*:", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReActGrammar:
    """`Thought: ...` and then `Action: ...`; everything after the last `Action:` is the command.

    Source: ReAct, arXiv 2210.03629; the format of AgentGym's prompts.
    """

    name: str = "react"
    instructions: str = "Answer in this form:\nThought: your reasoning\nAction: one action"

    def parse(self, text: str) -> Parsed:
        """Read the text after the last `Action:` at the beginning of a line."""
        marks = list(_REACT.finditer(text))
        if not marks:
            raise InvalidAction("No action found. Write a line that begins with 'Action:', followed by one action.")
        thought = _THOUGHT.sub("", text[: marks[-1].start()], count=1)
        return Parsed(thought.strip(), text[marks[-1].end() :].strip())

    def format(self, command: str, thought: str = "") -> str:
        """Write both lines; `Thought:` is empty without a thought."""
        return f"Thought: {thought}\nAction: {command}"


@dataclass(frozen=True, slots=True)
class TagGrammar:
    """`<action>command</action>`, with free text around it; the last complete tag counts."""

    tag: str = "action"
    name: str = "tag"

    @property
    def instructions(self) -> str:
        """The instructions, with the tag."""
        return f"You may think first. Then write one action as <{self.tag}>action</{self.tag}>."

    def parse(self, text: str) -> Parsed:
        """Read the content of the last `<tag>...</tag>` pair without another opening tag inside."""
        if not (found := last_pair(text, self.tag)):
            raise InvalidAction(f"No action found. Write one action between <{self.tag}> and </{self.tag}>.")
        thought, body = found
        return Parsed(thought, body)

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and the tag on its own line."""
        return f"{thought}\n<{self.tag}>{command}</{self.tag}>".lstrip("\n")


def last_pair(text: str, tag: str) -> tuple[str, str] | None:
    """The texts before and inside the last `<tag>...</tag>`, stripped. Takes linear time, unlike a regex."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    end = text.rfind(closing)
    start = text.rfind(opening, 0, max(end, 0))
    if start < 0:
        return None
    return text[:start].strip(), text[start + len(opening) : end].strip()


_FENCE = re.compile(r"```[^\n`]*\n(.*?)\n?```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FencedGrammar:
    """A Markdown code block; the last complete block is the command."""

    name: str = "fenced"
    instructions: str = "You may think first. Then write one action in a code block:\n```\naction\n```"

    def parse(self, text: str) -> Parsed:
        """Read the content of the last code block."""
        blocks = list(_FENCE.finditer(text))
        if not blocks:
            raise InvalidAction("No action found. Write one action in a code block between two lines of ```.")
        return Parsed(text[: blocks[-1].start()].strip(), blocks[-1][1].strip())

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and the block."""
        return f"{thought}\n```\n{command}\n```".lstrip("\n")


@dataclass(frozen=True, slots=True)
class ToolCallGrammar:
    """`<tool_call>{"name": "act", "arguments": {"action": "..."}}</tool_call>`, as Hermes and Qwen write tool calls.

    Source: the Hermes function-calling format, https://github.com/NousResearch/Hermes-Function-Calling
    """

    name: str = "tool_call"
    instructions: str = (
        "Answer with one call of the tool `act`, whose argument `action` is one action:\n"
        '<tool_call>\n{"name": "act", "arguments": {"action": "..."}}\n</tool_call>'
    )

    def parse(self, text: str) -> Parsed:
        """Read the argument `action` of the last tool call."""
        if not (found := last_pair(text, "tool_call")):
            raise InvalidAction("No tool call found. Call the tool `act` between <tool_call> and </tool_call>.")
        thought, body = found
        return Parsed(thought, _tool_argument(body))

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and the call."""
        call = json.dumps({"name": "act", "arguments": {"action": command}}, ensure_ascii=False)
        return f"{thought}\n<tool_call>\n{call}\n</tool_call>".lstrip("\n")


def _tool_argument(body: str) -> str:
    try:
        call = json.loads(body)
        action = call["arguments"]["action"]
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        action = None
    if not isinstance(action, str):
        raise InvalidAction('The tool call is not valid. Write {"name": "act", "arguments": {"action": "..."}}.')
    if call.get("name") != "act":
        raise InvalidAction("There is only one tool, and its name is `act`.")
    return action.strip()


GRAMMARS: dict[str, Callable[[], ActionGrammar]] = {
    "bare": BareGrammar,
    "react": ReActGrammar,
    "tag": TagGrammar,
    "fenced": FencedGrammar,
    "tool_call": ToolCallGrammar,
}


def make_grammar(
    grammar: str | ActionGrammar, known: Mapping[str, Callable[[], ActionGrammar]] = GRAMMARS
) -> ActionGrammar:
    """Return the grammar of that name, or a given grammar object. Raises UsageError for an unknown name."""
    if not isinstance(grammar, str):
        if not callable(getattr(grammar, "parse", None)):
            raise UsageError(f"a grammar is one of {', '.join(known)}, or an ActionGrammar, got {grammar!r:.80}")
        return grammar
    if grammar not in known:
        raise UsageError(f"there is no grammar {grammar!r}; choose one of {', '.join(known)}")
    return known[grammar]()

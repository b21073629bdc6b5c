"""Grammars: the format of an action in a model's answer (bare, ReAct, tag, fenced block, tool call, native tools).

A grammar parses an assistant message into a command for the environment (`parse`), describes the format to the
model (`instructions`), and writes a command in it (`format`, used for demonstrations). For every command that the
grammar can hold, without surrounding white space, `parse(format(command)).command == command`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

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


class ToolCall(NamedTuple):
    """A tool call in a model's answer, and the text before it."""

    thought: str
    name: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        """The answer in the format of Hermes and Qwen."""
        call = json.dumps({"name": self.name, "arguments": self.arguments}, ensure_ascii=False)
        call = call.replace("tool_call>", r"tool_call\u003e")
        return f"{self.thought}\n<tool_call>\n{call}\n</tool_call>".lstrip("\n")


_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_FUNCTION = re.compile(r"<function=([^<>\n]+)>(.*)</function>", re.DOTALL)


def find_call(text: str) -> ToolCall | None:
    """The last tool call of a model's answer, as servers read it; None if there is none, or an invalid one.

    Read are the formats of Hermes and Qwen (JSON between tags), Qwen3.5 (parameters in tags), Llama 3 (the whole answer
    is JSON) and Mistral (a list after `[TOOL_CALLS]`).
    """
    if pair := last_pair(text, "tool_call"):
        thought, body = pair
        function = _FUNCTION.fullmatch(body)
        return _tagged_call(thought, function) if function else _json_call(thought, body)
    thought, mark, body = text.rpartition("[TOOL_CALLS]")
    if not mark:
        thought, mark, body = text.rpartition("</think>")
        thought += mark
    return _json_call(thought.strip(), body.strip().removeprefix("<|python_tag|>").strip())


def _json_call(thought: str, body: str) -> ToolCall | None:
    try:
        call = json.loads(body)
        call = call[-1] if isinstance(call, list) else call
        name, arguments = call["name"], call.get("arguments", call.get("parameters"))
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None
    return _checked(ToolCall(thought, name, {} if arguments is None else arguments))


def _tagged_call(thought: str, function: re.Match[str]) -> ToolCall | None:
    texts = [part.partition("<parameter=")[2].partition(">") for part in function[2].split("</parameter>")[:-1]]
    arguments = {name: value.removeprefix("\n").removesuffix("\n") for name, _, value in texts}
    return _checked(ToolCall(thought, function[1], arguments))


def _checked(call: ToolCall) -> ToolCall | None:
    """The call, if its names are those of tools and parameters."""
    valid = isinstance(call.name, str) and isinstance(call.arguments, dict)
    return call if valid and all(map(_NAME.fullmatch, (call.name, *call.arguments))) else None


def make_tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    """A tool with texts as parameters, in the JSON schema of OpenAI's API; `parameters` are their descriptions."""
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


NATIVE_INSTRUCTIONS = "Answer with one call of a tool."


def require_call(text: str, tools: Iterable[Mapping[str, Any]]) -> str:
    """The tool call of an answer in the format of Hermes and Qwen. Raises InvalidAction, which names the tools."""
    if (call := find_call(text)) is None:
        names = ", ".join(tool["function"]["name"] for tool in tools)
        raise InvalidAction(f"No valid tool call found. Answer with one call of a tool ({names}).")
    return str(call)


@dataclass(frozen=True, slots=True)
class ToolsGrammar(ToolCallGrammar):
    """Native tool calls: the chat template describes `tools`, and the model calls them in its own format.

    `parse` reads the formats of `find_call`; `format` writes that of Hermes and Qwen, which `ChatCodec` translates.
    """

    name: str = "tools"
    instructions: str = NATIVE_INSTRUCTIONS

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools in the JSON schema of OpenAI's API and of chat templates."""
        return [make_tool("act", "Take one action.", action="The action.")]

    def parse(self, text: str) -> Parsed:
        """Read the argument `action` of the last tool call."""
        return ToolCallGrammar.parse(self, require_call(text, self.tools))


def tools_of(grammar: ActionGrammar) -> list[dict[str, Any]]:
    """The tools that a chat template has to show for this grammar; empty if it describes its format itself."""
    return list(getattr(grammar, "tools", ()))


GRAMMARS: dict[str, Callable[[], ActionGrammar]] = {
    "bare": BareGrammar,
    "react": ReActGrammar,
    "tag": TagGrammar,
    "fenced": FencedGrammar,
    "tool_call": ToolCallGrammar,
}
"""The grammars that any model can write, as they describe their format in the system prompt."""
ENV_GRAMMARS: dict[str, Callable[[], ActionGrammar]] = {**GRAMMARS, "tools": ToolsGrammar}
"""The grammars of an environment: also native tools, for which the chat template of the model needs tools."""


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

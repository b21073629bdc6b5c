"""Parsing a message: the first complete tag of a tool outside of thoughts is the action.

A form of Search is a table of tools: `search` and `answer`, or also those that read pages. Tags, tool calls, their
descriptions and the replies to invalid messages follow from the table. `read_search_r1` implements Search-R1's own
rule, for comparison.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import (
    GRAMMARS,
    NATIVE_INSTRUCTIONS,
    ActionGrammar,
    Parsed,
    last_pair,
    make_tool,
    require_call,
)


class TagTool(NamedTuple):
    """A tool: a tag with one text in it, or a tool call with one argument.

    Attributes:
        name: the name of the tag and of the tool.
        argument: the name of the argument.
        example: the argument in the reply to an invalid message.
        purpose: completes "to ..." in that reply.
        description: of the tool, for tool calls.
        about: of the argument, for tool calls.
    """

    name: str
    argument: str
    example: str
    purpose: str
    description: str
    about: str


SEARCH = TagTool("search", "query", "your query", "search", "Search the corpus.", "The query.")
ANSWER = TagTool(
    "answer", "answer", "your answer", "answer", "Answer the question, which ends the episode.", "The answer."
)
SEARCH_TOOLS = (SEARCH, ANSWER)
"""Search-R1's tools."""
_UNCLOSED = "Your thought has no end, and nothing in a thought is carried out. Write </think> before you act."
_THINK = re.compile(r"<(/?)think>")
_FIRST = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)


class SearchAction(NamedTuple):
    """The name of a tool, and its argument without surrounding white space: a query or an answer, for example."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"<{self.kind}>{self.text}</{self.kind}>"


class SplitMessage(NamedTuple):
    """A message split into its thoughts and the rest. `open` is true if it ends within a thought."""

    thought: str
    rest: str
    open: bool


def split_thought(message: str) -> SplitMessage:
    """Separate the thoughts from the rest of a message.

    A `</think>` without a `<think>` ends a thought that began before the message: chat templates of reasoning models
    write the `<think>` themselves.
    """
    thoughts, rest, begin, thinking = list[str](), list[str](), 0, False
    for mark in _THINK.finditer(message):
        piece, begin, opens = message[begin : mark.start()], mark.end(), not mark[1]
        if thinking:
            thoughts.append(piece)
        elif opens:
            rest.append(piece)
        else:
            thoughts, rest = [*thoughts, *rest, piece], []
        thinking = opens
    (thoughts if thinking else rest).append(message[begin:])
    return SplitMessage("".join(thoughts).strip(), "".join(rest), thinking)


def read_action(message: str, tools: Sequence[TagTool] = SEARCH_TOOLS) -> SearchAction:
    """Return the first complete tag outside of thoughts. Raises InvalidAction."""
    split = split_thought(message)
    found = [(pair, tool) for tool in tools if (pair := _first_pair(split.rest, tool.name))]
    if not found:
        raise InvalidAction(_UNCLOSED if split.open else f"This is not a valid action. {explain(tools)}")
    (_, action), tool = min(found, key=lambda each: each[0][0])
    if not action.text:
        raise InvalidAction(f"Your {tool.argument} is empty. This is not a valid action. {explain(tools)}")
    return action


def explain(tools: Sequence[TagTool]) -> str:
    """Say how to write each action, for a model that wrote none."""
    ways = [f"<{tool.name}>{tool.example}</{tool.name}> to {tool.purpose}" for tool in tools]
    return f"Write {_either(ways, ', or ')}."


def _either(parts: Sequence[str], last: str = " or ") -> str:
    return last.join([", ".join(parts[:-1]), parts[-1]])


def _first_pair(text: str, kind: str) -> tuple[int, SearchAction] | None:
    """Return the start and content of the first closed tag of a kind, in linear time (a regex would be quadratic)."""
    opening, closing = f"<{kind}>", f"</{kind}>"
    begin = text.find(opening)
    end = text.find(closing, begin + len(opening)) if begin >= 0 else -1
    return None if end < 0 else (begin, SearchAction(kind, text[begin + len(opening) : end].strip()))


def truncate_search_r1(message: str) -> str:
    """Truncate a response as Search-R1 does: after its first `</search>`, else after its first `</answer>`.

    Source: https://github.com/PeterGriffinJin/Search-R1, search_r1/llm_agent/generation.py.
    """
    for closing in ("</search>", "</answer>"):
        before, mark, _ = message.partition(closing)
        if mark:
            return before + mark
    return message


def read_search_r1(message: str) -> SearchAction:
    """Return the first complete tag, in a thought or not, as Search-R1 does. It may be empty. Raises InvalidAction."""
    found = _FIRST.search(truncate_search_r1(message))
    if not found:
        raise InvalidAction(f"This is not a valid action. {explain(SEARCH_TOOLS)}")
    return SearchAction(found[1], found[2].strip())


@dataclass(frozen=True, slots=True)
class SearchTags:
    """The action as a tag, optionally after a thought: the form in which Search-R1 is trained."""

    table: tuple[TagTool, ...] = SEARCH_TOOLS
    name: str = "bare"

    @property
    def instructions(self) -> str:
        """The description of the format, with every tag."""
        tags = [f"<{tool.name}>{tool.argument}</{tool.name}>" for tool in self.table]
        return (
            f"Think first, between <think> and </think>. Then write one action, {_either(tags)}, and nothing after it."
        )

    def parse(self, text: str) -> Parsed:
        """Return the thought and the whole message: the environment reads tags itself."""
        return Parsed(split_thought(text).thought, text.strip())

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, in its tags, and the command."""
        return f"<think>{thought}</think>\n{command}" if thought else command


@dataclass(frozen=True, slots=True)
class SearchTools:
    """A tool call, such as `search(query)` and `answer(answer)`, in the format of Hermes and Qwen.

    Source: the Hermes function-calling format, https://github.com/NousResearch/Hermes-Function-Calling
    """

    table: tuple[TagTool, ...] = SEARCH_TOOLS
    name: str = "tool_call"

    @property
    def instructions(self) -> str:
        """The description of the format, with every tool."""
        tools = [f"`{tool.name}` (argument `{tool.argument}`)" for tool in self.table]
        examples = [f"\n<tool_call>\n{_example(tool)}\n</tool_call>" for tool in self.table]
        return f"Answer with one call of a tool, {_either(tools)}, for example:{''.join(examples)}"

    def parse(self, text: str) -> Parsed:
        """Return the thought and the last tool call as a tag. Raises InvalidAction."""
        if not (found := last_pair(text, "tool_call")):
            names = _either([f"`{tool.name}`" for tool in self.table])
            raise InvalidAction(f"No tool call found. Call {names} between <tool_call> and </tool_call>.")
        thought, body = found
        return Parsed(split_thought(thought).thought or thought, str(self._action(body)))

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and the call."""
        action = read_action(command, self.table)
        [argument] = [tool.argument for tool in self.table if tool.name == action.kind]
        call = json.dumps({"name": action.kind, "arguments": {argument: action.text}}, ensure_ascii=False)
        return f"{thought}\n<tool_call>\n{call}\n</tool_call>".lstrip("\n")

    def _action(self, body: str) -> SearchAction:
        arguments_of = {tool.name: tool.argument for tool in self.table}
        try:
            call = json.loads(body)
            name, arguments = call["name"], call["arguments"]
            text = arguments.get(arguments_of[name])
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
            name, text = None, None
        if isinstance(text, int | float) and not isinstance(text, bool):
            text = str(text)
        if not isinstance(text, str):
            ways = _either([_example(tool) for tool in self.table])
            raise InvalidAction(f"The tool call is not valid. Write {ways}, the argument as a text.")
        return SearchAction(name, _tags_of(tuple(arguments_of)).sub(" ", text).strip())


@dataclass(frozen=True, slots=True)
class SearchNativeTools(SearchTools):
    """The tools as native tools; see `agentgym_envs.grammar.ToolsGrammar`."""

    name: str = "tools"

    @property
    def instructions(self) -> str:
        """The description of the format: the chat template shows the tools."""
        return NATIVE_INSTRUCTIONS

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools in the JSON schema of OpenAI's API."""
        return [make_tool(tool.name, tool.description, **{tool.argument: tool.about}) for tool in self.table]

    def parse(self, text: str) -> Parsed:
        """Return the thought and the last tool call as a tag. Raises InvalidAction."""
        return SearchTools.parse(self, require_call(text, self.tools))


def search_grammars(table: tuple[TagTool, ...]) -> dict[str, Callable[[], ActionGrammar]]:
    """The grammars of an environment with these tools."""
    return GRAMMARS | {
        "bare": partial(SearchTags, table),
        "tool_call": partial(SearchTools, table),
        "tools": partial(SearchNativeTools, table),
    }


def _example(tool: TagTool) -> str:
    return json.dumps({"name": tool.name, "arguments": {tool.argument: "..."}})


@lru_cache
def _tags_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Matches the tags of these tools, which an argument must not hold."""
    return re.compile(rf"</?(?:think|{'|'.join(names)})>")

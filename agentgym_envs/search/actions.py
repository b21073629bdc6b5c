"""Parsing a message: the first complete `<search>` or `<answer>` tag outside of thoughts is the action.

`read_action` implements the environment's own rule; `read_search_r1` implements Search-R1's, for comparison.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import NATIVE_INSTRUCTIONS, Parsed, last_pair, make_tool, require_call

INVALID = (
    "This is not a valid action. Write <search>your query</search> to search, or <answer>your answer</answer> to "
    "answer."
)
_UNCLOSED = "Your thought has no end, and nothing in a thought is carried out. Write </think> before you act."
_KINDS: tuple[Literal["search"], Literal["answer"]] = ("search", "answer")
_THINK = re.compile(r"<(/?)think>")
_TAG = re.compile(r"</?(?:think|search|answer)>")
_FIRST = re.compile(r"<(search|answer)>(.*?)</\1>", re.DOTALL)


class SearchAction(NamedTuple):
    """A query or an answer, stripped of white space."""

    kind: Literal["search", "answer"]
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


def read_action(message: str) -> SearchAction:
    """Return the first complete tag outside of thoughts. Raises InvalidAction."""
    split = split_thought(message)
    found = [pair for kind in _KINDS if (pair := _first_pair(split.rest, kind))]
    if not found:
        raise InvalidAction(_UNCLOSED if split.open else INVALID)
    _, action = min(found, key=lambda pair: pair[0])
    if not action.text:
        raise InvalidAction(f"Your {'query' if action.kind == 'search' else 'answer'} is empty. {INVALID}")
    return action


def _first_pair(text: str, kind: Literal["search", "answer"]) -> tuple[int, SearchAction] | None:
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
        raise InvalidAction(INVALID)
    return SearchAction("search" if found[1] == "search" else "answer", found[2].strip())


@dataclass(frozen=True, slots=True)
class SearchTags:
    """The action as a tag, optionally after a thought: the form in which Search-R1 is trained."""

    name: str = "bare"
    instructions: str = (
        "Think first, between <think> and </think>. Then write one action, <search>query</search> or "
        "<answer>answer</answer>, and nothing after it."
    )

    def parse(self, text: str) -> Parsed:
        """Return the thought and the whole message: the environment reads tags itself."""
        return Parsed(split_thought(text).thought, text.strip())

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, in its tags, and the command."""
        return f"<think>{thought}</think>\n{command}" if thought else command


@dataclass(frozen=True, slots=True)
class SearchTools:
    """Tool calls: `search(query)` and `answer(answer)`, in the format of Hermes and Qwen.

    Source: the Hermes function-calling format, https://github.com/NousResearch/Hermes-Function-Calling
    """

    name: str = "tool_call"
    instructions: str = (
        "Answer with one call of a tool, `search` (argument `query`) or `answer` (argument `answer`), for example:\n"
        '<tool_call>\n{"name": "search", "arguments": {"query": "..."}}\n</tool_call>\n'
        '<tool_call>\n{"name": "answer", "arguments": {"answer": "..."}}\n</tool_call>'
    )

    def parse(self, text: str) -> Parsed:
        """Return the thought and the last tool call as a tag. Raises InvalidAction."""
        if not (found := last_pair(text, "tool_call")):
            raise InvalidAction("No tool call found. Call `search` or `answer` between <tool_call> and </tool_call>.")
        thought, body = found
        return Parsed(split_thought(thought).thought or thought, str(_tool_action(body)))

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and the call."""
        action = read_action(command)
        argument = "query" if action.kind == "search" else "answer"
        call = json.dumps({"name": action.kind, "arguments": {argument: action.text}}, ensure_ascii=False)
        return f"{thought}\n<tool_call>\n{call}\n</tool_call>".lstrip("\n")


@dataclass(frozen=True, slots=True)
class SearchNativeTools(SearchTools):
    """`search(query)` and `answer(answer)` as native tools; see `agentgym_envs.grammar.ToolsGrammar`."""

    name: str = "tools"
    instructions: str = NATIVE_INSTRUCTIONS

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools in the JSON schema of OpenAI's API."""
        return [
            make_tool("search", "Search the corpus.", query="The query."),
            make_tool("answer", "Answer the question, which ends the episode.", answer="The answer."),
        ]

    def parse(self, text: str) -> Parsed:
        """Return the thought and the last tool call as a tag. Raises InvalidAction."""
        return SearchTools.parse(self, require_call(text, self.tools))


def _tool_action(body: str) -> SearchAction:
    try:
        call = json.loads(body)
        name, arguments = call["name"], call["arguments"]
        text = arguments.get("query" if name == "search" else "answer")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        name, text = None, None
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = str(text)
    if name not in _KINDS or not isinstance(text, str):
        raise InvalidAction(
            'The tool call is not valid. Write {"name": "search", "arguments": {"query": "..."}} or '
            '{"name": "answer", "arguments": {"answer": "..."}}, the argument as a text.'
        )
    return SearchAction(name, _TAG.sub(" ", text).strip())

"""The grammar `command_tools`: one native tool per command of a scenario, instead of the one tool `act`.

A scenario declares its tools as a table of `CommandTool`. Everything else is derived from the table: the JSON schemas
for chat templates and MCP, the command of a call, and the call of a command (for demonstrations).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import (
    ENV_GRAMMARS,
    NATIVE_INSTRUCTIONS,
    ActionGrammar,
    Parsed,
    ToolCall,
    find_call,
    make_tool,
    require_call,
)

COMMAND_TOOLS = "command_tools"
_ACT = make_tool("act", "Take one action that no other tool offers.", action="The action.")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_PATTERNS = {"string": r"(?P<{0}>\S(?:.*?\S)?)", "integer": r"(?P<{0}>[1-9][0-9]{{0,8}})"}


class Number(NamedTuple):
    """A parameter that is a whole number from 1."""

    description: str


@dataclass(frozen=True)
class CommandTool:
    """A tool, and the command that a call of it means.

    `command` has the parameters in braces, such as "get {amount} {item}". `parameters` maps each to its description: a
    text for a text, `Number` for a whole number.
    """

    name: str
    description: str
    command: str
    parameters: Mapping[str, str | Number]

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The tool in the JSON schema of OpenAI's API."""
        tool = make_tool(self.name, self.description, **{key: _text(value) for key, value in self.parameters.items()})
        for key, value in self.parameters.items():
            if isinstance(value, Number):
                tool["function"]["parameters"]["properties"][key] |= {"type": "integer", "minimum": 1}
        return tool

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches the commands that the tool can write."""
        parts = re.split(r"\{(\w+)\}", self.command)
        parts[0::2] = map(re.escape, parts[0::2])
        parts[1::2] = [_PATTERNS[self._type(key)].format(key) for key in parts[1::2]]
        return re.compile("".join(parts))

    def command_for(self, arguments: Mapping[str, Any]) -> str:
        """The command of a call. Raises InvalidAction."""
        if arguments.keys() != self.parameters.keys():
            signature = f"{self.name}({', '.join(self.parameters)})"
            raise InvalidAction(f"These are not the arguments of the tool {self.name}. Call it as {signature}.")
        return self.command.format_map({key: self._value(key, value) for key, value in arguments.items()})

    def arguments_of(self, command: str) -> dict[str, Any] | None:
        """The arguments that mean a command; None if the tool cannot write it."""
        found = self.pattern.fullmatch(command)
        if found is None:
            return None
        integers = {key for key in self.parameters if self._type(key) == "integer"}
        return {key: int(value) if key in integers else value for key, value in found.groupdict().items()}

    def _type(self, key: str) -> str:
        return "integer" if isinstance(self.parameters[key], Number) else "string"

    def _value(self, key: str, value: Any) -> str:
        """An argument as text. A quoted number and an unquoted text are accepted."""
        number = isinstance(value, int) and not isinstance(value, bool)
        if self._type(key) == "integer":
            if number or (isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value)):
                return str(int(value))
            raise InvalidAction(f"The argument {key} of the tool {self.name} must be a whole number.")
        if number or isinstance(value, str):
            return str(value).strip()
        raise InvalidAction(f"The argument {key} of the tool {self.name} must be a text.")


@dataclass(frozen=True)
class CommandToolsGrammar:
    """Native tool calls with one tool per command, and `act` for every other command."""

    commands: tuple[CommandTool, ...]
    name: str = COMMAND_TOOLS
    instructions: str = NATIVE_INSTRUCTIONS

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools in the JSON schema of OpenAI's API."""
        return [*(tool.schema for tool in self.commands), _ACT]

    def parse(self, text: str) -> Parsed:
        """Read the last tool call as a command. Raises InvalidAction."""
        call = find_call(require_call(text, self.tools))
        assert call is not None
        if call.name == "act":
            return Parsed(call.thought, _action(call.arguments))
        for tool in self.commands:
            if tool.name == call.name:
                return Parsed(call.thought, tool.command_for(call.arguments))
        names = ", ".join(tool["function"]["name"] for tool in self.tools)
        raise InvalidAction(f"There is no tool {call.name!r}. The tools are: {names}.")

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and a call of the first tool that can write the command."""
        for tool in self.commands:
            if (arguments := tool.arguments_of(command)) is not None:
                return str(ToolCall(thought, tool.name, arguments))
        return str(ToolCall(thought, "act", {"action": command}))


def grammars_with(*commands: CommandTool) -> dict[str, Callable[[], ActionGrammar]]:
    """The grammars of a scenario with these commands: those of every environment, and `command_tools`."""
    return {**ENV_GRAMMARS, COMMAND_TOOLS: partial(CommandToolsGrammar, commands)}


def tool_grammar(grammars: Mapping[str, Callable[[], ActionGrammar]]) -> ActionGrammar:
    """The grammar with the most specific tools of an environment: one per command if it has them, else its `tools`."""
    return grammars[COMMAND_TOOLS if COMMAND_TOOLS in grammars else "tools"]()


def command_forms(grammars: Mapping[str, Callable[[], ActionGrammar]]) -> list[str]:
    """The commands of an environment with tools for them, as in `get <amount> <item>`; else an empty list."""
    grammar = grammars[COMMAND_TOOLS]() if COMMAND_TOOLS in grammars else None
    commands = grammar.commands if isinstance(grammar, CommandToolsGrammar) else ()
    return [tool.command.replace("{", "<").replace("}", ">") for tool in commands]


def command_of(grammar: ActionGrammar, name: str, arguments: Mapping[str, Any]) -> str:
    """The command that a call of a grammar's tool means. Raises InvalidAction."""
    return grammar.parse(str(ToolCall("", name, dict(arguments)))).command


def _text(parameter: str | Number) -> str:
    return parameter.description if isinstance(parameter, Number) else parameter


def _action(arguments: Mapping[str, Any]) -> str:
    action = arguments.get("action")
    if not isinstance(action, str) or len(arguments) != 1:
        raise InvalidAction("These are not the arguments of the tool act. Call it as act(action).")
    return action.strip()

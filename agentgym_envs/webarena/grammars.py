"""Action grammars of the web environments, and the rules in their system prompts.

In addition to the suite's grammars: the inline code fences of WebArena's and AgentGym's prompts, BrowserGym's function
calls, and one tool per action.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import GRAMMARS, NATIVE_INSTRUCTIONS, ActionGrammar, Parsed, last_pair, require_call
from agentgym_envs.webarena.actions import (
    ALL_FORMS,
    FORMS,
    NAMES,
    Action,
    CommandForm,
    format_command,
    normalized,
    parse_command,
)
from agentgym_envs.webarena.browsergym_actions import format_call, functions_for, parse_call

_WORLD = """\
You use a web browser to carry out a task. After each action you see the open tabs, the page as a tree of elements, \
one a line, set in below the element that it is a part of, and the address of the page. For example:

[12] button 'Save'

The number is the id by which actions name an element; its role, its name and its state follow. Ids hold for the page \
as you saw it last. What lies outside of the window may be left out: scroll to see it. Only the sites of the task can \
be visited. One action is carried out a turn, and after the one that ends the task nothing more can be done."""
_LISTS_ACTIONS = ("browsergym", "tool_call", "tools")


def rules_for(grammar: ActionGrammar, forms: Mapping[str, CommandForm] = FORMS) -> str:
    """Describe the world and, unless the grammar's own instructions list them, the actions."""
    actions = [f"{form}: {meaning} {note}".rstrip() for form, meaning, note in forms.values()]
    return _WORLD if grammar.name in _LISTS_ACTIONS else "\n".join([_WORLD, "", "The actions are:", *actions])


class ParsedAction(NamedTuple):
    """A thought (may be empty) and the action."""

    thought: str
    action: Action


@runtime_checkable
class TypedGrammar(Protocol):
    """A grammar that parses a message into an action without going through a command text."""

    def parse_action(self, text: str) -> ParsedAction:
        """Parse a message. Raises InvalidAction, whose text is the reply to the model."""


_PHRASE = "In summary, the next action I will perform is"
_INFO = re.compile(r"[\w+-]+[ \t]*\Z")


def last_fence(text: str) -> tuple[str, str] | None:
    """Split a text into what precedes and what is inside its last pair of triple backticks; None without a pair."""
    pieces = text.split("```")
    end = (len(pieces) - 1) // 2 * 2 - 1
    if end < 1:
        return None
    return "```".join(pieces[:end]).strip(), _without_info(pieces[end]).strip("`").strip()


def _without_info(block: str) -> str:
    """Strip the name of a language from the first line of a code block."""
    first, _, rest = block.partition("\n")
    return rest if rest.strip() and _INFO.match(first) and first.strip() not in FORMS else block


@dataclass(frozen=True, slots=True)
class WebFencedGrammar:
    """An action between triple backticks, inline or as a block; the last complete pair counts.

    Source: the prompts of WebArena (arXiv 2307.13854) and AgentGym.
    """

    name: str = "fenced"
    instructions: str = f'Think first. Then write one action in this form: "{_PHRASE} ```click [1234]```"'

    def parse(self, text: str) -> Parsed:
        """Take the text in the last pair of fences. Raises InvalidAction."""
        if not (found := last_fence(text)) or not found[1]:
            raise InvalidAction(
                "No action found. Write one action between triple backticks, such as ```click [1234]```"
            )
        thought, command = found
        return Parsed(thought.removesuffix(_PHRASE).strip(), command)

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and the sentence with the action."""
        return f"{thought} {_PHRASE} ```{command}```".lstrip()


@dataclass(frozen=True, slots=True)
class BrowserGymGrammar:
    """One call of a BrowserGym function per message: the last code block, or else the last line.

    Source: https://github.com/ServiceNow/BrowserGym, browsergym/core/src/browsergym/core/action/functions.py.
    """

    name: str = "browsergym"
    forms: Mapping[str, CommandForm] = field(default_factory=FORMS.copy)

    @property
    def instructions(self) -> str:
        """A list of the functions."""
        lines = [f"{call.form}: {call.meaning}" for call in functions_for(self.forms).values()]
        lead = "You may think first. Then write one call of a function, in Python's syntax, in a code block, as here:"
        return "\n".join([lead, "```\nclick('12')\n```", "The functions are:", *lines])

    def parse(self, text: str) -> Parsed:
        """Parse the call and write it as a command. Raises InvalidAction."""
        return _as_command(self.parse_action(text))

    def parse_action(self, text: str) -> ParsedAction:
        """Parse the call. Raises InvalidAction."""
        thought, code = last_fence(text) or last_pair(text, "action") or self._last_line(text.strip())
        return ParsedAction(thought, normalized(parse_call(code, self.forms)))

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and the call in a code block. A text that is not an action is kept as it is."""
        try:
            code = format_call(parse_command(command, ALL_FORMS)).replace("```", r"\x60\x60\x60")
        except InvalidAction:
            code = command
        return f"{thought}\n```\n{code}\n```".lstrip("\n")

    def _last_line(self, text: str) -> tuple[str, str]:
        """Split off the last line if it is the only call; otherwise take the whole text as the call."""
        before, _, last = text.rpartition("\n")
        only = self._is_call(last) and not self._is_call(text) and not any(map(self._is_call, before.splitlines()))
        return (before.strip(), last) if only else ("", text)

    def _is_call(self, code: str) -> bool:
        try:
            parse_call(code, self.forms)
        except InvalidAction:
            return False
        return True


_PARAMETERS: dict[str, dict[str, Any]] = {
    "id": {"type": "integer", "minimum": 0, "description": "The id of an element."},
    "text": {"type": "string", "description": "The text that the field is to hold."},
    "x": {"type": "integer", "minimum": 0, "description": "Pixels from the left of the screenshot."},
    "y": {"type": "integer", "minimum": 0, "description": "Pixels from the top of the screenshot."},
    "enter": {"type": "boolean", "description": "Whether Enter is pressed afterwards; true by default."},
    "keys": {"type": "string", "description": "A key or a combination, such as Enter or Control+a."},
    "direction": {"type": "string", "enum": ["up", "down"], "description": "Where to."},
    "index": {"type": "integer", "minimum": 0, "description": "The number of a tab, counted from 0."},
    "url": {"type": "string", "description": "The address."},
    "answer": {"type": "string", "description": "The answer, which may be empty."},
}
_KINDS = {"integer": "a whole number", "boolean": "true or false", "string": "a text"}
_PRESSED_ON = {"type": "integer", "minimum": 0, "description": "An element that gets the focus first, if any."}
_ACTIONS = {name: kind for kind, name in NAMES.items()}


def tools(forms: Mapping[str, CommandForm] = FORMS) -> list[dict[str, Any]]:
    """The actions as tools, in the JSON schema of OpenAI's API and of chat templates; a new list on each call.

    Pass the environment's `forms` (`WebEnv.forms`).
    """
    return [_tool(name, form) for name, form in forms.items()]


def _tool(name: str, form: CommandForm) -> dict[str, Any]:
    parameters = _arguments(name, form)
    properties = {field.name: dict(_PARAMETERS[field.name]) for field in parameters}
    if name == "press":
        properties["id"] = dict(_PRESSED_ON)
    schema = {
        "type": "object",
        "properties": properties,
        "required": [field.name for field in parameters if field.default is MISSING],
    }
    meaning = form.meaning
    description = meaning[0].upper() + meaning[1:]
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def _arguments(name: str, form: CommandForm) -> tuple[Field[Any], ...]:
    """The arguments of a tool; empty if the command's form has no brackets."""
    return fields(_ACTIONS[name]) if "[" in form.form else ()


def _signature(name: str, form: CommandForm) -> str:
    """A tool's signature, such as `type(id, text, enter=true)`."""
    arguments = [
        f.name if f.default is MISSING else f"{f.name}={json.dumps(f.default)}" for f in _arguments(name, form)
    ]
    return f"{name}({', '.join(arguments)})"


@dataclass(frozen=True, slots=True)
class WebToolCallGrammar:
    """Tool calls with one tool per action, in the format of Hermes and Qwen. `tools()` returns the schemas.

    Source: the Hermes function-calling format, https://github.com/NousResearch/Hermes-Function-Calling
    """

    name: str = "tool_call"
    forms: Mapping[str, CommandForm] = field(default_factory=FORMS.copy)

    @property
    def instructions(self) -> str:
        """A list of the tools."""
        example = '<tool_call>\n{"name": "click", "arguments": {"id": 12}}\n</tool_call>'
        lines = [f"{_signature(name, form)}: {form.meaning}" for name, form in self.forms.items()]
        return "\n".join(["Answer with one call of a tool, for example:", example, "The tools are:", *lines])

    def parse(self, text: str) -> Parsed:
        """Parse the last tool call and write it as a command. Raises InvalidAction."""
        return _as_command(self.parse_action(text))

    def parse_action(self, text: str) -> ParsedAction:
        """Parse the last tool call. Raises InvalidAction."""
        if not (found := last_pair(text, "tool_call")):
            raise InvalidAction("No tool call found. Call one tool between <tool_call> and </tool_call>.")
        thought, body = found
        name, arguments = _call(body)
        if name not in self.forms:
            raise InvalidAction(f"There is no tool {name!r:.60}. The tools are: {', '.join(self.forms)}.")
        return ParsedAction(thought, normalized(_action(name, self.forms[name], arguments)))

    def format(self, command: str, thought: str = "") -> str:
        """Write the thought, if any, and the call. A text that is not an action is kept as it is."""
        try:
            call = _tool_call(parse_command(command, ALL_FORMS))
        except InvalidAction:
            call = command
        return f"{thought}\n<tool_call>\n{call}\n</tool_call>".lstrip("\n")


@dataclass(frozen=True, slots=True)
class WebToolsGrammar(WebToolCallGrammar):
    """One native tool per action; see `agentgym_envs.grammar.ToolsGrammar`."""

    name: str = "tools"

    @property
    def instructions(self) -> str:
        """The format; the chat template lists the tools."""
        return NATIVE_INSTRUCTIONS

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools in the JSON schema of OpenAI's API."""
        return tools(self.forms)

    def parse_action(self, text: str) -> ParsedAction:
        """Parse the last tool call. Raises InvalidAction."""
        return WebToolCallGrammar.parse_action(self, require_call(text, self.tools))


def _tool_call(action: Action) -> str:
    values = {field.name: getattr(action, field.name) for field in fields(action)}
    arguments = {name: value for name, value in values.items() if value is not None}
    call = json.dumps({"name": NAMES[type(action)], "arguments": arguments}, ensure_ascii=False)
    return call.replace("tool_call>", r"tool_call\u003e")


def _as_command(parsed: ParsedAction) -> Parsed:
    return Parsed(parsed.thought, format_command(parsed.action))


def _call(body: str) -> tuple[str, Mapping[str, Any]]:
    """Read a tool's name and arguments. Llama calls these parameters; null means no arguments."""
    try:
        call = json.loads(body)
        name, arguments = call["name"], call.get("arguments", call.get("parameters"))
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        arguments = {} if arguments is None else arguments
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        name, arguments = None, None
    if not isinstance(name, str) or not isinstance(arguments, Mapping):
        raise InvalidAction('The tool call is not valid JSON of the form {"name": "click", "arguments": {"id": 12}}.')
    return name, arguments


def _action(name: str, form: CommandForm, arguments: Mapping[str, Any]) -> Action:
    action_type = _ACTIONS[name]
    defaults = {field.name: field.default for field in fields(action_type)}
    missing = [key for key, default in defaults.items() if default is MISSING and key not in arguments]
    if missing or not arguments.keys() <= defaults.keys():
        raise InvalidAction(f"These are not the arguments of the tool {name}. Call it as {_signature(name, form)}.")
    given = {key: value for key, value in arguments.items() if value is not None or defaults[key] is not None}
    return action_type(**{key: _value(name, key, value) for key, value in given.items()})


def _value(name: str, key: str, value: Any) -> Any:
    """Convert an argument to its type in the schema. A quoted number and an unquoted text are accepted."""
    schema = _PARAMETERS[key]
    found: Any = None
    match schema["type"]:
        case "integer":
            found = _integer(value)
        case "boolean":
            found = value if isinstance(value, bool) else None
        case "string" if isinstance(value, str | int | float) and not isinstance(value, bool):
            found = str(value)
    if found is None or found not in schema.get("enum", [found]):
        wanted = " or ".join(schema["enum"]) if "enum" in schema else _KINDS[schema["type"]]
        raise InvalidAction(f"The argument {key} of the tool {name} must be {wanted}.")
    return found


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9 else None


def web_grammars(forms: Mapping[str, CommandForm] = FORMS) -> dict[str, Callable[[], ActionGrammar]]:
    """The grammars by name for these commands: the suite's, with web versions of some, and BrowserGym's."""
    return GRAMMARS | {
        "fenced": WebFencedGrammar,
        "browsergym": partial(BrowserGymGrammar, forms=forms),
        "tool_call": partial(WebToolCallGrammar, forms=forms),
        "tools": partial(WebToolsGrammar, forms=forms),
    }

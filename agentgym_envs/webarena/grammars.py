"""The forms in which a model may write a browser's actions, and the text that tells it of the world and the actions.

Beside the suite's grammars: the inline code fences of WebArena's and AgentGym's prompts, BrowserGym's function calls,
and one tool for each action.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import partial
from typing import Any

from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import GRAMMARS, ActionGrammar, Parsed, last_pair
from agentgym_envs.webarena.actions import FORM_FOLLOWS, FORMS, NAMES, Action, Form, read, write
from agentgym_envs.webarena.browsergym_actions import calls_for, read_call, write_call

_WORLD = """\
You use a web browser to carry out a task. After each action you see the open tabs, the page as a tree of elements, \
one a line, set in below the element that it is a part of, and the address of the page. For example:

[12] button 'Save'

The number is the id by which actions name an element; its role, its name and its state follow. Ids hold for the page \
as you saw it last. What lies outside of the window may be left out: scroll to see it. Only the sites of the task can \
be visited. One action is carried out a turn, and after the one that ends the task nothing more can be done."""
_OWN_LISTS = ("browsergym", "tool_call")


def rules_for(grammar: ActionGrammar, forms: Mapping[str, Form] = FORMS) -> str:
    """What the world is and which actions there are, unless the grammar's instructions list those in own words."""
    told = [f"{form}: {meaning} {note}".rstrip() for form, meaning, note in forms.values()]
    return _WORLD if grammar.name in _OWN_LISTS else "\n".join([_WORLD, "", "The actions are:", *told])


_PHRASE = "In summary, the next action I will perform is"
_INFO = re.compile(r"[\w+-]+[ \t]*\Z")


def last_fence(text: str) -> tuple[str, str] | None:
    """What stands before and inside the last complete pair of triple backticks; None if there is none."""
    pieces = text.split("```")
    end = (len(pieces) - 1) // 2 * 2 - 1
    if end < 1:
        return None
    return "```".join(pieces[:end]).strip(), _without_info(pieces[end]).strip("`").strip()


def _without_info(block: str) -> str:
    """A block without the name of a language behind its opening backticks."""
    first, _, rest = block.partition("\n")
    return rest if rest.strip() and _INFO.match(first) and first.strip() not in FORMS else block


@dataclass(frozen=True, slots=True)
class WebFences:
    """An action between triple backticks, on one line or on its own; the last complete pair counts.

    Source: the form of WebArena's (arXiv 2307.13854) and AgentGym's prompts.
    """

    name: str = "fenced"
    instructions: str = f'Think first. Then write one action in this form: "{_PHRASE} ```click [1234]```"'

    def parse(self, text: str) -> Parsed:
        """The text in the last pair of fences. Raises InvalidAction."""
        if not (found := last_fence(text)) or not found[1]:
            raise InvalidAction(
                "No action found. Write one action between triple backticks, such as ```click [1234]```"
            )
        thought, command = found
        return Parsed(thought.removesuffix(_PHRASE).strip(), command)

    def format(self, command: str, thought: str = "") -> str:
        """The thought, if any, and the sentence with the action."""
        return f"{thought} {_PHRASE} ```{command}```".lstrip()


@dataclass(frozen=True, slots=True)
class BrowserGymCalls:
    """BrowserGym's functions, one call a message: the last block between triple backticks, or the last line.

    Source: https://github.com/ServiceNow/BrowserGym, browsergym/core/src/browsergym/core/action/functions.py.
    """

    name: str = "browsergym"
    forms: Mapping[str, Form] = field(default_factory=FORMS.copy)

    @property
    def instructions(self) -> str:
        """Lists the functions."""
        lines = [f"{call.form}: {call.meaning}" for call in calls_for(self.forms).values()]
        lead = "You may think first. Then write one call of a function, in Python's syntax, in a code block, as here:"
        return "\n".join([lead, "```\nclick('12')\n```", "The functions are:", *lines])

    def parse(self, text: str) -> Parsed:
        """The command that the call stands for. Raises InvalidAction."""
        thought, code = last_fence(text) or last_pair(text, "action") or self._last_line(text.strip())
        return Parsed(thought, _command(read_call(code, self.forms)))

    def format(self, command: str, thought: str = "") -> str:
        """The thought, if any, and the call in a code block; what is no action stays as it is."""
        try:
            code = write_call(read(command)).replace("```", r"\x60\x60\x60")
        except InvalidAction:
            code = command
        return f"{thought}\n```\n{code}\n```".lstrip("\n")

    def _last_line(self, text: str) -> tuple[str, str]:
        """What stands before and in the last line, if that is the only call; else all is taken for the call."""
        before, _, last = text.rpartition("\n")
        alone = self._is_call(last) and not self._is_call(text) and not any(map(self._is_call, before.splitlines()))
        return (before.strip(), last) if alone else ("", text)

    def _is_call(self, code: str) -> bool:
        try:
            read_call(code, self.forms)
        except InvalidAction:
            return False
        return True


_PARAMETERS: dict[str, dict[str, Any]] = {
    "id": {"type": "integer", "minimum": 0, "description": "The id of an element."},
    "text": {"type": "string", "description": "The text that the field is to hold."},
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


def tools(forms: Mapping[str, Form] = FORMS) -> list[dict[str, Any]]:
    """The actions as tools, in the JSON schema that OpenAI's API and chat templates take; a new list each time.

    `forms` are those of the environment (`WebEnv.forms`).
    """
    return [_tool(name, form) for name, form in forms.items()]


def _tool(name: str, form: Form) -> dict[str, Any]:
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


def _arguments(name: str, form: Form) -> tuple[Field[Any], ...]:
    """What a model is told that an action takes: nothing if the form has no brackets."""
    return fields(_ACTIONS[name]) if "[" in form.form else ()


def _signature(name: str, form: Form) -> str:
    """A tool as a model is told of it: `type(id, text, enter=true)`."""
    arguments = _arguments(name, form)
    told = [f.name if f.default is MISSING else f"{f.name}={json.dumps(f.default)}" for f in arguments]
    return f"{name}({', '.join(told)})"


@dataclass(frozen=True, slots=True)
class WebTools:
    """Tool calls, one tool for each action, in the form of Hermes and Qwen. `tools()` are their schemas.

    Source: the Hermes function-calling format, https://github.com/NousResearch/Hermes-Function-Calling
    """

    name: str = "tool_call"
    forms: Mapping[str, Form] = field(default_factory=FORMS.copy)

    @property
    def instructions(self) -> str:
        """Lists the tools."""
        example = '<tool_call>\n{"name": "click", "arguments": {"id": 12}}\n</tool_call>'
        lines = [f"{_signature(name, form)}: {form.meaning}" for name, form in self.forms.items()]
        return "\n".join(["Answer with one call of a tool, for example:", example, "The tools are:", *lines])

    def parse(self, text: str) -> Parsed:
        """The command that the last tool call stands for. Raises InvalidAction."""
        if not (found := last_pair(text, "tool_call")):
            raise InvalidAction("No tool call found. Call one tool between <tool_call> and </tool_call>.")
        thought, body = found
        name, arguments = _call(body)
        if name not in self.forms:
            raise InvalidAction(f"There is no tool {name!r:.60}. The tools are: {', '.join(self.forms)}.")
        return Parsed(thought, _command(_action(name, self.forms[name], arguments)))

    def format(self, command: str, thought: str = "") -> str:
        """The thought, if any, and the call; what is no action stays as it is."""
        try:
            call = _written(read(command))
        except InvalidAction:
            call = command
        return f"{thought}\n<tool_call>\n{call}\n</tool_call>".lstrip("\n")


def _written(action: Action) -> str:
    arguments = {field.name: getattr(action, field.name) for field in fields(action)}
    told = {name: value for name, value in arguments.items() if value is not None}
    call = json.dumps({"name": NAMES[type(action)], "arguments": told}, ensure_ascii=False)
    return call.replace("tool_call>", r"tool_call\u003e")


def _command(action: Action) -> str:
    """The command of an action, read once more, since keys and addresses are only checked there."""
    try:
        return write(read(write(action)))
    except InvalidAction as error:
        raise InvalidAction(str(error).partition(FORM_FOLLOWS)[0]) from None


def _call(body: str) -> tuple[str, Mapping[str, Any]]:
    """The name and the arguments, which Llama calls parameters; an action that takes none may have null there."""
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


def _action(name: str, form: Form, arguments: Mapping[str, Any]) -> Action:
    kind = _ACTIONS[name]
    known = {field.name: field.default for field in fields(kind)}
    missing = [key for key, default in known.items() if default is MISSING and key not in arguments]
    if missing or not arguments.keys() <= known.keys():
        raise InvalidAction(f"These are not the arguments of the tool {name}. Call it as {_signature(name, form)}.")
    given = {key: value for key, value in arguments.items() if value is not None or known[key] is not None}
    return kind(**{key: _value(name, key, value) for key, value in given.items()})


def _value(name: str, key: str, value: Any) -> Any:
    """An argument of the type that the schema says; a number in quotes and a text without them are forgiven."""
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


def web_grammars(forms: Mapping[str, Form] = FORMS) -> dict[str, Callable[[], ActionGrammar]]:
    """The suite's grammars, some of them in a browser's own words, and BrowserGym's, for these actions."""
    return GRAMMARS | {
        "fenced": WebFences,
        "browsergym": partial(BrowserGymCalls, forms=forms),
        "tool_call": partial(WebTools, forms=forms),
    }

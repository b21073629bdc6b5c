"""`NativeTools`: how a chat template shows tools, their calls and their results.

A conversation of the suite alternates observations (role `user`) and answers (role `assistant`), both as text. With
native tools, an answer that calls a tool becomes a message with `tool_calls`, as a server would return it, and the
observation after it has the role `tool`. An answer without a valid call stays text, and the observation after it has
the role `user`, since chat APIs accept a result only after a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentgym_envs.errors import TemplateError
from agentgym_envs.grammar import ToolCall, find_call, last_pair

NativeMessage = dict[str, Any]
Render = Callable[[Sequence[NativeMessage]], str]
"""Renders messages, with the tools, up to the beginning of the next answer."""
CALL_ID = "000000000"
"""The id of every call in a template: Mistral's templates show it, and require nine letters or digits."""
_START: list[NativeMessage] = [{"role": "system", "content": "XSYSTEMX"}, {"role": "user", "content": "XUSERX"}]
_PROBE = "  X\"\\\n<é & 1'  "


class NativeTools:
    """The markup of a template around tool calls and their results.

    `before` and `after` are the texts around a result, after the end token of the answer. `tokens` are the special
    tokens in a call. `shows_ids` is true if a rendered call has an id, which a model does not write.
    """

    def __init__(self, render: Render, without_tools: str, special: re.Pattern[str], turn_end: str) -> None:
        """Learn the markup from test conversations.

        Args:
            render: renders messages with the tools.
            without_tools: the test prompt, rendered without tools.
            special: matches the special tokens.
            turn_end: the token that ends an answer.

        Raises:
            TemplateError: the template has no tools, or writes them in a form that is not known here.
        """
        self._render, self._turn_end = render, turn_end
        self._prompt = render(_START)
        if self._prompt == without_tools:
            raise no_tools("it does not show them")
        shown = self._talk()
        head, call, rest = shown.partition("XARGUMENTX")
        close, end, rest = rest.partition(turn_end)
        self.before, result, self.after = rest.partition("XRESULTX")
        if not (call and end and result):
            raise no_tools("it does not show a call and its result")
        self._opening = head.removeprefix(self._prompt) if head.startswith(self._prompt) else None
        opening = head.partition("XUSERX")[2] if self._opening is None else self._opening
        read = find_call(f"{opening}XARGUMENTX{close}")
        if read is None or (read.name, read.arguments) != ("act", {"action": "XARGUMENTX"}):
            raise no_tools(f"its format of a call is not known here: {opening[-80:]}XARGUMENTX{close}")
        self.write_result = _form(lambda text: self._talk(result=text), shown, "XRESULTX")
        self.write_argument = _form(lambda text: self._talk(argument=text), shown, "XARGUMENTX")
        self.shows_ids = CALL_ID in opening + close
        self._shows_thought = "XTHOUGHTX" in self._talk(thought="XTHOUGHTX")
        self._like_hermes = '<tool_call>\n{"name": "' in opening
        self.tokens = tuple(dict.fromkeys(special.findall((self._opening or "") + close)))

    def call_of(self, answer: str) -> ToolCall | None:
        """The call in an answer; None without one, or if the template would drop the text before it."""
        call = find_call(answer)
        return None if call is None or (call.thought and not self._shows_thought) else call

    def written(self, answer: str) -> str:
        """The answer as the model writes it: a demonstration's call in the template's format, others unchanged.

        Raises:
            TemplateError: the call cannot be written in this template.
        """
        pair = last_pair(answer, "tool_call")
        if self._like_hermes or pair is None or not pair[1].startswith("{") or (call := find_call(answer)) is None:
            return answer
        if self._opening is None or self.call_of(answer) is None:
            raise TemplateError(
                "the call of a demonstration cannot be written: the chat template shows no text before a call, or "
                "begins earlier answers otherwise than new ones; use demonstrations without thoughts, or another "
                "template"
            )
        message = native_message(call)
        rendered = self._render([*_START, message, {"role": "tool", "content": "XRESULTX", "tool_call_id": CALL_ID}])
        return rendered.removeprefix(self._prompt).partition("XRESULTX")[0].rpartition(self._turn_end)[0]

    def _talk(self, thought: str = "", argument: str = "XARGUMENTX", result: str = "XRESULTX") -> str:
        answer = native_message(ToolCall(thought, "act", {"action": argument}))
        reply = {"role": "tool", "name": "act", "content": result, "tool_call_id": CALL_ID}
        try:
            return self._render([*_START, answer, reply])
        except TemplateError as error:
            raise no_tools(str(error)) from None


def native_message(call: ToolCall, number: str = CALL_ID) -> NativeMessage:
    """The message of an answer with a call."""
    function = {"name": call.name, "arguments": call.arguments}
    return {
        "role": "assistant",
        "content": call.thought,
        "tool_calls": [{"id": number, "type": "function", "function": function}],
    }


def native_messages(
    messages: Sequence[Mapping[str, Any]], call_of: Callable[[str], ToolCall | None] = find_call
) -> list[NativeMessage]:
    """The messages with calls and results in their own roles."""
    found, called = list[NativeMessage](), None
    for message in messages:
        if called is not None and message["role"] == "user":
            found.append({"role": "tool", "name": called.name, "content": message["content"], "tool_call_id": CALL_ID})
        else:
            found.append(dict(message))
        called = call_of(message["content"]) if message["role"] == "assistant" else None
        if called is not None:
            found[-1] = native_message(called)
    return found


def mark_texts(value: Any, name: str, texts: dict[str, str], write: Callable[[str], str]) -> Any:
    """The value of an argument with names in place of its texts; `texts` gets them as `write` writes them."""
    if isinstance(value, str):
        texts[name] = write(value)
        return name
    if isinstance(value, Mapping):
        pairs = enumerate(value.items())
        return {
            mark_texts(key, f"{name}K{n}X", texts, _json_text): mark_texts(item, f"{name}{n}X", texts, _json_text)
            for n, (key, item) in pairs
        }
    if isinstance(value, list):
        return [mark_texts(item, f"{name}{n}X", texts, _json_text) for n, item in enumerate(value)]
    return value


def no_tools(reason: str) -> TemplateError:
    """The error for a template that cannot be used with native tools."""
    return TemplateError(
        f"the chat template cannot be used with native tools: {reason}. Use the grammar tool_call instead, which "
        "describes its format in the system prompt and needs no template, or pass another template (--chat-template "
        "FILE on the command line, ChatCodec(template=...) in code)"
    )


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _form(render: Callable[[str], str], shown: str, name: str) -> Callable[[str], str]:
    """The way in which a template writes a text: as it is or as a JSON string, stripped or not."""
    forms: list[Callable[[str], str]] = [str, str.strip, _json_text, lambda text: _json_text(text.strip())]
    rendered = render(_PROBE)
    for form in forms:
        if shown.replace(name, form(_PROBE)) == rendered:
            return form
    raise no_tools("it changes the text of a call or of its result")

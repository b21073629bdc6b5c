"""The action formats that a model may use."""

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidAction
from agentgym_envs.grammar import Parsed, make_grammar, tools_of
from agentgym_envs.webarena.actions import ALL_FORMS, FORMS, Action, CommandForm, Press, StopTask, Type, format_command
from agentgym_envs.webarena.browsergym_actions import functions_for
from agentgym_envs.webarena.grammars import TypedGrammar, rules_for, tools, web_grammars
from tests.trying import examples

from .test_actions import ACTIONS, ACTIONS_BY_COORDINATES, NEARLY

WEB_GRAMMARS = web_grammars()
NAMES = sorted(WEB_GRAMMARS)
FEW = {"click": FORMS["click"], "press": FORMS["press"], "stop": CommandForm("stop", "give up.")}
LISTING = ["browsergym", "tool_call"]
CANNOT_CARRY = {"react": "action", "tag": "action>", "fenced": "```"}
SIGNS = ["```", "\n", "(", ",", "'", '"', "\\", "[", "<tool_call>", '{"name":', "click("]
MARKS = [*SIGNS, "python\n", "</tool_call>", "'12'", ")", "="]
MARKED = st.lists(st.sampled_from(MARKS) | st.text(st.characters(codec=None), max_size=4), max_size=12).map("".join)


def parse(name: str, text: str) -> str:
    return make_grammar(name, WEB_GRAMMARS).parse(text).command


def called(call: Any) -> str:
    return f"<tool_call>{json.dumps(call)}</tool_call>"


@pytest.mark.parametrize("name", NAMES)
@examples(50)
@given(action=ACTIONS)
@example(action=Type(1, "``` </tool_call> <tool_call> \\x41 \\", True))
@example(action=StopTask("'''\"\"\"\n\t\\n"))
@example(action=Press("Control+`", 3))
def test_a_command_survives_format_and_parse(name: str, action: Action) -> None:
    grammar, command = make_grammar(name, WEB_GRAMMARS), format_command(action)
    if name in CANNOT_CARRY and CANNOT_CARRY[name] in command.lower():
        return
    assert grammar.parse(grammar.format(command)) == Parsed("", command)
    message = grammar.format(command, "so it goes")
    assert grammar.parse(message) == Parsed("" if name == "bare" else "so it goes", command)


@pytest.mark.parametrize("name", LISTING)
@examples(50)
@given(action=ACTIONS)
def test_typed_grammars_return_the_action_itself(name: str, action: Action) -> None:
    grammar = make_grammar(name, WEB_GRAMMARS)
    assert isinstance(grammar, TypedGrammar)
    assert grammar.parse_action(grammar.format(format_command(action), "so it goes")) == ("so it goes", action)


@pytest.mark.parametrize("name", LISTING)
@examples(20)
@given(action=ACTIONS_BY_COORDINATES)
def test_grammars_carry_actions_by_coordinates_on_request(name: str, action: Action) -> None:
    grammar = make_grammar(name, web_grammars(ALL_FORMS))
    assert isinstance(grammar, TypedGrammar)
    message = grammar.format(format_command(action))
    assert grammar.parse_action(message).action == action
    with pytest.raises(InvalidAction):
        make_grammar(name, WEB_GRAMMARS).parse(message)


@pytest.mark.parametrize("keys", ["Enter] [a", "12] [Enter"])
def test_brackets_in_keys_are_no_further_arguments(keys: str) -> None:
    with pytest.raises(InvalidAction, match="There is no key"):
        parse("browsergym", f"keyboard_press({keys!r})")


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", NAMES)
@examples(50)
@given(junk=NEARLY | MARKED)
def test_anything_can_be_formatted_and_is_parsed_or_refused(name: str, junk: str) -> None:
    grammar = make_grammar(name, WEB_GRAMMARS)
    for text in (junk, grammar.format(junk), grammar.format(junk, junk)):
        try:
            command = grammar.parse(text).command
        except InvalidAction as error:
            assert 10 < len(str(error)) < 500
            str(error).encode()
        else:
            assert command == command.strip()


@pytest.mark.parametrize("name", LISTING)
def test_a_formatted_text_that_is_not_an_action_is_refused(name: str) -> None:
    grammar = make_grammar(name, WEB_GRAMMARS)
    with pytest.raises(InvalidAction):
        grammar.parse(grammar.format("look around"))


@pytest.mark.parametrize(
    ("message", "parsed"),
    [
        ("I see. In summary, the next action I will perform is ```click [1234]```", ("I see.", "click [1234]")),
        ("Hm.\n```\nclick [1]\n```\nDone.", ("Hm.", "click [1]")),
        ("```python\nclick [1]\n```", ("", "click [1]")),
        ("```stop```", ("", "stop")),
        ("```stop\n```", ("", "stop")),
        ("```stop [a\nb]```", ("", "stop [a\nb]")),
        ("```click [1]``` or rather ```click [2]```", ("```click [1]``` or rather", "click [2]")),
        ("```click [1]``` and then ```cli", ("", "click [1]")),
        ("````click [1]````", ("", "click [1]")),
    ],
)
def test_the_last_complete_fence_counts(message: str, parsed: tuple[str, str]) -> None:
    assert make_grammar("fenced", WEB_GRAMMARS).parse(message) == parsed


@pytest.mark.parametrize("message", ["", "click [1]", "```click [1]", "`click [1]`"])
def test_without_a_fence_there_is_no_action(message: str) -> None:
    with pytest.raises(InvalidAction, match="triple backticks"):
        parse("fenced", message)


@pytest.mark.parametrize(
    ("call", "command"),
    [
        ("click('12')", "click [12]"),
        (" click( bid = 12 , ) ", "click [12]"),
        ("click('12', button='left', modifiers=[])", "click [12]"),
        ("fill('12', 'it\\'s \\u00e9\\n\\d \\x41')", "type [12] [it's é\n\\d A] [0]"),
        ('fill("12", """two\nlines""")', "type [12] [two\nlines] [0]"),
        ("fill('12', 'two\nlines')", "type [12] [two\nlines] [0]"),
        ("fill('12', 'x', press_enter=True)", "type [12] [x] [1]"),
        ("select_option('12', 'blue')", "type [12] [blue] [0]"),
        ("select_option('12', ['blue'])", "type [12] [blue] [0]"),
        ("clear('12')", "type [12] [] [0]"),
        ("hover('12')", "hover [12]"),
        ("press('12', 'ctrl+a')", "press [12] [Control+a]"),
        ("keyboard_press('Enter')", "press [Enter]"),
        ("scroll(0, 200)", "scroll [down]"),
        ("scroll(-50.2, -100.5)", "scroll [up]"),
        ("new_tab()", "new_tab"),
        ("tab_focus(1)", "tab_focus [1]"),
        ("tab_close()", "close_tab"),
        ("goto('http://shop.test/?a=1')", "goto [http://shop.test/?a=1]"),
        ("go_back()", "go_back"),
        ("go_forward()", "go_forward"),
        ("noop(500)", "wait"),
        ("send_msg_to_user('42 [km]')", "stop [42 [km]]"),
        ("send_msg_to_user(42)", "stop [42]"),
        ("report_infeasible('there is no such button')", "stop [N/A]"),
        ("I think.\n```python\nclick('12')\n```", "click [12]"),
        ("I think (a lot).\n\nI will click.\nclick('12')\n", "click [12]"),
        ("I think.<action>click('12')</action>", "click [12]"),
    ],
)
def test_browsergym_functions_are_parsed_as_actions(call: str, command: str) -> None:
    assert parse("browsergym", call) == command


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("", "not one call"),
        ("click", "not one call"),
        ("click('12'", "not one call"),
        ("click('12)", "not one call"),
        ("click('12') click('13')", "not one call"),
        ("click('12')\nclick('13')", "not one call"),
        ("I will click('12') now.", "not one call.*triple backticks"),
        ("click('12')\nThat was it.", "not one call.*triple backticks"),
        ("click('12'); 1", "not one call"),
        ("click(open('x'))", "not one call"),
        ("click('1' + '2')", "not one call"),
        ("os.system('x')", "not one call"),
        ("fill('12', value='a', value='b')", "not one call"),
        ("fill(value='a', '12')", "not one call"),
        ("select_option('12', [['a']])", "not one call"),
        ("click [12]", "not one call"),
        ("click()", "not the arguments of click.*click\\('12'\\)"),
        ("click('12', nonsense=1)", "not the arguments"),
        ("click('a12')", "not the id of an element"),
        ("click(True)", "not the id"),
        ("click(-1)", "not the id"),
        ("click('12', button='right')", "left button"),
        ("fill('12', 3)", "not a text"),
        ("select_option('12', ['a', 'b'])", "one option"),
        ("scroll(100, 0)", "up or down"),
        ("tab_focus('x')", "number of a tab"),
        ("keyboard_press('nonsense')", "no key 'nonsense'. A text is written with type.$"),
        ("goto('')", "address is missing.$"),
        ("dblclick('12')", "no double click"),
        ("check('12')", "click\\('12'\\) turns"),
        ("keyboard_type('x')", "fill\\('12', 'text'\\)"),
        ("__import__('os')", "__import__ cannot be called. The functions are: click, fill"),
        ("fill('12', '\\ud800')", "half of a character"),
    ],
)
def test_unsupported_browsergym_calls_are_refused_with_a_reason(call: str, why: str) -> None:
    with pytest.raises(InvalidAction, match=why):
        parse("browsergym", call)


@pytest.mark.parametrize(
    ("call", "command"),
    [
        ({"name": "click", "arguments": {"id": 12}}, "click [12]"),
        ({"name": "click", "arguments": {"id": "12"}}, "click [12]"),
        ({"name": "click", "arguments": '{"id": 12}'}, "click [12]"),
        ({"name": "type", "arguments": {"id": 12, "text": "a"}}, "type [12] [a] [1]"),
        ({"name": "type", "arguments": {"id": 12, "text": 5, "enter": False}}, "type [12] [5] [0]"),
        ({"name": "press", "arguments": {"keys": "ctrl+a", "id": None}}, "press [Control+a]"),
        ({"name": "press", "arguments": {"keys": "Enter", "id": 3}}, "press [3] [Enter]"),
        ({"name": "scroll", "arguments": {"direction": "up"}}, "scroll [up]"),
        ({"name": "go_back", "arguments": {}}, "go_back"),
        ({"name": "stop"}, "stop []"),
        ({"name": "wait", "arguments": None}, "wait"),
        ({"name": "wait", "arguments": "null"}, "wait"),
        ({"name": "click", "parameters": {"id": 12}}, "click [12]"),
    ],
)
def test_tool_calls_are_parsed_as_actions(call: Any, command: str) -> None:
    assert parse("tool_call", f"Hm. {called(call)}") == command


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (None, "not valid JSON"),
        ([], "not valid JSON"),
        ({"arguments": {}}, "not valid JSON"),
        ({"name": "click", "arguments": [12]}, "not valid JSON"),
        ({"name": "act", "arguments": {"action": "click [12]"}}, "no tool 'act'. The tools are: click, type"),
        ({"name": "click", "arguments": {}}, "Call it as click\\(id\\)"),
        ({"name": "click", "arguments": None}, "Call it as click\\(id\\)"),
        ({"name": "type", "arguments": {"id": 1}}, "Call it as type\\(id, text, enter=true\\)"),
        ({"name": "wait", "arguments": {"seconds": 1}}, "Call it as wait\\(\\)"),
        ({"name": "click", "arguments": {"id": True}}, "id of the tool click must be a whole number"),
        ({"name": "click", "arguments": {"id": -1}}, "a whole number"),
        ({"name": "click", "arguments": {"id": 1.5}}, "a whole number"),
        ({"name": "type", "arguments": {"id": 1, "text": "a", "enter": "no"}}, "true or false"),
        ({"name": "scroll", "arguments": {"direction": "left"}}, "must be up or down"),
        ({"name": "stop", "arguments": {"answer": ["a"]}}, "must be a text"),
        ({"name": "press", "arguments": {"keys": "nonsense"}}, "no key 'nonsense'. A text is written with type.$"),
    ],
)
def test_malformed_tool_calls_are_refused_with_a_reason(call: Any, why: str) -> None:
    with pytest.raises(InvalidAction, match=why):
        parse("tool_call", called(call))


def test_tools_accept_the_arguments_in_their_schemas() -> None:
    functions = {tool["function"]["name"]: tool["function"]["parameters"] for tool in json.loads(json.dumps(tools()))}
    assert list(functions) == list(FORMS)
    assert functions["type"]["required"] == ["id", "text"]
    assert functions["press"]["required"] == ["keys"]
    samples = {"integer": 3, "boolean": True, "string": "Enter"}
    for name, schema in functions.items():
        arguments = {
            key: value.get("enum", [samples[value["type"]]])[0]
            for key, value in schema["properties"].items()
            if key in schema["required"]
        }
        assert parse("tool_call", called({"name": name, "arguments": arguments})).split()[0] == name


def test_the_instructions_list_each_action_once() -> None:
    forms = {
        "browsergym": [f"{call.form}: " for call in functions_for(FORMS).values()],
        "tool_call": [f"{name}(" for name in FORMS],
    }
    assert [tool["function"]["name"] for tool in tools_of(make_grammar("tools", WEB_GRAMMARS))] == list(FORMS)
    for name in set(NAMES) - {"tools"}:
        grammar = make_grammar(name, WEB_GRAMMARS)
        instructions = f"{rules_for(grammar)}\n{grammar.instructions}"
        for form in forms.get(name, [f"{form.form}: " for form in FORMS.values()]):
            assert instructions.count(f"\n{form}") == 1, (name, form)
        assert ("The actions are:" in instructions) == (name not in LISTING)


@pytest.mark.parametrize("name", NAMES)
def test_the_instructions_list_only_available_actions(name: str) -> None:
    grammar = make_grammar(name, web_grammars(FEW))
    instructions = f"{rules_for(grammar, FEW)}\n{grammar.instructions}"
    instructions += json.dumps(tools_of(grammar))  # which a chat template shows
    assert "ive up." in instructions and "N/A" not in instructions
    for absent in ("goto", "tab_focus", "go_back", "scroll(", "noop", "fill(", "new_tab"):
        assert absent not in instructions


def test_tools_are_only_the_available_actions() -> None:
    functions = {tool["function"]["name"]: tool["function"] for tool in tools(FEW)}
    assert list(functions) == list(FEW)
    assert (functions["stop"]["description"], functions["stop"]["parameters"]["properties"]) == ("Give up.", {})


@pytest.mark.parametrize(
    ("name", "message", "why"),
    [
        ("tool_call", called({"name": "wait"}), "no tool 'wait'. The tools are: click, press, stop.$"),
        ("browsergym", "noop()", "noop cannot be called. The functions are: click, press, keyboard_press, send_msg_to"),
    ],
)
def test_unavailable_actions_are_refused(name: str, message: str, why: str) -> None:
    with pytest.raises(InvalidAction, match=why):
        make_grammar(name, web_grammars(FEW)).parse(message)


@pytest.mark.slow
@pytest.mark.parametrize("bit", [*SIGNS, "`", " ", "1", "a", "fill('1', '"])
@pytest.mark.parametrize("name", [*LISTING, "fenced"])
def test_hostile_messages_take_linear_time(name: str, bit: str) -> None:
    began = time.perf_counter()
    for text in (bit * (50_000 // len(bit)), f"<tool_call>{bit * 10_000}</tool_call>", f"fill('1', {bit * 10_000}"):
        with pytest.raises(InvalidAction):
            parse(name, text)
    assert time.perf_counter() - began < 10.0  # quadratic time would be minutes

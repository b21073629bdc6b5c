"""Parsing and formatting of commands."""

import time
from dataclasses import fields

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidAction
from agentgym_envs.webarena.actions import (
    ALL_FORMS,
    COORDINATE_FORMS,
    FORMS,
    NAMES,
    Action,
    Click,
    ClickXY,
    CloseTab,
    GoBack,
    GoForward,
    Goto,
    Hover,
    HoverXY,
    KeyboardType,
    NewTab,
    Press,
    Scroll,
    StopTask,
    TabFocus,
    Type,
    Wait,
    format_command,
    parse_command,
)
from agentgym_envs.webarena.keys import KEYS, parse_keys

IDS = st.integers(0, 999_999_999)
SIGNS = ["[", "]", " ", "] [1]", '"', "'", "`", "\n", "0", "=", "é"]
TEXTS = st.lists(st.sampled_from(SIGNS) | st.text(max_size=4)).map("".join)
NAMED_KEYS = sorted(set(KEYS.values()))
MODIFIERS = ["Control", "Alt", "Shift", "Meta"]
COMBINATIONS = st.tuples(
    st.lists(st.sampled_from(MODIFIERS), unique=True),
    st.sampled_from(NAMED_KEYS) | st.characters(min_codepoint=33, max_codepoint=126),
).map(lambda parts: "+".join([*parts[0], parts[1]]))
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Click, IDS),
    st.builds(Type, IDS, TEXTS, st.booleans()),
    st.builds(Hover, IDS),
    st.builds(Press, COMBINATIONS, st.none() | IDS),
    st.builds(Scroll, st.sampled_from(["up", "down"])),
    st.builds(NewTab),
    st.builds(TabFocus, IDS),
    st.builds(CloseTab),
    st.builds(
        Goto, st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), max_size=20).map("http://".__add__)
    ),
    st.builds(GoBack),
    st.builds(GoForward),
    st.builds(Wait),
    st.builds(StopTask, TEXTS),
)
PIXELS = st.integers(0, 99_999)
ACTIONS_BY_COORDINATES: st.SearchStrategy[Action] = st.one_of(
    st.builds(ClickXY, PIXELS, PIXELS), st.builds(HoverXY, PIXELS, PIXELS), st.builds(KeyboardType, TEXTS)
)
BITS = [*ALL_FORMS, *SIGNS, "[12]", "12", "+", "-", "press_enter_after=", "Ctrl", ".", "\x00"]
NEARLY = st.lists(st.sampled_from(BITS) | st.text(st.characters(codec=None), max_size=3), max_size=10).map("".join)


@given(ACTIONS)
@example(Type(1, "a] [0", True))
@example(Type(1, "", False))
@example(Type(1, " [0]", True))
@example(StopTask("]."))
@example(Press("]", 3))
@example(Press("[", 3))
@example(Press("Control++"))
@example(Press("="))
def test_parse_command_reverses_format_command(action: Action) -> None:
    assert parse_command(format_command(action)) == action


@given(ACTIONS_BY_COORDINATES)
def test_actions_by_coordinates_survive_format_and_parse(action: Action) -> None:
    assert parse_command(format_command(action), ALL_FORMS) == action
    with pytest.raises(InvalidAction, match="cannot be done here"):
        parse_command(format_command(action))


@pytest.mark.parametrize("text", ["click_xy [3] [40]", "click_xy(3, 40)", "Click XY [3, 40].", "click_xy 3 40"])
def test_points_are_read_in_several_spellings(text: str) -> None:
    assert parse_command(text, ALL_FORMS) == ClickXY(3, 40)


@given(ACTIONS, st.sampled_from(["{}", " {}\n", "`{}`", "```\n{}\n```"]))
def test_backticks_and_punctuation_around_a_command_are_ignored(action: Action, around: str) -> None:
    assert parse_command(around.format(format_command(action))) == action


@given(NEARLY)
def test_any_text_is_parsed_or_refused_with_a_helpful_message(command: str) -> None:
    try:
        action = parse_command(command, ALL_FORMS)
    except InvalidAction as error:
        assert 10 < len(str(error)) < 400
        str(error).encode()
    else:
        assert parse_command(format_command(action), ALL_FORMS) == action


@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("CLICK [12]", Click(12)),
        ("click 12", Click(12)),
        ("click[12].", Click(12)),
        ('click ["12"]', Click(12)),
        ("click [id=12]", Click(12)),
        ("Hover  [ 0 ]", Hover(0)),
        ("type [12] [text with ] brackets] [1]", Type(12, "text with ] brackets")),
        ("type [12] [see [1]]", Type(12, "see [1]")),
        ("type [12] [see [1]] [0]", Type(12, "see [1]", enter=False)),
        ("type [12] [1]", Type(12, "1")),
        ("type [12] [a]", Type(12, "a")),
        ("type [12][a][0]", Type(12, "a", enter=False)),
        ("type [12] [a] [press_enter_after=0]", Type(12, "a", enter=False)),
        ("type [12] [ \n a] [1].", Type(12, " \n a")),
        ('type [12] ["exact phrase"] [1]', Type(12, '"exact phrase"')),
        ('type 12 "hello"', Type(12, "hello")),
        ("type 12 hello there", Type(12, "hello there")),
        ("scroll [direction=down]", Scroll("down")),
        ("scroll up", Scroll("up")),
        ("press [Ctrl+v]", Press("Control+v")),
        ("press [key_comb=Enter]", Press("Enter")),
        ("press page down", Press("PageDown")),
        ("press [cmd + shift + K]", Press("Meta+Shift+K")),
        ("press [Ctrl-Shift-V]", Press("Control+Shift+V")),
        ("press [esc]", Press("Escape")),
        ("press [-]", Press("-")),
        ("press [+]", Press("+")),
        ("press [Shift]", Press("Shift")),
        ("press [12] [enter]", Press("Enter", 12)),
        ("tab_focus [tab_index=1]", TabFocus(1)),
        ("Tab Focus 1", TabFocus(1)),
        ("page_focus [1]", TabFocus(1)),
        ("page_close", CloseTab()),
        ("tab_close []", CloseTab()),
        ("new tab", NewTab()),
        ("goto [http://shop.test/a[1]?url=x]", Goto("http://shop.test/a[1]?url=x")),
        ("go to 'http://shop.test'", Goto("http://shop.test")),
        ("Go Back.", GoBack()),
        ("go-forward", GoForward()),
        ("noop", Wait()),
        ("stop", StopTask()),
        ("stop.", StopTask()),
        ("stop 42", StopTask("42")),
        ("stop [N/A]", StopTask("N/A")),
        ("stop [two\nlines [1]]", StopTask("two\nlines [1]")),
    ],
)
def test_lenient_spellings_are_accepted(command: str, action: Action) -> None:
    assert parse_command(command) == action


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("", "Nothing is not an action"),
        ("fly [12]", "'fly \\[12\\]' is not an action"),
        (
            "I click [12]",
            "is not an action. Write only the action, such as click \\[12\\]. The actions are: click, type",
        ),
        ("<think>So.</think>click [3]", "Write only the action"),
        ("Action: click [3]", "Write only the action"),
        ("click", "needs the id of an element.*click \\[id\\]"),
        ("click [abc]", "whole number.*not 'abc'"),
        ("click [12", "whole number"),
        ("click [012]", "whole number"),
        ("click [-1]", "whole number"),
        ("click [1_2]", "whole number"),
        ("click [１２]", "whole number"),
        ("click [1e3]", "whole number"),
        ("click [9999999999]", "whole number"),
        ("click [12] where [12] is a button", "one action at a time"),
        ("click [12]\nclick [13]", "one action at a time"),
        ("hover 12 13", "one action at a time"),
        ("type [12]", "text to type is missing"),
        ("type [hello] [12]", "not 'hello'"),
        ("type [12] [hello] [2]", "must be 0 or 1, not '2'"),
        ("type [12] [hello", "not closed"),
        ("type 12 hello\nthere", "several lines"),
        ("scroll [left]", "up or down"),
        ("press []", "key is missing"),
        ("press [hello]", "no key 'hello'.*type"),
        ("press [é]", "no key"),
        ("press [a+b]", "all but the last"),
        ("press [Control+Ctrl+a]", "each once"),
        ("press [Control+]", "key is missing"),
        ("tab_focus", "number of a tab"),
        ("new_tab [http://shop.test]", "Nothing may follow new_tab.*goto"),
        ("close_tab [1]", "Nothing may follow close_tab"),
        ("goto", "address is missing"),
        ("goto [http://shop.test", "not closed"),
        ("stop [42", "not closed"),
        ("stop because\nof this", "several lines"),
        ("type [12] [\ud800] [1]", "half of a character"),
    ],
)
def test_invalid_commands_are_refused_with_a_reason(command: str, why: str) -> None:
    with pytest.raises(InvalidAction, match=why):
        parse_command(command)


def test_unavailable_commands_are_refused() -> None:
    few = {name: FORMS[name] for name in ("click", "stop")}
    assert parse_command("click 3", few) == Click(3)
    with pytest.raises(InvalidAction, match=r"go_back cannot be done here. The actions are: click, stop.$"):
        parse_command("Go Back.", few)
    with pytest.raises(InvalidAction, match=r"is not an action. .* The actions are: click, stop.$"):
        parse_command("fly", few)


@pytest.mark.slow_after(40)
@pytest.mark.parametrize("bit", [*SIGNS, "] [", "[1]", "+", "-", "a ", "go ", "Control+", ". "])
@pytest.mark.parametrize("verb", ["", "type [1] [", "type 1 ", "press ", "goto [", "stop [", "scroll ", "click "])
def test_hostile_commands_take_linear_time(verb: str, bit: str) -> None:
    command = verb + bit * (100_000 // len(bit)) + "x"
    began = time.process_time()
    try:
        parse_command(command)
    except InvalidAction as error:
        assert len(str(error)) < 400
    assert time.process_time() - began < 5  # milliseconds; quadratic time would be minutes


def test_every_action_has_a_name_and_a_form() -> None:
    assert list(NAMES.values()) == list(ALL_FORMS)
    assert {**ALL_FORMS} == {**FORMS, **COORDINATE_FORMS}
    for kind, name in NAMES.items():
        assert ALL_FORMS[name].form.split()[0] == name
        assert (fields(kind) == ()) == (ALL_FORMS[name].form == name)


@pytest.mark.slow
def test_playwright_accepts_every_key() -> None:
    from playwright.sync_api import sync_playwright

    from agentgym_envs.webarena.browser.chromium import find_chromium

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(None, playwright.chromium.executable_path))
        page = browser.new_page()
        for key in [*NAMED_KEYS, *map(chr, range(33, 127)), parse_keys("ctrl+shift+a"), parse_keys("ctrl++")]:
            page.keyboard.press(key)
        browser.close()

"""Parsing messages into actions."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidAction
from agentgym_envs.search.actions import (
    SearchAction,
    SearchNativeTools,
    SearchTags,
    SearchTools,
    read_action,
    read_search_r1,
    split_thought,
    truncate_search_r1,
)


@pytest.mark.parametrize(
    ("message", "action"),
    [
        ("<search>capital of Peru</search>", ("search", "capital of Peru")),
        ("  <answer>\n Lima \n</answer> done", ("answer", "Lima")),
        ("<think>hm</think><search>q</search>", ("search", "q")),
        ("<think><answer>no</answer></think> <answer>yes</answer>", ("answer", "yes")),
        ("<think><search>no</search></think><answer>yes</answer><think><answer>no</answer></think>", ("answer", "yes")),
        ("I think so <answer>no</answer></think><answer>yes</answer>", ("answer", "yes")),
        ("<think>a</think> <search>no</search> b</think><answer>yes</answer>", ("answer", "yes")),
        ("<search>one</search><search>two</search>", ("search", "one")),
        ("<answer>A</answer> <search>q</search>", ("answer", "A")),
        ("<answer>A</answer><answer>B</answer>", ("answer", "A")),
        ("<search> <answer>A</answer>", ("answer", "A")),
        ("<search>a <answer>b</answer> c</search>", ("search", "a <answer>b</answer> c")),
        ("<answer>a <search>b</search> c</answer>", ("answer", "a <search>b</search> c")),
        ("<think>a<think>b</think>c</think><search>q</search>", ("search", "q")),
        ("<search>北京 ما هي</search>", ("search", "北京 ما هي")),
    ],
)
def test_the_first_complete_tag_outside_of_thoughts_counts(message: str, action: tuple[str, str]) -> None:
    assert read_action(message) == action


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("", "not a valid action"),
        ("Lima", "not a valid action"),
        ("<search>q", "not a valid action"),
        ("</search>q<search>", "not a valid action"),
        ("<search>q</answer>", "not a valid action"),
        ("<SEARCH>q</SEARCH>", "not a valid action"),
        ("<search> \n </search>", "query is empty"),
        ("<answer></answer>", "answer is empty"),
        ("<think>I will <search>q</search>", "no end"),
        ("<think><answer>x</answer></think>", "not a valid action"),
    ],
)
def test_an_invalid_message_gets_an_explanation(message: str, why: str) -> None:
    with pytest.raises(InvalidAction, match=why):
        read_action(message)


def test_a_thought_is_stripped() -> None:
    assert split_thought(" <think> a </think> b ") == ("a", "  b ", False)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<search>", "</search>", "<answer>", "</answer>", "x", " "])))
def test_splitting_keeps_all_text_and_no_thought_acts(pieces: list[str]) -> None:
    message = "".join(pieces)
    thought, rest, _ = split_thought(message)
    assert "think>" not in thought + rest
    assert sorted(thought.replace(" ", "") + rest.replace(" ", "")) == sorted(
        message.replace("<think>", "").replace("</think>", "").replace(" ", "")
    )
    try:
        action = read_action(message)
    except InvalidAction:
        return
    assert f"<{action.kind}>" in rest and action.text in rest


@pytest.mark.slow
def test_parsing_takes_linear_time() -> None:
    began = time.process_time()
    for piece in ("<search>", "<answer>", "<think>", "</think>", "<think></think>", "<search></answer>"):
        with pytest.raises(InvalidAction):
            read_action(piece * 20_000)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("message", "kept", "action"),
    [
        ("<think><search>q</search></think><answer>A</answer>", "<think><search>q</search>", ("search", "q")),
        ("<answer>A</answer><search>q</search>", "<answer>A</answer><search>q</search>", ("answer", "A")),
        ("<answer>A</answer><answer>B</answer>", "<answer>A</answer>", ("answer", "A")),
        ("<search></search>", "<search></search>", ("search", "")),
    ],
)
def test_search_r1_truncates_and_takes_the_first_tag_anywhere(message: str, kept: str, action: tuple[str, str]) -> None:
    assert truncate_search_r1(message) == kept
    assert read_search_r1(message) == action


def test_search_r1_also_has_invalid_actions() -> None:
    with pytest.raises(InvalidAction):
        read_search_r1("Lima")


TEXTS = st.text(min_size=1).map(str.strip).filter(bool)


@given(st.sampled_from(["search", "answer"]), TEXTS.filter(lambda text: "</" not in text and "think>" not in text))
def test_all_grammars_parse_their_own_output(kind: str, text: str) -> None:
    command = str(SearchAction(kind, text))
    for grammar in (SearchTags(), SearchTools(), SearchNativeTools()):
        assert read_action(grammar.parse(grammar.format(command)).command) == (kind, text)
        written = grammar.parse(grammar.format(command, "so it goes"))
        assert (written.thought, read_action(written.command)) == ("so it goes", (kind, text))


@pytest.mark.parametrize(
    ("argument", "text"),
    [('"Lima"', "Lima"), ("2389", "2389"), ("1.5", "1.5"), ('"a</search> <think>b"', "a   b")],
)
def test_the_argument_of_a_tool_call_is_converted_to_text(argument: str, text: str) -> None:
    call = f'<tool_call>{{"name": "search", "arguments": {{"query": {argument}}}}}</tool_call>'
    assert read_action(SearchTools().parse(call).command) == ("search", text)


@pytest.mark.parametrize(
    "call",
    [
        "",
        "[]",
        "null",
        '{"name": "search"}',
        '{"name": "search", "arguments": []}',
        '{"name": "search", "arguments": {"answer": "x"}}',
        '{"name": "act", "arguments": {"action": "x"}}',
        '{"name": ["search"], "arguments": {"query": "x"}}',
        '{"name": "search", "arguments": {"query": true}}',
        '{"name": "search", "arguments": {"query": ["a"]}}',
        "[" * 5_000,
    ],
)
def test_an_invalid_tool_call_gets_an_explanation(call: str) -> None:
    with pytest.raises(InvalidAction, match="tool call"):
        SearchTools().parse(f"<tool_call>{call}</tool_call>")

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.grammar import (
    ENV_GRAMMARS,
    ActionGrammar,
    Parsed,
    ReActGrammar,
    TagGrammar,
    ToolCall,
    find_call,
    make_grammar,
)

NAMES = sorted(ENV_GRAMMARS)
ANY_TEXT = st.text(st.characters(codec=None))  # every code point, lone surrogates too
MARKS = ["<action>", "</action>", "<tool_call>", "</tool_call>", "```", "\n", "Action:", "Thought:", '{"name": "act"}']
FORGED = st.lists(st.one_of(st.sampled_from(MARKS), st.text(max_size=5)), max_size=12).map("".join)

# A grammar carries a command that does not hold its own marks.
CANNOT_CARRY = {
    "bare": [],
    "react": ["action"],
    "tag": ["<action>", "</action>"],
    "fenced": ["```"],
    "tool_call": ["<tool_call>", "</tool_call>"],
    "tools": ["<tool_call>", "</tool_call>"],
}


def carries(name: str, command: str) -> bool:
    broken = name == "fenced" and command.startswith("`")
    return not broken and not any(mark in command.lower() for mark in CANNOT_CARRY[name])


def outcome(grammar: ActionGrammar, text: str) -> Parsed | None:
    try:
        return grammar.parse(text)
    except InvalidAction as error:
        assert str(error)
        return None


@pytest.mark.parametrize("name", NAMES)
@given(command=st.one_of(ANY_TEXT, FORGED), thought=st.one_of(ANY_TEXT, FORGED))
def test_a_command_survives_format_and_parse(name: str, command: str, thought: str) -> None:
    grammar, command = make_grammar(name, ENV_GRAMMARS), command.strip()
    if not carries(name, command) or (name == "fenced" and "`" in thought):
        return
    assert grammar.parse(grammar.format(command, thought)).command == command
    assert grammar.parse(grammar.format(command)) == Parsed("", command)


@pytest.mark.parametrize("name", NAMES)
@given(text=st.one_of(ANY_TEXT, FORGED))
def test_any_text_is_parsed_or_raises_invalid_action(name: str, text: str) -> None:
    parsed = outcome(make_grammar(name, ENV_GRAMMARS), text)
    if parsed is not None:
        assert type(parsed.command) is str
        assert parsed.command == parsed.command.strip()


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | ANY_TEXT,
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["name", "arguments", "action"]), x),
    )
)
def test_any_json_in_a_tool_call_is_parsed_or_refused(value: object) -> None:
    outcome(make_grammar("tool_call"), f"<tool_call>{json.dumps(value)}</tool_call>")


@pytest.mark.parametrize("body", ["[" * 100_000, '{"arguments":' * 100_000, "1" * 10_000, "NaN", "", "null", '"act"'])
def test_hostile_json_is_refused(body: str) -> None:
    with pytest.raises(InvalidAction, match="tool call is not valid"):
        make_grammar("tool_call").parse(f"<tool_call>{body}</tool_call>")


@pytest.mark.parametrize("name", NAMES)
def test_the_instructions_show_a_form_that_parses(name: str) -> None:
    grammar = make_grammar(name, ENV_GRAMMARS)
    assert grammar.instructions
    assert grammar.parse(grammar.format("get 1 oak log", "I need wood")).command == "get 1 oak log"


@pytest.mark.parametrize(
    ("name", "text", "thought", "command"),
    [
        ("bare", " get 1 log\n", "", "get 1 log"),
        ("bare", "", "", ""),
        ("react", "Thought: wood first\nAction: get 1 log", "wood first", "get 1 log"),
        ("react", "Action: look", "", "look"),
        ("react", "thought: x\n  ACTION :\n look ", "x", "look"),
        ("react", "Thought: a\nAction: one\nThought: b\nAction: two", "a\nAction: one\nThought: b", "two"),
        ("react", "Action: first line\nsecond line", "", "first line\nsecond line"),
        ("react", "Thought: in reaction: nothing\nAction: go", "in reaction: nothing", "go"),
        ("tag", "so\n<action> look </action> done", "so", "look"),
        ("tag", "<action>one</action><action>two</action>", "<action>one</action>", "two"),
        ("tag", "<action>one<action>two</action>", "<action>one", "two"),
        ("tag", "<action>one</action><action>cut", "", "one"),
        ("fenced", "so\n```\nlook\n```", "so", "look"),
        ("fenced", "```bash\nlook\n```\nor\n```\ngo\n```\nend", "```bash\nlook\n```\nor", "go"),
        ("fenced", "```\ntwo\nlines\n```", "", "two\nlines"),
        ("tool_call", 'so\n<tool_call>\n{"name": "act", "arguments": {"action": " go "}}\n</tool_call>', "so", "go"),
        (
            "tool_call",
            '<tool_call><tool_call>{"name": "act", "arguments": {"action": "go"}}</tool_call>',
            "<tool_call>",
            "go",
        ),
    ],
)
def test_messages_are_parsed_into_thought_and_command(name: str, text: str, thought: str, command: str) -> None:
    assert make_grammar(name, ENV_GRAMMARS).parse(text) == Parsed(thought, command)


@pytest.mark.parametrize(
    ("name", "text", "reply"),
    [
        ("react", "", "begins with 'Action:'"),
        ("react", "I take action: go", "begins with 'Action:'"),
        ("tag", "go", "between <action> and </action>"),
        ("tag", "</action>go<action>", "between <action> and </action>"),
        ("tag", "<action>go", "between <action> and </action>"),
        ("fenced", "```\ngo", "two lines of ```"),
        ("fenced", "```go```", "two lines of ```"),
        ("tool_call", "go", "between <tool_call> and </tool_call>"),
        ("tool_call", "<tool_call>go</tool_call>", "tool call is not valid"),
        ("tool_call", '<tool_call>{"name": "act", "arguments": {"action": 3}}</tool_call>', "tool call is not valid"),
        ("tool_call", '<tool_call>{"name": "rm", "arguments": {"action": "x"}}</tool_call>', "its name is `act`"),
        ("tool_call", '<tool_call>{"arguments": {"action": "x"}}</tool_call>', "its name is `act`"),
        ("tools", "go", "No valid tool call found. Answer with one call of a tool (act)."),
        ("tools", "<tool_call>go</tool_call>", "No valid tool call found"),
        ("tools", '{"name": "rm", "parameters": {"action": "x"}}', "its name is `act`"),
    ],
)
def test_messages_without_an_action_get_a_reply(name: str, text: str, reply: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        make_grammar(name, ENV_GRAMMARS).parse(text)
    assert reply in str(caught.value)


GO = {"action": "go"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            'I go.\n<tool_call>\n{"name": "act", "arguments": {"action": "go"}}\n</tool_call>',
            ToolCall("I go.", "act", GO),
        ),
        ('<tool_call>{"name": "act", "arguments": "{\\"action\\": \\"go\\"}"}</tool_call>', ToolCall("", "act", GO)),
        ('<tool_call>{"name": "noop"}</tool_call>', ToolCall("", "noop", {})),
        ('{"name": "act", "parameters": {"action": "go"}}', ToolCall("", "act", GO)),
        ('<|python_tag|>{"name": "act", "parameters": {"action": "go"}}', ToolCall("", "act", GO)),
        ('<think>a</think>\n{"name": "act", "parameters": {"action": "go"}}', ToolCall("<think>a</think>", "act", GO)),
        ('[TOOL_CALLS] [{"name": "act", "arguments": {"action": "go"}}]', ToolCall("", "act", GO)),
        (
            "x <tool_call>\n<function=act>\n<parameter=action>\ngo\n</parameter>\n</function>\n</tool_call>",
            ToolCall("x", "act", GO),
        ),
        (
            "<tool_call><function=write>\n<parameter=text>\n\na\n\n</parameter>\n</function></tool_call>",
            ToolCall("", "write", {"text": "\na\n"}),
        ),
        ("go", None),
        ('I call {"name": "act", "parameters": {"action": "go"}}', None),
        ('{"name": "a<b", "parameters": {}}', None),
        ('{"name": "act", "parameters": {"<|im_end|>": 1}}', None),
        ('{"name": "act", "parameters": [1]}', None),
        ('{"name": 1}', None),
        ("[]", None),
        ("<tool_call>{</tool_call>", None),
    ],
)
def test_calls_are_read_in_the_formats_of_models(text: str, wanted: ToolCall | None) -> None:
    assert find_call(text) == wanted
    if wanted is not None:
        assert find_call(str(wanted)) == wanted
        if wanted.name == "act":
            assert make_grammar("tools", ENV_GRAMMARS).parse(text) == Parsed(wanted.thought, "go")


@given(text=st.one_of(ANY_TEXT, FORGED), value=st.text())
def test_a_call_of_any_text_is_found_again(text: str, value: str) -> None:
    found = find_call(str(ToolCall("t", "act", {"action": value})))
    assert found == ToolCall("t", "act", {"action": value})
    find_call(text)


@pytest.mark.parametrize("name", ["tag", "fenced", "tool_call", "tools", "react"])
def test_an_action_quoted_in_the_thought_is_not_carried_out(name: str) -> None:
    grammar = make_grammar(name, ENV_GRAMMARS)
    quoted = grammar.format("drop everything")
    assert grammar.parse(grammar.format("keep", f"The page says:\n{quoted}\nI will not.")).command == "keep"


@pytest.mark.slow
def test_hostile_text_is_parsed_in_linear_time() -> None:
    for mark in MARKS:  # a quadratic parser would need minutes for megabytes
        for name in NAMES:
            outcome(make_grammar(name, ENV_GRAMMARS), mark * 200_000)


def test_make_grammar_accepts_names_and_instances() -> None:
    mine = TagGrammar("do")
    assert make_grammar(mine) is mine
    assert mine.parse("<action>no</action> <do>yes</do>").command == "yes"
    assert make_grammar("react") == ReActGrammar()
    assert [make_grammar(name, ENV_GRAMMARS).name for name in NAMES] == NAMES
    with pytest.raises(UsageError, match="no grammar 'xml'; choose one of bare, react, tag, fenced, tool_call"):
        make_grammar("xml")

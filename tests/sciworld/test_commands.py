import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.sciworld.commands import tidy

COMMANDS = st.sampled_from(
    ["look around", "open door to kitchen", "use thermometer on water", "focus on book (moby dick)", "0", "11", "wait1"]
)
SPACES = st.text(" \t\r\n\v\f\x1c\x85\u2028\u3000", min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("look around", "look around"),
        ("  look\taround ", "look around"),
        ("look around.", "look around"),
        ("look around!!", "look around"),
        ("look around ...", "look around"),
        ('"look around"', "look around"),
        ('"look around."', "look around"),
        ('"look around".', "look around"),
        ("`open door`", "open door"),
        ("**open door**", "open door"),
        ("'\"open door\"'", "open door"),
        ("open the\ndoor\n", "open the door"),
        ("Open Door", "Open Door"),
        ("focus on book (moby dick)", "focus on book (moby dick)"),
        ("connect anode on battery to terminal 1, please", "connect anode on battery to terminal 1, please"),
        ("0", "0"),
        ("0.", "0"),
        ("0:", "0"),
        ("'10'.", "10"),
        ("-1", "-1"),
        ("", ""),
        (" \n ", ""),
        ("...", ""),
        ('""', ""),
        ('"', '"'),
        ("say 'open door'", "say 'open door'"),
    ],
)
def test_commands_are_normalized(text: str, command: str) -> None:
    assert tidy(text) == command


@given(COMMANDS, st.data())
def test_spaces_quotes_and_final_punctuation_are_ignored(command: str, data: st.DataObject) -> None:
    text = "".join(word + data.draw(SPACES) for word in command.split())
    for _ in range(data.draw(st.integers(0, 3))):
        quote = data.draw(st.sampled_from(["", '"', "'", "`", "**"]))
        text = data.draw(SPACES) + quote + text + quote + data.draw(st.sampled_from(["", ".", " .", "!", "...", ",:"]))
    assert tidy(text) == command


@given(st.text() | st.text(" \n.!\"'`*:a0", max_size=40))
def test_normalizing_gives_one_line_and_is_idempotent(text: str) -> None:
    command = tidy(text)
    assert tidy(command) == command
    assert len(command.splitlines()) <= 1 and "  " not in command and command == command.strip()
    assert set(command) <= set(text) | {" "}


@given(COMMANDS)
def test_commands_of_the_simulator_are_unchanged(command: str) -> None:
    assert tidy(command) == command


def test_a_long_text_is_normalized_quickly() -> None:
    assert tidy("*" * 16_384) == tidy('"' * 16_382 + ".") == ""
    assert tidy("a\n" * 8_192) == ("a " * 8_192).strip()

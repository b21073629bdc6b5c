import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidAction
from agentgym_envs.multiagent.speech import MAX_MESSAGE_CHARS, Give, Pass, Say, clean, quote, read

HOSTILE = st.text(
    st.sampled_from("\"“”'\n\r\t\u2028\u2029\x0b\x0c\x1c\x85\u202e\u2066\u200b\ufeff\x00\\ab:c_1 é漢🙂\ud800")
    | st.characters(),
    max_size=700,
)


@pytest.mark.parametrize(
    ("command", "action"),
    [
        ("say hello there", Say("hello there", False)),
        ('SAY "hello"', Say("hello", False)),
        ('say a "b" c', Say("a 'b' c", False)),
        ("say craft 4 stick\nusing 2 planks", Say("craft 4 stick using 2 planks", False)),
        ("pass", Pass()),
        (" Pass. ", Pass()),
        ("give 2 oak_planks to crafter_1", Give(2, "oak planks", "crafter 1")),
        ("Give 1 minecraft:stick to Crafter 0.", Give(1, "stick", "crafter 0")),
        ("give 1 road to nowhere to crafter_1", Give(1, "road to nowhere", "crafter 1")),
        ("get 1 stick", None),
        ("pass the salt", None),
        ("", None),
    ],
)
def test_reading(command: str, action: Any) -> None:
    assert read(command) == action


@pytest.mark.parametrize(
    ("command", "reply"),
    [
        ("say", "Could not execute say"),
        ('say ""', 'Could not execute say ""'),
        ("say \u202e\n", "Could not execute say \u202e"),
        ("give", "Could not execute give"),
        ("give stick to crafter_1", "Could not execute give stick to crafter_1"),
        ("give 2 stick", "Could not execute give 2 stick"),
        ("give 2 to crafter_1", "Could not execute give 2 to crafter_1"),
        ("give 2 stick to", "Could not execute give 2 stick to"),
        (
            "give 0 stick to crafter_1",
            "Could not execute give 0 stick to crafter_1: an amount is a whole number from 1 to 9999.",
        ),
    ],
)
def test_what_is_no_command(command: str, reply: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        read(command)
    assert str(caught.value) == reply


@given(HOSTILE)
def test_a_clean_message_is_one_line_that_ends_where_it_seems_to(text: str) -> None:
    message, cut = clean(text)
    line = quote("crafter_1", message)
    assert len(line.splitlines()) == 1 and len(line.split("\n")) == 1
    assert line.count('"') == 2 and line.endswith('"')
    assert len(message) <= MAX_MESSAGE_CHARS
    assert not [char for char in message if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert not set(message) & set("“”„‟«»″＂")
    assert line.encode()
    assert clean(message) == (message, False)
    assert not cut or len(text) > MAX_MESSAGE_CHARS


def test_a_long_message_is_cut() -> None:
    assert clean("x" * 300) == ("x" * 300, False)
    assert clean("x" * 301) == ("x" * 300, True)
    assert clean("x  " * 200, 9) == ("x x x x x", True)

import sys
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidAction
from agentgym_envs.multiagent.messages import MAX_MESSAGE_CHARS, Give, Pass, Say, clean, quote, read

HOSTILE = st.text(
    st.sampled_from(
        "\"“”❝'\n\r\t\u2028\u2029\x0b\x0c\x1c\x85\u202e\u2066\u200b\u0338\ufe0f\u3164\U000e0101\x00\\ab:c_1 é漢🙂\ud800"
    )
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
def test_commands_are_read(command: str, action: Any) -> None:
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
def test_malformed_commands_are_refused(command: str, reply: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        read(command)
    assert str(caught.value) == reply


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\u3164b", "a b"),  # a Hangul filler
        ("a\u2800\u2800b", "a b"),  # Braille without a dot
        ("a\u034fb", "a b"),  # the grapheme joiner
        ("a\ufe0fb\U000e0101\U000e0102c", "a b c"),  # variation selectors, a hidden channel
        ("a\U000e0041\U000e0042b", "a b"),  # tags, another one
        ("a\u0378b", "a b"),  # unassigned
        ("a\u115f\u1160\uffa0\u17b4\u180bb", "a b"),
        ("\u0338\u0301a", "a"),  # would be drawn on the quotation mark
        (" \u20dd \u0338 a\u0301", "a\u0301"),
        ("\u0338", ""),
        ("❝a❞ ʺbʺ ״c״ „d‟ 〝e〞 ″f‶ ˝g˝ 🙶h🙷 «i» ＂j＂", "'a' 'b' 'c' 'd' 'e' 'f' 'g' 'h' 'i' 'j'"),
        ("‘a’ 'b' naïve שלום नमस्ते 👍", "‘a’ 'b' naïve שלום नमस्ते 👍"),  # visible characters stay
    ],
)
def test_unreadable_characters_are_replaced(text: str, message: str) -> None:
    assert clean(text) == (message, False)


def test_every_double_quotation_mark_of_unicode_is_replaced() -> None:
    """Found by their Unicode names; those of CJK are brackets, and do not look like quotation marks."""
    for code in range(sys.maxunicode + 1):
        name = unicodedata.name(chr(code), "")
        if "DOUBLE" in name and "QUOTATION MARK" in name and "COMBINING" not in name:
            assert clean(f"a{chr(code)}b") == ("a'b", False), name


@pytest.mark.slow
def test_default_ignorable_characters_are_replaced() -> None:
    """Compared with the property Default_Ignorable_Code_Point in another library."""
    regex = pytest.importorskip("regex")
    ignored = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    for code in range(sys.maxunicode + 1):
        if ignored.match(chr(code)):
            assert clean(f"a{chr(code)}b") == ("a b", False), f"U+{code:04X}"


def test_many_combining_marks_are_fast() -> None:
    assert clean("\u0338 " * 8_000 + "x") == ("x", False)


@given(HOSTILE)
def test_a_clean_message_is_one_line_with_one_pair_of_quotation_marks(text: str) -> None:
    message, truncated = clean(text)
    line = quote("crafter_1", message)
    assert len(line.splitlines()) == 1 and len(line.split("\n")) == 1
    assert line.count('"') == 2 and line.endswith('"')
    assert len(message) <= MAX_MESSAGE_CHARS
    assert not [char for char in message if unicodedata.category(char)[0] == "C" or char in "\u2028\u2029\ufe0f\u3164"]
    assert not set(message) & set("“”„‟«»″＂❝❞ʺ")
    assert not unicodedata.combining(message[:1] or "x")
    assert line.encode()
    assert clean(message) == (message, False)
    assert not truncated or len(text) > MAX_MESSAGE_CHARS


def test_a_long_message_is_truncated() -> None:
    assert clean("x" * 300) == ("x" * 300, False)
    assert clean("x" * 301) == ("x" * 300, True)
    assert clean("x  " * 200, 9) == ("x x x x x", True)

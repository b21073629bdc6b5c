import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.babyai.commands import ParsedCommand, Verb, parse
from tests.trying import examples

TARGETS = st.builds(
    "{} {}{}".format,
    st.sampled_from(["red", "green", "blue", "purple", "yellow", "grey"]),
    st.sampled_from(["ball", "key", "box", "open door", "closed door", "locked door"]),
    st.sampled_from(["", " 1", " 2", " 11"]),
)
SPACES = st.text(" \t\n\u3000", min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("turn left", (Verb.LEFT, "")),
        ("left", (Verb.LEFT, "")),
        ("Right.", (Verb.RIGHT, "")),
        ("move forward!", (Verb.FORWARD, "")),
        ("go forward", (Verb.FORWARD, "")),
        ("forward", (Verb.FORWARD, "")),
        ("pickup red ball 1", (Verb.PICKUP, "red ball 1")),
        ("pick up red ball 1", (Verb.PICKUP, "red ball 1")),
        ("  Pick\tUP  the Red   Ball 1 . ", (Verb.PICKUP, "red ball 1")),
        ("pick up a key", (Verb.PICKUP, "key")),
        ("pickup", (Verb.PICKUP, "")),
        ("pick up", (Verb.PICKUP, "")),
        ("drop", (Verb.DROP, "")),
        ("toggle", (Verb.TOGGLE, "")),
        ("toggle the grey box 2", (Verb.TOGGLE, "grey box 2")),
        ("go to the blue key 3.", (Verb.GO_TO, "blue key 3")),
        ("go through red open door 1", (Verb.GO_THROUGH, "red open door 1")),
        ("Toggle and go through red closed door 1", (Verb.TOGGLE_THROUGH, "red closed door 1")),
        ("check available actions", (Verb.CHECK, "")),
        ("check actions", (Verb.CHECK, "")),
        ("check", (Verb.CHECK, "")),
        ("check valid actions", (Verb.CHECK, "")),
        ('"go to red ball 1"', (Verb.GO_TO, "red ball 1")),
        ('go to "red ball 1"', (Verb.GO_TO, "red ball 1")),
        ("pick up the 'red ball 1'.", (Verb.PICKUP, "red ball 1")),
        ('go to "the red ball"', (Verb.GO_TO, "red ball")),
        ("toggle and go through **red closed door 1**", (Verb.TOGGLE_THROUGH, "red closed door 1")),
        ("`turn left`.", (Verb.LEFT, "")),
        ("**drop**", (Verb.DROP, "")),
        ("done", (Verb.DONE, "")),
        ("turn left twice", (Verb.LEFT, "twice")),
        ("go to the", (Verb.GO_TO, "")),
        ("goto an apple", (Verb.GO_TO, "apple")),
    ],
)
def test_commands_are_parsed(text: str, expected: tuple[Verb, str]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "text",
    ["", " ", ".", "jump", "turn", "turnleft", "go", "go red ball 1", "pick red ball 1", "red ball 1", "to go to"],
)
def test_other_texts_are_not_commands(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize("verb", Verb)
def test_the_text_of_a_verb_is_its_command(verb: Verb) -> None:
    assert parse(verb.value) == (verb, "")
    assert parse(f"{verb.value} red ball 1") == (verb, "red ball 1")


@examples(40)
@given(verb=st.sampled_from(Verb), target=TARGETS, data=st.data())
def test_case_spacing_articles_and_dots_are_ignored(verb: Verb, target: str, data: st.DataObject) -> None:
    words = [*verb.value.split(), *data.draw(st.sampled_from([(), ("the",), ("a",)])), *target.split()]
    cased = [data.draw(st.sampled_from([word, word.upper(), word.title()])) for word in words]
    text = "".join(word + data.draw(SPACES) for word in cased) + data.draw(st.sampled_from(["", ".", " .", "!", "..."]))
    assert parse(text) == (verb, target)


@given(st.text() | st.builds("{}{}".format, st.sampled_from([f"{verb} " for verb in Verb]), st.text()))
def test_any_text_is_parsed_or_gives_none(text: str) -> None:
    parsed = parse(text)
    assert parsed is None or (isinstance(parsed.verb, Verb) and " ".join(parsed.target.split()) == parsed.target)


def test_a_long_text_is_parsed_quickly() -> None:
    assert parse("go to " + "the " * 4_000) == ParsedCommand(Verb.GO_TO, " ".join(["the"] * 3_999))
    assert parse(" " * 16_000) is None

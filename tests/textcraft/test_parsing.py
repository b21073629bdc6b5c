import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import InvalidAction
from agentgym_envs.textcraft.parsing import Craft, Get, Inventory, echo, parse


@pytest.mark.parametrize(
    "command",
    ["get 2 oak logs", "GET 2 Oak_Logs.", "  get   2\toak  logs ", "get 2 minecraft:oak_logs", "get 0002 oak logs ."],
)
def test_every_spelling_of_get_is_parsed(command: str) -> None:
    assert parse(command) == Get(2, "oak logs")


@pytest.mark.parametrize(
    ("command", "parsed"),
    [
        ("craft 4 stick using 2 oak planks", Craft(4, "stick", {"oak planks": 2})),
        ("craft stick using 2 oak planks", Craft(None, "stick", {"oak planks": 2})),
        ("Craft 99 STICK using 1 oak planks,1 Oak_Planks.", Craft(99, "stick", {"oak planks": 2})),
        ("craft bed using 3 wool , 3  planks", Craft(None, "bed", {"wool": 3, "planks": 3})),
        ("craft oak sign using 6 oak planks, 1 stick", Craft(None, "oak sign", {"oak planks": 6, "stick": 1})),
    ],
)
def test_every_spelling_of_craft_is_parsed(command: str, parsed: Craft) -> None:
    assert parse(command) == parsed


@pytest.mark.parametrize("command", ["inventory", "Inventory.", " INVENTORY "])
def test_every_spelling_of_inventory_is_parsed(command: str) -> None:
    assert parse(command) == Inventory()


@pytest.mark.parametrize(
    "command",
    [
        "",
        ".",
        "inventory please",
        "get",
        "get 3",
        "get oak logs",
        "get three oak logs",
        "getaway 3 oak logs",
        "please get 3 oak logs",
        "craft",
        "craft stick",
        "craft using 2 oak planks",
        "craft stick using",
        "get ² oak logs",
        "look",
    ],
)
def test_other_texts_are_invalid(command: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        parse(command)
    assert str(caught.value) == f"Could not execute {echo(command)}"


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("craft stick using oak planks", "oak planks"),
        ("craft stick using 2", "2"),
        ("craft stick using 2 oak planks,", ""),
        ("craft stick using , 2 oak planks", ""),
        ("craft stick using two oak planks", "two oak planks"),
    ],
)
def test_malformed_ingredients_are_invalid(command: str, part: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        parse(command)
    assert str(caught.value) == f"Wrong item format: {part}"


@pytest.mark.parametrize("amount", ["0", "0000", "-1", "+1", "10000", "1.5", "1e3", "9" * 16_000, "1,000", "٣"])
@pytest.mark.parametrize("command", ["get {} oak logs", "craft {} stick using 2 oak planks", "craft stick using {} x"])
def test_amounts_out_of_range_are_invalid(command: str, amount: str) -> None:
    begun = time.process_time()
    with pytest.raises(InvalidAction, match=r"Could not execute|Wrong item format"):
        parse(command.format(amount))
    assert time.process_time() - begun < 1  # less than a millisecond; a garbage collection takes far longer


def test_an_amount_out_of_range_is_explained() -> None:
    with pytest.raises(InvalidAction) as caught:
        parse("get 0 oak logs")
    assert str(caught.value) == "Could not execute get 0 oak logs: an amount is a whole number from 1 to 9999."


@given(st.text() | st.text(alphabet="get craft using inventory 0123456789,._\n"))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        action = parse(text)
    except InvalidAction as error:
        str(error).encode()
        assert "\n" not in str(error) and len(str(error)) < 300
    else:
        assert isinstance(action, Get | Craft | Inventory)


@given(st.text(st.characters(categories=["Cs", "Ll", "Zs", "Cc"]), max_size=300))
def test_an_echo_can_be_encoded(text: str) -> None:
    shown = echo(text)
    shown.encode()
    assert len(shown) <= 123
    assert "\n" not in shown

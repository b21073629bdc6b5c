"""What the oracles of the embedded sites go by."""

from __future__ import annotations

import re

import pytest

from agentgym_envs.errors import NoOracle
from agentgym_envs.webarena.tasks.page_reader import PageReader, texts_of

TREE = """\
[1] RootWebArea 'Orders'
	[2] navigation ''
		[3] link 'Home'
		[4] link 'Next'
	[5] searchbox 'Search' value: ''
	[6] combobox 'Sort by' value: 'Newest'
		[7] option 'Newest' selected: True
		[8] option 'Oldest'
	[9] table ''
		[10] row ''
			[11] columnheader 'Number'
			[12] columnheader 'Total'
		[13] row ''
			[14] cell '1'
			[15] cell '$2.00'
			[16] link 'View'
		[17] row ''
			[18] cell '2'
			[19] cell '$3.50'
			[20] link 'View'
	[22] DisclosureTriangle 'Account' expanded: False
	[23] DisclosureTriangle 'Menu' expanded: True
	StaticText 'Shipping'
	StaticText '$5.00'
	[21] link 'Next'"""


@pytest.fixture
def sight() -> PageReader:
    made = PageReader()
    made.look(TREE, "http://shop.test/orders")
    return made


def test_commands(sight: PageReader) -> None:
    assert sight.click("link", "Next") == "click [4]"
    assert sight.click("link", "Next", nth=1) == "click [21]"
    assert sight.click("link", "Next", after="Shipping") == "click [21]"
    assert sight.click("link", re.compile("H.*")) == "click [3]"
    assert sight.click_in("2", "link", "View") == "click [20]"
    assert sight.type("Search", "lamp", enter=True) == "type [5] [lamp] [1]"
    assert sight.choose("Sort by", "Oldest") == "click [8]"
    assert (list(sight.unfold("Account")), list(sight.unfold("Menu"))) == (["click [22]"], [])
    assert sight.goto("http://shop.test/") == "goto [http://shop.test/]"
    assert (sight.stop(3), sight.not_achievable()) == ("stop [3]", "stop [N/A]")


def test_reading(sight: PageReader) -> None:
    assert sight.value("Shipping") == "$5.00"
    assert sight.search(r"\$(\d+)\.50") == ("3",)
    assert sight.names("link", after="Shipping") == ["Next"]
    assert sight.table() == [{"Number": "1", "Total": "$2.00"}, {"Number": "2", "Total": "$3.50"}]
    assert texts_of(sight.line("$2.00")) == ["1", "$2.00", "View"]
    assert [len(line) for line in sight.lines()] == [3, 4, 4]
    assert sight.has("option", "Oldest") and not sight.has("option", "old")
    assert sight.says("Shipping") and not sight.says("Ship")
    assert sight.texts(after="Shipping") == ["$5.00", "Next"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda sight: sight.click("link", "Nowhere"),
        lambda sight: sight.click("link", "Next", nth=2),
        lambda sight: sight.type("Name", "x"),
        lambda sight: sight.choose("Sort by", "Dearest"),
        lambda sight: sight.line("Home"),
        lambda sight: sight.table(nth=1),
        lambda sight: sight.value("Tax"),
        lambda sight: sight.search("nothing"),
    ],
)
def test_what_is_not_there(sight: PageReader, ask: object) -> None:
    assert callable(ask)
    with pytest.raises(NoOracle):
        ask(sight)

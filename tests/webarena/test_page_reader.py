"""`PageReader`, with which the oracles of the embedded sites read pages."""

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
def page() -> PageReader:
    reader = PageReader()
    reader.look(TREE, "http://shop.test/orders")
    return reader


def test_it_writes_commands_for_elements_by_name(page: PageReader) -> None:
    assert page.click("link", "Next") == "click [4]"
    assert page.click("link", "Next", nth=1) == "click [21]"
    assert page.click("link", "Next", after="Shipping") == "click [21]"
    assert page.click("link", re.compile("H.*")) == "click [3]"
    assert page.click_in("2", "link", "View") == "click [20]"
    assert page.type("Search", "lamp", enter=True) == "type [5] [lamp] [1]"
    assert page.choose("Sort by", "Oldest") == "click [8]"
    assert (list(page.expand("Account")), list(page.expand("Menu"))) == (["click [22]"], [])
    assert (list(page.turn_to("link", "Home")), next(page.turn_to("link", "Away"))) == ([], "click [4]")
    assert page.goto("http://shop.test/") == "goto [http://shop.test/]"
    assert page.stop(3) == "stop [3]"


def test_it_reads_texts_lines_and_tables(page: PageReader) -> None:
    assert page.value("Shipping") == "$5.00"
    assert page.search(r"\$(\d+)\.50") == ("3",)
    assert page.names("link", after="Shipping") == ["Next"]
    assert page.table() == [{"Number": "1", "Total": "$2.00"}, {"Number": "2", "Total": "$3.50"}]
    assert texts_of(page.line("$2.00")) == ["1", "$2.00", "View"]
    assert [len(line) for line in page.lines()] == [3, 4, 4]
    assert page.has("option", "Oldest") and not page.has("option", "old")
    assert page.says("Shipping") and not page.says("Ship")
    assert page.texts(after="Shipping") == ["$5.00", "Next"]


@pytest.mark.parametrize(
    "look_up",
    [
        lambda page: page.click("link", "Nowhere"),
        lambda page: page.click("link", "Next", nth=2),
        lambda page: page.type("Name", "x"),
        lambda page: page.choose("Sort by", "Dearest"),
        lambda page: page.line("Home"),
        lambda page: page.table(nth=1),
        lambda page: page.value("Tax"),
        lambda page: page.search("nothing"),
    ],
)
def test_a_lookup_without_a_match_raises_no_oracle(page: PageReader, look_up: object) -> None:
    assert callable(look_up)
    with pytest.raises(NoOracle):
        look_up(page)

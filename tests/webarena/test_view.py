from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import SessionOptions
from agentgym_envs.webarena.browser.view import Element, ViewOptions, elements, quoted, squeezed, unquoted
from tests.trying import examples
from tests.webarena.conftest import Agent, Site

TREE = r"""[1] RootWebArea 'A shop' focused: True
	[12] link "It's tea"
		StaticText 'new'
	[3] textbox 'Who? \'I\' or "you"' required: True value: 'one\ntwo: \\ three'
	[4] checkbox '' checked: mixed disabled: True
	[5] Iframe 'Ad' cross-origin: True
	... 7 more options; type the text of one to choose it
... 12 more lines left out: the page is too long"""


def test_elements_parses_a_tree() -> None:
    assert elements(TREE) == [
        Element(0, 1, "RootWebArea", "A shop", {"focused": "True"}),
        Element(1, 12, "link", "It's tea", {}),
        Element(2, None, "StaticText", "new", {}),
        Element(1, 3, "textbox", "Who? 'I' or \"you\"", {"required": "True", "value": "one\ntwo: \\ three"}),
        Element(1, 4, "checkbox", "", {"checked": "mixed", "disabled": "True"}),
        Element(1, 5, "Iframe", "Ad", {"cross-origin": "True"}),
    ]


@given(st.text())
def test_unquoted_reverses_quoted(text: str) -> None:
    assert unquoted(quoted(text)) == text
    assert "\n" not in quoted(text)


@given(st.text())
def test_squeezed_texts_are_one_readable_line(text: str) -> None:
    clean = squeezed(text, 50)
    assert len(clean.splitlines()) <= 1 and len(clean) <= 51
    assert squeezed(clean, 60) == clean
    clean.encode()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("a \n\t b", "a b"),
        ("a\u00a0b\u2028c", "a b c"),
        ("a\u202eb\u200b\u0007c", "abc"),
        ("\ue601 Cart", "Cart"),
        ("é ü 漢", "é ü 漢"),
    ],
)
def test_unreadable_characters_are_left_out(text: str, clean: str, agent: Agent) -> None:
    assert squeezed(text, 50) == clean
    agent.show("<h1></h1>")
    agent.js(f"document.querySelector('h1').textContent = {text!r}")
    assert [e.name for e in elements(agent.see().tree) if e.role == "heading"] == [clean]


TEXTS = st.text(st.sampled_from("ab '\"\\[]1:\n\t.\u202e\ue601é"), max_size=12)
NODES: st.SearchStrategy[Any] = st.recursive(
    st.tuples(st.sampled_from(["button", "input", "p", "a", "h2", "img"]), TEXTS, TEXTS, st.just([])),
    lambda inner: st.tuples(
        st.sampled_from(["div", "nav", "table", "select", "form"]), TEXTS, TEXTS, st.lists(inner, max_size=3)
    ),
    max_leaves=8,
)
BUILD = """nodes => {
  const build = ([tag, label, text, children]) => {
    const e = document.createElement(tag);
    e.setAttribute('aria-label', label);
    if (tag === 'input') e.value = text; else e.append(text, ...children.map(build));
    return e;
  };
  document.body.replaceChildren(...nodes.map(build));
}"""


@pytest.fixture(scope="module")
def reader(browser: BrowserOptions) -> Iterator[Agent]:
    made = Agent(SessionOptions(browser=browser, view=ViewOptions(viewport=False)), Site())
    yield made
    made.close()


@pytest.mark.slow
@examples(150)
@given(st.lists(NODES, max_size=3))
def test_no_page_can_forge_a_line(reader: Agent, nodes: list[object]) -> None:
    """Every line of every tree parses as one element with a unique id, and formats to the same line."""
    reader.run(reader.session.tab.page.evaluate(BUILD, nodes))
    view = reader.see()
    read = elements(view.tree)
    assert len(read) == view.tree.count("\n") + 1
    ids = [e.id for e in read if e.id is not None]
    assert len(set(ids)) == len(ids) == view.count
    for line, e in zip(view.tree.split("\n"), read, strict=True):
        head = "StaticText" if e.id is None else f"[{e.id}] {e.role}"
        assert line.startswith("\t" * e.depth + f"{head} {quoted(e.name)}")
        assert quoted(e.properties.get("value", "")) in line + "''"

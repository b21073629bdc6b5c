"""Chrome's own tree, and its agreement with ours."""

import difflib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import SessionOptions
from agentgym_envs.webarena.browser.view import ViewOptions, elements
from tests.webarena.conftest import Agent, Site, html

PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))
LEAST_AGREEMENT = 0.98
"""The share of equal lines by role and name. Pointer cursors of inline texts and closed shadow roots differ."""
CALL = "(e, more) => e.textContent + more"


@pytest.fixture(scope="module")
def chrome(the_site: Site, browser: BrowserOptions) -> Iterator[Agent]:
    made = Agent(SessionOptions(browser=browser, view=ViewOptions(viewport=False)), the_site, "cdp")
    yield made
    made.close()


@pytest.fixture
def cdp(chrome: Agent, site: Site) -> Agent:
    return chrome


def lines_without_ids(agent: Agent) -> list[str]:
    return [f"{e.role} {e.name!r}" for e in elements(agent.see().tree)]


def call(agent: Agent, element: int) -> object:
    return agent.run(agent.backend.call(agent.session.tab, element, CALL, "!"))


def names(agent: Agent, role: str) -> list[str]:
    return [e.name for e in elements(agent.tree) if e.role == role]


@pytest.mark.slow
def test_both_backends_agree(agent: Agent, cdp: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    same = every = 0
    differences: list[str] = []
    for page in PAGES:
        agent.site.put("/", page.read_text())
        agent.site.put("/other", html("<button>Foreign</button>"))
        agent.goto("/")
        cdp.goto("/")
        ours, chromes = lines_without_ids(agent), lines_without_ids(cdp)
        matching = difflib.SequenceMatcher(None, ours, chromes, autojunk=False).get_matching_blocks()
        same += sum(block.size for block in matching)
        every += max(len(ours), len(chromes))
        diff = difflib.unified_diff(ours, chromes, lineterm="", n=0)
        differences += [f"{page.stem}: {line}" for line in diff if not line.startswith(("---", "+++", "@@"))]
    with capsys.disabled():
        print(
            f"\n{same} of {every} lines agree with Chrome's ({same / every:.1%}); - ours, + Chrome's:",
            *differences,
            sep="\n  ",
        )
    assert same / every >= LEAST_AGREEMENT


@pytest.mark.slow
def test_viewport_shows_only_the_window(browser: BrowserOptions, site: Site) -> None:
    cdp = Agent(SessionOptions(browser=browser), site, "cdp")
    tall = "<div style='height: 3000px'>top</div>"
    frame = f'<iframe width=300 height=200 srcdoc="<button>c</button>{tall}<button>d</button>"></iframe>'
    cdp.show(f"<style>p::before {{ content: 'written' }}</style><button>a</button>{tall}{frame}<p></p>")
    assert names(cdp, "button") == ["a"] and "written" not in cdp.tree
    cdp.js("scrollTo(0, 5000)")
    cdp.see()
    assert names(cdp, "button") == ["c"] and "written" in cdp.tree
    cdp.js("document.querySelector('iframe').contentWindow.scrollTo(0, 5000)")
    cdp.see()
    assert names(cdp, "button") == ["d"]
    cdp.close()


def test_ids_refer_to_the_last_observation(cdp: Agent) -> None:
    cdp.show("<button>a</button><iframe srcdoc='<button>b</button>'></iframe>")
    first, second = (e.id or 0 for e in elements(cdp.tree) if e.role == "button")
    assert (call(cdp, first), call(cdp, second), call(cdp, 99_999)) == ("a!", "b!", None)
    assert call(cdp, elements(cdp.tree)[0].id or 0)
    cdp.js("document.querySelector('button').remove()")
    assert call(cdp, first) is None
    cdp.site.put("/next", html("<button>c</button><button>d</button>"))
    cdp.goto("/next")
    assert call(cdp, second) is None
    cdp.see()
    assert names(cdp, "button") == ["c", "d"]


def test_elements_keep_their_ids(cdp: Agent) -> None:
    cdp.show("<button>a</button><button>b</button>")
    before = {e.name: e.id for e in elements(cdp.tree)}
    cdp.js("document.body.insertAdjacentHTML('afterbegin', '<button>c</button>')")
    after = {e.name: e.id for e in elements(cdp.see().tree)}
    assert before.items() < after.items()


def test_elements_with_click_handlers_are_clickable(cdp: Agent) -> None:
    cdp.show("<div id=x>heard</div><p style='cursor: pointer'>hand</p><p>plain</p>")
    cdp.js("document.getElementById('x').addEventListener('click', () => 0)")
    cdp.see()
    clickable = [e.name for e in elements(cdp.tree) if "clickable" in e.properties]
    assert clickable == ["heard", "hand"]


def test_states_of_elements_are_shown(cdp: Agent) -> None:
    fields = "<input aria-label=a value=x required disabled><input type=checkbox checked aria-label=b>"
    cdp.show(f"{fields}<input type=password aria-label=c value=abc><div contenteditable aria-label=d>text</div>")
    read = {e.name: (e.role, e.properties) for e in elements(cdp.tree)}
    assert read["a"][1] == {"disabled": "True", "required": "True", "value": "x"}
    assert read["b"] == ("checkbox", {"checked": "true"})
    assert read["c"][1] == {"value": "•••"}
    assert read["d"] == ("textbox", {}) and read["text"][0] == "StaticText"


def test_hidden_elements_are_left_out_and_long_pages_truncated(browser: BrowserOptions, site: Site) -> None:
    options = ViewOptions(viewport=False, hidden=("#score",), max_chars=1000)
    cdp = Agent(SessionOptions(browser=browser, view=options), site, "cdp")
    buttons = "".join(f"<button>number {i}</button>" for i in range(100))
    view = cdp.show(f"<p id=score>10 <button>a</button></p>{buttons}")
    *whole, note = view.tree.split("\n")
    assert names(cdp, "button")[0] == "number 0" and "10" not in names(cdp, "StaticText")
    assert view.truncated and len(view.tree) <= 1000 and view.count == len(whole)
    assert note == f"... {101 - len(whole)} more lines left out: the page is too long"
    cdp.close()


def test_long_lists_are_truncated(cdp: Agent) -> None:
    options = "".join(f"<option{' selected' if i == 250 else ''}>o{i}" for i in range(300))
    cdp.show(f"<select aria-label=s>{options}</select>")
    assert names(cdp, "option")[-1] == "o250" and len(names(cdp, "option")) == 51
    assert cdp.tree.endswith("... 249 more options; type the text of one to choose it")

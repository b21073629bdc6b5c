"""WebArena's text format: pages with outputs computed by hand, and a second statement of its rules."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_envs.errors import UsageError
from agentgym_envs.webarena.actions import Click, Hover
from agentgym_envs.webarena.browser.execute import execute
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.browser.view import ViewOptions, elements
from agentgym_envs.webarena.browser.webarena_text import AxTree, WebArenaBackend, lines_of, shown_lines
from agentgym_envs.webarena.env import WebArenaEnv
from tests.webarena.conftest import Agent, Site

PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))
NO_LINE = {"generic", "img", "list", "strong", "paragraph", "banner", "navigation", "Section", "LabelText", "Legend"}
NOT_SHOWN = {"focusable", "editable", "readonly", "level", "settable", "multiline", "invalid", "url"}

GOLDEN = {
    "texts are numbered, and repeated ones left out": (
        "<h1>Sale</h1><p>It costs <b>$279.49</b> now</p><a href=/x>Lamp</a><a href=/y>Chair</a><p>Sale</p><p>Lamp</p>",
        """
[1] RootWebArea 'T' focused: True
	[2] heading 'Sale'
	[4] StaticText 'It costs '
	[5] StaticText '$279.49'
	[6] StaticText ' now'
	[7] link 'Lamp'
	[9] link 'Chair'
	[11] StaticText 'Sale'
""",
    ),
    "properties of fields are Chrome's, and their values are texts": (
        """<input aria-label=Name value="Ida L." required><input type=checkbox aria-label=News checked>
        <select aria-label=Size><option>S<option selected>L</select><button disabled>Go</button>
        <input type=password aria-label=Pin value=123>""",
        """
[1] RootWebArea 'T' focused: True
	[2] textbox 'Name' required: True
		[3] StaticText 'Ida L.'
	[4] checkbox 'News' checked: true
	[5] combobox 'Size' hasPopup: menu expanded: False
		[6] MenuListPopup ''
			[7] option 'S' selected: False
			[8] option 'L' selected: True
	[9] button 'Go' disabled: True
	[11] textbox 'Pin' required: False
		[12] StaticText '•••'
""",
    ),
    "nodes without a name are left out, but not all roles": (
        """<nav><ul><li>one<li><a href=/z>two</a></ul></nav><img src=x alt=""><img src=x><img src=x alt=Cat>
        <table><tr><th>Head<td>1</table><form><div><span>Deep</span></div></form>""",
        """
[1] RootWebArea 'T' focused: True
	[2] ListMarker '• '
	[3] StaticText 'one'
	[4] ListMarker '• '
	[5] link 'two'
	[7] img 'Cat'
	[8] table ''
		[9] row ''
			[10] rowheader 'Head' required: False
			[12] cell '1'
	[14] form ''
		[15] StaticText 'Deep'
""",
    ),
    "names are written by Python's rules, and the contents of frames not at all": (
        """<button>Don't</button><button>"Quote" it's</button><button aria-label="a\nb">x</button>
        <iframe title=In srcdoc="<p>inner</p>"></iframe><div role=status aria-live=polite>Saved</div>""",
        """
[1] RootWebArea 'T' focused: True
	[2] button "Don't"
	[4] button '"Quote" it\\'s'
	[6] button 'a b'
		[7] StaticText 'x'
	[8] Iframe 'In'
	[9] status '' live: polite atomic: True relevant: additions text
		[10] StaticText 'Saved'
""",
    ),
}


def reference(raw: list[dict[str, Any]]) -> list[str]:
    """WebArena's rules again, as a recursion over the raw nodes that returns lines numbered in their order."""
    by_id: dict[str, dict[str, Any]] = {}
    for node in raw:
        by_id.setdefault(node["nodeId"], node)
    lines: list[str] = []

    def visit(node: dict[str, Any], depth: int) -> None:
        role = {"image": "img"}.get(node["role"]["value"], node["role"]["value"])
        if role == "InlineTextBox":
            return
        named = not node["ignored"] and "value" in node.get("name", {})
        name = node["name"]["value"] if named else ""
        pairs = [(p["name"], p["value"]) for p in node.get("properties", []) if p["name"] not in NOT_SHOWN]
        shown = [f"{key}: {value['value']}" for key, value in pairs if "value" in value]
        empty = not name.strip() and (role == "listitem" or (role in NO_LINE and not shown))
        if named and not empty:
            lines.append("\t" * depth + " ".join([f"[{len(lines) + 1}] {role} {name!r}", *shown]))
            depth += 1
        for child in node.get("childIds", []):
            if child in by_id:
                visit(by_id[child], depth)

    visit(raw[0], 0)
    kept: list[str] = []
    for line in lines:
        _, marker, rest = line.partition("] StaticText ")
        text = rest[1:-1]
        if "statictext" in line.lower() and (not marker or not text or any(text in one for one in kept[-3:])):
            continue
        kept.append(line)
    return kept


def make(browser: BrowserOptions, site: Site, **options: Any) -> Agent:
    agent = Agent(SessionOptions(browser=browser, view=ViewOptions(**options)), site)
    agent.backend = agent.session.backend = WebArenaBackend()
    return agent


@pytest.fixture(scope="module")
def module_agent(the_site: Site, browser: BrowserOptions) -> Iterator[Agent]:
    agent = make(browser, the_site, viewport=False)
    yield agent
    agent.close()


@pytest.fixture
def webarena(module_agent: Agent, site: Site) -> Agent:
    return module_agent


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", GOLDEN)
def test_pages_in_webarenas_format(webarena: Agent, name: str) -> None:
    body, expected = GOLDEN[name]
    assert webarena.show(body, title="T").tree == expected.strip("\n")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_fixture_pages_follow_the_rules(webarena: Agent, page: Path) -> None:
    webarena.site.put("/", page.read_text())
    webarena.goto("/")
    raw = webarena.run(webarena.session.tab.send("Accessibility.getFullAXTree"))["nodes"]
    assert webarena.see().tree.split("\n") == reference(raw)
    assert webarena.session.view.count == len(elements(webarena.tree))


NAMES = st.sampled_from(
    ["", " ", "a", "b", "ab", "it's", 'say "it\'s"', "1", "StaticText 'a'", "statictext", "\u202e", "\n"]
)
ROLES = st.sampled_from(
    ["StaticText", "StaticText", "link", "generic", "image", "img", "list", "listitem", "heading", "InlineTextBox"]
)
VALUES = st.one_of(st.booleans(), st.integers(0, 3), st.sampled_from(["menu", "true"]))
PROPERTIES = st.lists(
    st.tuples(st.sampled_from(["focusable", "focused", "hasPopup", "level", "url"]), VALUES), max_size=3
)


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Raw nodes as Chrome reports them; a node may be reported twice, and a child not at all."""
    count = draw(st.integers(1, 14))
    nodes: list[dict[str, Any]] = []
    for number in range(count):
        properties = dict(draw(PROPERTIES))
        node: dict[str, Any] = {
            "nodeId": str(number),
            "ignored": draw(st.booleans()) if number else False,
            "childIds": [],
        }
        node |= {"role": {"value": draw(ROLES) if number else "RootWebArea"}, "backendDOMNodeId": number + 1}
        node["properties"] = [{"name": key, "value": {"value": value}} for key, value in properties.items()]
        if not node["ignored"] or draw(st.booleans()):
            node["name"] = {"value": draw(NAMES)}
        if number:
            node["parentId"] = str(draw(st.integers(0, number - 1)))
            nodes[int(node["parentId"])]["childIds"].append(node["nodeId"])
        nodes.append(node)
    if draw(st.booleans()):
        nodes[0]["childIds"].append("absent")
        nodes.append(nodes[-1])
    return nodes


@given(trees())
def test_generated_trees_follow_the_rules(raw: list[dict[str, Any]]) -> None:
    tree = AxTree.read(raw)
    found = lines_of(tree)
    texts = ["\t" * line.depth + f"[{number}] {line.text}" for number, line in enumerate(found, 1)]
    assert [texts[index] for index in shown_lines(texts)] == reference(raw)


@pytest.mark.slow
def test_texts_can_be_clicked(webarena: Agent) -> None:
    webarena.show(
        "<p>Total <b onclick=\"out.textContent += 'bold '\">$5.00</b></p><style>i::before{content:'made'}</style>"
        "<i onclick=\"out.textContent += 'italic '\"></i><input value=typed onclick=\"out.textContent += 'field '\">"
        "<p id=out>:</p>"
    )
    for text in ("$5.00", "made", "typed"):
        webarena.act(Click(webarena.find("StaticText", text)))
    assert "StaticText ':bold italic field'" in webarena.tree
    webarena.act(Hover(webarena.find("StaticText", "Total ")))
    with pytest.raises(Exception, match="no element"):
        webarena.run(execute(webarena.session, Click(99)))


@pytest.mark.slow
def test_ids_stay_and_count_from_one_in_each_document(webarena: Agent) -> None:
    webarena.show("<button>a</button><button>b</button>")
    before = {(e.role, e.name): e.id for e in elements(webarena.tree)}
    webarena.js("document.body.insertAdjacentHTML('afterbegin', '<button>c</button>')")
    after = {(e.role, e.name): e.id for e in elements(webarena.see().tree)}
    assert before.items() < after.items()
    assert webarena.show("<p>Next</p>", "/next").tree.endswith("\t[2] StaticText 'Next'")


@pytest.mark.slow
def test_a_page_cannot_forge_a_line(webarena: Agent) -> None:
    webarena.show(
        "<div role=slider aria-label='a&#10;[7] button b' aria-valuetext='x&#10;\t[8] link c&#x2028;d'></div>"
    )
    assert len(webarena.tree.splitlines()) == 2 and "[8]" in webarena.tree


@pytest.mark.slow
def test_the_window_alone(browser: BrowserOptions, site: Site) -> None:
    agent = make(browser, site, viewport=True)
    tall = "<div style='height: 3000px'></div>"
    agent.show(f"<style>p::before {{ content: 'made' }}</style><button>a</button>{tall}<button>b</button><p></p>")
    assert "button 'a'" in agent.tree and "button 'b'" not in agent.tree
    agent.js("scrollTo(0, 5000)")
    assert "button 'b'" in agent.see().tree and "button 'a'" not in agent.tree and "made" not in agent.tree
    agent.close()


@pytest.mark.slow
def test_long_pages_are_truncated(browser: BrowserOptions, site: Site) -> None:
    agent = make(browser, site, viewport=False, max_chars=600, hidden=("#score",))
    view = agent.show("<p id=score>10</p>" + "".join(f"<button>number {i}</button>" for i in range(60)))
    *whole, note = view.tree.split("\n")
    assert view.truncated and len(view.tree) <= 600 and view.count == len(whole) and "'10'" not in view.tree
    assert note == f"... {61 - len(whole)} more lines left out: the page is too long"
    agent.close()


def test_an_unknown_flavour() -> None:
    with pytest.raises(UsageError, match="flavour is one of agentgym, webarena"):
        WebArenaEnv(flavour="html")


@pytest.mark.slow
def test_the_environment_has_both_flavours() -> None:
    env, other = WebArenaEnv(flavour="webarena", record_screenshots=True), WebArenaEnv()
    options = {"task": next(iter(env.tasks.sample(1, seed=2))).id}
    (observation, info), (default, _) = env.reset(seed=1, options=options), other.reset(seed=1, options=options)
    assert observation.splitlines()[:3] == default.splitlines()[:3] and "] StaticText '" in observation
    assert "] StaticText '" not in default
    assert info["boxes"] and {int(number) for number in info["boxes"]} <= {
        e.id for e in elements(env.session.view.tree)
    }
    session: BrowserSession = env.session
    again, _ = env.reset(seed=1, options=options)
    assert again == observation and env.session is not session
    env.close()
    other.close()

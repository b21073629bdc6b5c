import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.webarena.browser.view import Element, ViewOptions, elements
from tests.webarena.conftest import Agent, MakeAgent, html

PAGES = sorted((Path(__file__).parent / "pages").glob("*.html"))
GOLDEN = Path(__file__).parents[1] / "golden" / "webarena_trees.json"


def lines_of(agent: Agent, body: str, **parts: str) -> list[str]:
    """The lines under the root, without ids."""
    return lines(agent.show(body, **parts).tree)


def lines(tree: str) -> list[str]:
    return [line.split("] ", 1)[-1] for line in tree.replace("\n\t", "\n").split("\n")[1:]]


def found(agent: Agent, role: str) -> list[Element]:
    return [e for e in elements(agent.tree) if e.role == role]


def observe(agent: Agent, **options: Any) -> dict[str, Any]:
    return agent.run(agent.session.tab.run("o => agentgym.observe(o)", options))


# Golden trees


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_reproduce_the_golden_trees(agent: Agent, page: Path) -> None:
    """After an intended change, `WRITE_GOLDEN=1 pytest tests/webarena/test_observe.py` writes the trees again."""
    agent.site.put("/", page.read_text())
    agent.site.put("/other", html("<button>Foreign</button>"))
    agent.goto("/")
    tree = agent.see().tree.split("\n")
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("WRITE_GOLDEN"):
        golden[page.stem] = tree
        GOLDEN.write_text(json.dumps(golden, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    assert tree == golden[page.stem]


# Ids


def test_elements_keep_their_ids(agent: Agent) -> None:
    agent.show("<button>a</button><button>b</button>")
    assert [e.id for e in elements(agent.tree)] == [1, 2, 3]
    agent.js("document.body.insertAdjacentHTML('afterbegin', '<button>c</button>')")
    agent.js("document.querySelectorAll('button')[1].remove()")
    agent.see()
    assert [(e.name, e.id) for e in found(agent, "button")] == [("c", 4), ("b", 3)]
    agent.show("<p><button>new</button>")
    assert [e.id for e in elements(agent.tree)] == [1, 2]


def test_ids_refer_to_the_last_observation(agent: Agent) -> None:
    agent.show("<button>a</button><button>b</button>")
    call = agent.backend.call
    text = "(e, more) => e.tagName + more"
    assert agent.run(call(agent.session.tab, 2, text, "!")) == "BUTTON!"
    assert agent.run(call(agent.session.tab, 1, text, "!")) == "HTML!"
    assert agent.run(call(agent.session.tab, 9, text, "!")) is None
    agent.js("document.querySelector('button').remove()")
    assert agent.run(call(agent.session.tab, 2, text, "!")) is None
    agent.js("document.querySelector('button').style.display = 'none'")
    agent.see()
    assert agent.run(call(agent.session.tab, 3, text, "!")) is None


# What is in view


TALL = "<div style='height: 3000px'>top</div>"


def test_viewport_shows_only_the_window(make_agent: MakeAgent) -> None:
    agent = make_agent(view=ViewOptions(viewport=True))
    agent.show(f"<button>a</button>{TALL}<button>b</button>")
    assert [e.name for e in found(agent, "button")] == ["a"]
    agent.js("scrollTo(0, 3000)")
    agent.see()
    assert [e.name for e in found(agent, "button")] == ["b"]
    frame = f'<iframe width=300 height=200 srcdoc="<button>c</button>{TALL}<button>d</button>"></iframe>'
    agent.show(f"<div style='height: 650px'></div>{frame}")
    assert [e.name for e in found(agent, "button")] == ["c"]
    agent.js("document.querySelector('iframe').contentWindow.scrollTo(0, 5000)")
    agent.see()
    assert found(agent, "button") == []  # most of it is below the window
    agent.js("scrollTo(0, 5000)")
    agent.see()
    assert [e.name for e in found(agent, "button")] == ["d"]


def test_hidden_elements_are_left_out(make_agent: MakeAgent) -> None:
    agent = make_agent(view=ViewOptions(viewport=False, hidden=("#score", ".secret")))
    body = "<p id=score>10 <button>a</button></p><button>b<i class=secret>c</i></button>"
    assert lines_of(agent, body) == ["button 'b'"]
    assert lines_of(agent, body.replace("score", "else")) == ["StaticText '10'", "button 'a'", "button 'b'"]


@pytest.mark.parametrize(
    "style", ["height: 0; overflow: hidden", "display: none", "visibility: hidden", "content-visibility: hidden"]
)
def test_invisible_elements_are_left_out(agent: Agent, style: str) -> None:
    closed = "<details>text <button>a</button><summary>s</summary></details>"
    body = f"<div style='{style}'>text <button>a</button></div>{closed}<button>b</button>"
    assert lines_of(agent, body)[1:] == ["DisclosureTriangle 's' expanded: False", "button 'b'"]


def test_only_the_front_modal_dialog_is_shown(agent: Agent) -> None:
    body = "<button>a</button><dialog id=x><button>b</button></dialog><dialog id=y><button>c</button></dialog>"
    assert lines_of(agent, body) == ["button 'a'"]
    for front, name in (("y", "c"), ("x", "b")):
        agent.js(f"document.getElementById('{front}').showModal()")
        agent.see()
        assert [e.name for e in found(agent, "button")] == [name]
    agent.js("for (const e of document.querySelectorAll('dialog')) e.close()")
    assert [e.name for e in elements(agent.see().tree)[1:]] == ["a"]


# What is clicked without a role


def test_clickable_elements_are_marked(agent: Agent) -> None:
    hand = "style='cursor: pointer'"
    assert lines_of(agent, f"<div {hand}>a <b>b</b> <i {hand}>c</i></div>") == ["generic 'a b c' clickable: True"]
    assert lines_of(agent, f"<a href=# {hand}><span {hand}>d</span></a>") == ["link 'd'"]
    assert lines_of(agent, f"<div {hand}>{'long ' * 30}</div>")[0] == "generic '' clickable: True"
    assert lines_of(agent, f"<ul><li {hand}>e<li>f</ul>") == ["listitem 'e' clickable: True", "StaticText 'f'"]
    assert lines_of(agent, f"<img src='data:,' width=9 height=9 {hand}>") == ["img '' clickable: True"]


def test_labels_represent_invisible_controls(agent: Agent) -> None:
    box = "<input type=checkbox id=c {}><label for=c>Agree</label>"
    assert lines_of(agent, box.format("")) == ["checkbox 'Agree' checked: false"]
    assert lines_of(agent, box.format("style='display: none'")) == ["LabelText 'Agree' clickable: True"]
    assert lines_of(agent, box.format("style='opacity: 0'"))[-1] == "LabelText 'Agree' clickable: True"


# State


def test_states_follow_the_page(agent: Agent) -> None:
    agent.show("<input aria-label=a><input type=checkbox aria-label=b><select aria-label=c><option>x<option>y</select>")
    agent.js("document.querySelector('input').focus()")
    agent.js("document.querySelector('input').value = 'it\\'s'")
    agent.js("document.querySelector('[type=checkbox]').click()")
    agent.js("document.querySelector('select').value = 'y'")
    box, tick, options = (found_one for found_one in elements(agent.see().tree)[1:4])
    assert box.properties == {"focused": "True", "value": "it's"}
    assert tick.properties == {"checked": "true"}
    assert options.properties == {"hasPopup": "menu", "expanded": "False", "value": "y"}
    assert [e.properties for e in found(agent, "option")] == [{}, {"selected": "True"}]
    assert elements(agent.tree)[0].properties == {}


def test_focus_is_shown_in_shadow_roots_and_frames(agent: Agent) -> None:
    agent.show("<div></div><iframe srcdoc='<input aria-label=inner>'></iframe>")
    agent.js("document.querySelector('div').attachShadow({mode: 'open'}).innerHTML = '<input aria-label=shadow>'")
    agent.js("document.querySelector('div').shadowRoot.querySelector('input').focus()")
    agent.see()
    assert [(e.name, e.properties) for e in found(agent, "textbox")] == [("shadow", {"focused": "True"}), ("inner", {})]
    agent.js("document.querySelector('iframe').contentDocument.querySelector('input').focus()")
    agent.see()
    assert [e.properties for e in found(agent, "textbox")] == [{}, {"focused": "True"}]


def test_fields_are_invalid_only_after_an_attempt(agent: Agent) -> None:
    agent.show("<form onsubmit='return false'><input aria-label=a required><button>Go</button></form>")
    assert found(agent, "textbox")[0].properties == {"required": "True"}
    agent.click("button", "Go")
    assert found(agent, "textbox")[0].properties["invalid"] == "true"


# Length


def test_long_trees_are_truncated_after_a_line(agent: Agent) -> None:
    agent.show("".join(f"<button>number {i}</button>" for i in range(100)))
    for most in (1000, 1001, 1010, 2000):
        result = observe(agent, viewport=False, maxChars=most)
        *whole, note = result["tree"].split("\n")
        assert result["truncated"] and len(result["tree"]) <= most
        assert whole == agent.tree.split("\n")[: len(whole)]
        assert note == f"... {101 - len(whole)} more lines left out: the page is too long"
        assert result["count"] == len(whole)
    assert not observe(agent, viewport=False)["truncated"]


def test_long_lists_are_truncated(agent: Agent) -> None:
    options = "".join(f"<option{' selected' if i == 250 else ''}>o{i}" for i in range(300))
    select_lines = lines_of(agent, f"<select aria-label=s>{options}</select>")
    assert select_lines[-2:] == [
        "option 'o250' selected: True",
        "\t... 249 more options; type the text of one to choose it",
    ]
    assert len(select_lines) == 53


def test_long_words_end_in_an_ellipsis(agent: Agent) -> None:
    long = "word " * 5000
    heading, text, field = lines_of(agent, f"<h2>{long}</h2><p>{long}</p><input value='{long}'>")[:1] + found_lines(
        agent
    )
    assert heading.endswith("word…'") and len(heading) < 220
    assert text.endswith("…'") and 9_990 < len(text) < 10_030
    assert field.endswith("…'") and len(field) < 1_030


def found_lines(agent: Agent) -> list[str]:
    every = lines(agent.tree)
    return [next(x for x in every if x.startswith("StaticText") and len(x) > 9000), every[-1]]


# Hostile pages


CLOBBER = """<form aria-label=trap>
<input name=childNodes><input name=firstChild><input name=tagName><input name=localName>
<input name=getAttribute><input name=hasAttribute><input name=nodeType><input name=shadowRoot><input name=matches>
<input name=checkVisibility><input name=getBoundingClientRect><input name=closest><input name=tabIndex>
<input name=title>
<input name=isConnected><input name=ownerDocument><input name=textContent><input name=labels>
<input name=parentNode></form>
<img name=body><img name=title><img name=activeElement><img name=documentElement><form name=querySelectorAll></form>
<form name=styleSheets></form><form name=adoptedStyleSheets></form><form name=getElementById></form>
<button>End</button>"""


def test_element_names_cannot_hide_dom_properties(agent: Agent) -> None:
    agent.show(CLOBBER, title="Mine")
    assert elements(agent.tree)[0].name == "Mine"
    assert len(found(agent, "textbox")) == 19 and found(agent, "button")[0].name == "End"
    form = found(agent, "form")[0].id
    assert (
        form and agent.run(agent.backend.call(agent.session.tab, form, "e => e.constructor.name")) == "HTMLFormElement"
    )


def test_the_page_cannot_change_the_script(agent: Agent) -> None:
    script = (
        "Element.prototype.getAttribute = () => 'evil'; Map.prototype.set = () => { throw 1 }; globalThis.agentgym = {}"
    )
    assert lines_of(agent, f"<script>{script}</script><button aria-label=a>a</button>") == ["button 'a'"]


def build(agent: Agent, script: str) -> tuple[dict[str, Any], float]:
    agent.show("<button>First</button>")
    agent.js(script)
    start = time.monotonic()
    result = observe(agent, viewport=False)
    return result, time.monotonic() - start


# Chromium itself cannot lay out 3,000 levels.
NEST = (
    "let e = document.body; for (let i = 0; i < {}; i++) e = e.appendChild(document.createElement('{}')); e.append(1)"
)
LINKS = "let e = document.body; for (let i = 0; i < 200; i++) { const a = document.createElement('a'); "
MANY = "document.body.append(...Array.from({length: 30000}, (_, i) => Object.assign("
HOSTILE = {
    "deep": NEST.format(2000, "div"),
    "deep links": LINKS + "a.href = '#'; a.append('x'); e = e.appendChild(a); }",
    "wide": "document.body.append(...Array.from({length: 100000}, () => document.createElement('i')))",
    "many": MANY + "document.createElement('button'), {textContent: 'b' + i})))",
    "huge text": "document.body.append('x '.repeat(2_000_000))",
    "huge name": "const b = document.createElement('h2'); b.append('x '.repeat(2_000_000)); document.body.append(b)",
    "owning itself": "document.body.insertAdjacentHTML('beforeend', "
    "'<div id=a aria-owns=b>a<div id=b aria-owns=a>b</div></div><p id=c aria-owns=c>c')",
    "labelled in a circle": "document.body.insertAdjacentHTML('beforeend', "
    "'<button id=a aria-labelledby=b>a</button><button id=b aria-labelledby=a>b</button>')",
}


@pytest.mark.rotating(always=2)
@pytest.mark.slow
@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE)
def test_hostile_pages_take_bounded_time(agent: Agent, script: str) -> None:
    result, seconds = build(agent, f"(() => {{ {script} }})()")
    assert result["tree"].split("\n")[1] == "\t[2] button 'First'"
    assert len(result["tree"]) <= 60_000
    assert seconds < 30  # usually 0.1 to 1 s; this allows for a busy machine


@pytest.mark.slow
def test_endlessly_nested_frames_are_truncated(agent: Agent) -> None:
    body = "<button>In</button><script>if (parent.depth === undefined || parent.depth < 12) {"
    body += " window.depth = (parent.depth ?? 0) + 1;"
    body += " document.body.append(Object.assign(document.createElement('iframe'), {src: '/?' + depth})) }</script>"
    view = agent.show(body)
    assert 1 < len([e for e in elements(view.tree) if e.role == "button"]) <= 7


@pytest.mark.slow
def test_a_page_with_too_many_nodes_is_truncated(agent: Agent) -> None:
    result, _ = build(agent, HOSTILE["wide"])
    assert (
        result["truncated"]
        and result["tree"].split("\n")[-1] == "... the rest of the page left out: the page is too long"
    )


def test_observing_a_page_changes_nothing(agent: Agent) -> None:
    html_of = "document.documentElement.outerHTML"
    agent.site.put("/", next(p for p in PAGES if p.stem == "widgets").read_text())
    agent.goto("/")
    before = agent.js(html_of)
    agent.see()
    assert agent.js(html_of) == before


def test_a_state_that_is_no_truth_value_is_not_shown(agent: Agent) -> None:
    agent.show("<button aria-expanded=constructor>a</button><button aria-expanded=true>b</button>")
    assert "button 'a'" in agent.tree.splitlines()[1] and "expanded" not in agent.tree.splitlines()[1]
    assert agent.tree.splitlines()[2].endswith("button 'b' expanded: True")

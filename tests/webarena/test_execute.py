"""Actions on real pages have the effects of a user's mouse and keyboard."""

from typing import Any

import pytest

from agentgym_envs.errors import InvalidAction
from agentgym_envs.webarena.actions import (
    Action,
    Click,
    Hover,
    Press,
    Scroll,
    Type,
)
from tests.webarena.conftest import Agent, html

pytestmark = pytest.mark.slow
SAY = "document.getElementById('out').textContent = "
OUT = "<p id=out></p>"
HEARD = f"{SAY}'clicked'"
FIELD = "aria-label=Field"
LISTEN = (
    "<script>window.events = []; for (const type of ['keydown', 'keyup', 'beforeinput', 'input', 'change', 'focus'])"
    "document.addEventListener(type, e => events.push(type + (e.key ?? '')), true)</script>"
)
REACT = """<script>
// As React does: what the field holds is what the state holds, and a change is one that its tracker did not see.
const field = document.querySelector('input');
const proto = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
let tracked = field.value, state = field.value;
Object.defineProperty(field, 'value', {
  get() { return proto.get.call(this); },
  set(v) { tracked = v; proto.set.call(this, v); },
});
field.addEventListener('input', () => {
  if (proto.get.call(field) !== tracked) { state = proto.get.call(field); out.textContent = 'State: ' + state; }
  field.value = state;
});
</script>"""


def refused(agent: Agent, action: Action) -> str:
    with pytest.raises(InvalidAction) as error:
        agent.act(action)
    return str(error.value)


def value(agent: Agent, selector: str = "input") -> Any:
    return agent.js(f"document.querySelector('{selector}').value")


def was_clicked(agent: Agent) -> bool:
    return "StaticText 'clicked'" in agent.tree


# Clicks


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("<button onclick={c}>Go</button>", "button"),
        ("<a href=# onclick={c}>Go</a>", "link"),
        ("<div role=button tabindex=0 onclick={c}>Go</div>", "button"),
        ("<button onclick={c}><span style='pointer-events: none'>Go</span></button>", "button"),
        ("<div onclick={c}><button>Go</button></div>", "button"),
        ("<button onmousedown={c}>Go</button>", "button"),
        ("<button onpointerup={c}>Go</button>", "button"),
        ("<div style='height: 3000px'></div><button onclick={c}>Go</button>", "button"),
        (
            "<div style='width: 3000px; display: flex; justify-content: end'><button onclick={c}>Go</button></div>",
            "button",
        ),
        ("<div style='width: 120px; font-size: 30px'>before this <a href=# onclick={c}>Go</a> one</div>", "link"),
        ("<button onclick={c} style='transform: rotate(45deg) scale(2); margin: 90px'>Go</button>", "button"),
        ("<button onclick={c} style='position: fixed; bottom: 0; right: 0'>Go</button>", "button"),
        ("<details open><summary onclick={c}>Go</summary>More</details>", "DisclosureTriangle"),
        ("<button onclick={c} style='height: 0; width: 0; padding: 0; border: 0'><b>Go</b></button>", "button"),
    ],
)
def test_clicked_elements_receive_the_click(agent: Agent, body: str, role: str) -> None:
    agent.show(OUT + body.replace("{c}", f'"{HEARD}"'))
    agent.click(role, "Go")
    assert was_clicked(agent)


@pytest.mark.parametrize(
    "style", ["display: none", "position: absolute; opacity: 0", "position: absolute; left: -9999px"]
)
def test_a_hidden_checkbox_is_clicked_by_its_label(agent: Agent, style: str) -> None:
    agent.show(f"<label><input type=checkbox style='{style}'> Agree</label>")
    visible = "LabelText" if style == "display: none" else "checkbox"
    agent.click(visible, "Agree")
    assert agent.js("document.querySelector('input').checked") is True
    agent.click(visible, "Agree")
    assert agent.js("document.querySelector('input').checked") is False


def test_radio_buttons_are_clicked(agent: Agent) -> None:
    agent.show("<label><input type=radio name=r>One</label><label><input type=radio name=r>Two</label>")
    agent.click("radio", "One")
    agent.click("radio", "Two")
    assert agent.js("[...document.querySelectorAll('input')].map(e => e.checked)") == [False, True]


def test_a_covered_element_cannot_be_clicked(agent: Agent) -> None:
    cover = (
        "<div id=cover style='position: fixed; inset: 0' onclick='this.remove()' role=button aria-label=Cover></div>"
    )
    agent.show(OUT + f'<button onclick="{HEARD}">Go</button>' + cover)
    assert "covered" in refused(agent, Click(agent.find("button", "Go")))
    assert "covered" in refused(agent, Hover(agent.find("button", "Go")))
    agent.click("button", "Cover")
    agent.click("button", "Go")
    assert was_clicked(agent)


def test_a_partly_covered_element_is_clicked_on_its_visible_part(agent: Agent) -> None:
    cover = "<div style='position: fixed; inset: 0 auto 0 0; width: 200px'></div>"
    agent.show(OUT + f'<button style="width: 300px" onclick="{HEARD}">Go</button>' + cover)
    agent.click("button", "Go")
    assert was_clicked(agent)


def test_an_element_below_a_sticky_header_is_scrolled_out(agent: Agent) -> None:
    header = "<div style='position: sticky; top: 0; height: 100px; background: red'>Header</div>"
    body = f'{OUT}{header}<button style="margin-top: -90px" onclick="{HEARD}">Go</button>'
    agent.show(f"<div style='height: 900px'></div>{body}<div style='height: 2000px'></div>")
    agent.js("scrollTo(0, 930)")
    agent.see()
    agent.click("button", "Go")
    assert was_clicked(agent)


def test_an_element_in_a_scrollable_part_is_clicked(agent: Agent) -> None:
    inner = f'<div style="height: 900px"></div><button onclick="{HEARD}">Go</button>'
    agent.show(f"{OUT}<div style='height: 100px; overflow: auto'>{inner}</div>")
    agent.click("button", "Go")
    assert was_clicked(agent)


def frame(body: str) -> str:
    style = "width: 400px; height: 900px; border: 9px solid; padding: 7px"
    return f"{OUT}<div style='height: 900px'></div><iframe srcdoc='{body}' title=Frame style='{style}'></iframe>"


def test_elements_in_a_frame_receive_actions(agent: Agent) -> None:
    inner = '<div style="height: 500px"></div><button onclick="parent.out.textContent = `clicked`">Go</button>'
    inner += "<input aria-label=Field value=old><select aria-label=Choice><option>A<option>B</select>"
    inner += "<div contenteditable role=textbox aria-label=Text>old</div>"
    agent.show(frame(inner))
    agent.click("button", "Go")
    assert was_clicked(agent)
    agent.type("textbox", "Field", "new")
    agent.type("textbox", "Text", "newer")
    agent.click("option", "B")
    inside = "frames[0].document.querySelector"
    assert agent.js(f"[{inside}('input').value, {inside}('select').value, {inside}('div[role]').textContent]") == [
        "new",
        "B",
        "newer",
    ]


def test_an_element_in_a_covered_frame_cannot_be_clicked(agent: Agent) -> None:
    cover = "<div style='position: fixed; inset: 0'>Cover</div>"
    agent.show(frame('<button onclick="parent.out.textContent = `clicked`">Go</button>') + cover)
    assert "covered" in refused(agent, Click(agent.find("button", "Go")))


def test_elements_in_a_shadow_root_receive_actions(agent: Agent) -> None:
    script = "document.querySelector('section').attachShadow({mode: 'open'}).innerHTML = '<div></div>';"
    script += (
        "document.querySelector('section').shadowRoot.querySelector('div').attachShadow({mode: 'open'}).innerHTML = "
    )
    script += "`<button onclick='out.textContent = \\`clicked\\`'>Go</button><input aria-label=Field value=old>`"
    agent.show(f"{OUT}<section></section><script>{script}</script>")
    agent.click("button", "Go")
    assert was_clicked(agent)
    agent.type("textbox", "Field", "new")
    assert "textbox 'Field' focused: True value: 'new'" in agent.tree


def test_options_of_a_drop_down_list_are_selected(agent: Agent) -> None:
    options = "<option>A<option>B<option disabled>C<optgroup disabled label=G><option>D</optgroup>"
    agent.show(f"<select {FIELD} onchange=\"out.textContent = 'now ' + this.value\">{options}</select>{OUT}")
    agent.click("option", "B")
    assert (value(agent, "select"), "StaticText 'now B'" in agent.tree) == ("B", True)
    for name in "CD":
        assert "disabled" in refused(agent, Click(agent.find("option", name)))
    assert value(agent, "select") == "B"


def test_options_of_a_multiple_choice_list_are_toggled(agent: Agent) -> None:
    agent.show("<select multiple><option>A<option>B<option>C</select>")
    for name in "ABA":
        agent.click("option", name)
    agent.click("option", "C")
    assert agent.js("[...document.querySelector('select').selectedOptions].map(o => o.text)") == ["B", "C"]


@pytest.mark.parametrize("around", ["<fieldset disabled>{}</fieldset>", "{}"])
def test_disabled_fields_and_options_are_refused(agent: Agent, around: str) -> None:
    off = "disabled" if around == "{}" else ""
    fields = (
        f"<input {FIELD} {off}><textarea aria-label=Text {off}></textarea><select {off}><option>A<option>B</select>"
    )
    agent.show(around.format(fields))
    assert "is disabled" in refused(agent, Type(agent.find("textbox", "Field"), "x", False))
    assert "is disabled" in refused(agent, Type(agent.find("textbox", "Text"), "x", False))
    assert "disabled" in refused(agent, Type(agent.find("combobox", ""), "B", False))
    assert "disabled" in refused(agent, Click(agent.find("option", "B")))


def test_a_disabled_button_is_refused(agent: Agent) -> None:
    agent.show(f'{OUT}<button disabled onclick="{HEARD}">Go</button>')
    assert "it is disabled" in refused(agent, Click(agent.find("button", "Go")))
    assert not was_clicked(agent)


def test_the_refusal_names_the_covering_element(agent: Agent) -> None:
    agent.show('<button>Go</button><div style="position:fixed;inset:0" role=dialog aria-label=Wait></div>')
    cover = agent.find("dialog", "Wait")
    assert f"covered by element [{cover}]" in refused(agent, Click(agent.find("button", "Go")))


def test_a_note_reports_a_changed_text(agent: Agent) -> None:
    agent.show("<label>Count <input oninput=\"this.value = this.value.replace(/[^0-9]/g, '')\"></label>")
    assert agent.act(Type(agent.find("textbox", "Count"), "a1b2", False)) == "The field now holds '12'."
    assert agent.act(Type(agent.find("textbox", "Count"), "34", False)) == ""


def test_an_unknown_option_is_refused_with_the_list_of_options(agent: Agent) -> None:
    agent.show("<label>Size <select><option>S<option>M</select></label>")
    assert "There are: S, M." in refused(agent, Type(agent.find("combobox", "Size"), "XL", False))


def test_shift_and_a_letter_type_a_capital(agent: Agent) -> None:
    agent.show("<input aria-label=Name autofocus>")
    agent.click("textbox", "Name")
    agent.act(Press("Shift+y"))
    assert "value: 'Y'" in agent.tree


# Texts


@pytest.mark.parametrize(
    "field",
    [
        f"<input {FIELD} value=old>",
        f"<input type=search {FIELD} value=old>",
        f"<input type=password {FIELD} value=old>",
        f"<input type=email {FIELD} value=old>",
        f"<textarea {FIELD}>old</textarea>",
    ],
)
@pytest.mark.parametrize("text", ["new", "", 'It\'s [1] "é" – 日本 🙂', "x" * 250])
def test_typing_replaces_the_text(agent: Agent, field: str, text: str) -> None:
    agent.show(field)
    agent.type("searchbox" if "search" in field else "textbox", "Field", text)
    assert agent.js("document.querySelector('[aria-label]').value") == text


def test_typing_fires_key_events(agent: Agent) -> None:
    agent.show(f"<input {FIELD} value=old>{LISTEN}")
    agent.type("textbox", "Field", "ab")
    assert agent.js("events") == [
        "focus",
        *(event for key in "ab" for event in (f"keydown{key}", "beforeinput", "input", f"keyup{key}")),
    ]
    agent.press("Enter")
    assert agent.js("events.slice(9)") == ["keydownEnter", "beforeinput", "change", "keyupEnter"]


def test_emptying_a_field_fires_an_input_event(agent: Agent) -> None:
    agent.show(f"<input {FIELD} value=old oninput=\"out.textContent = 'now ' + this.value.length\">{OUT}")
    agent.type("textbox", "Field", "")
    assert "StaticText 'now 0'" in agent.tree


def test_enter_is_pressed_only_with_the_flag(agent: Agent) -> None:
    agent.show(f"<input {FIELD}>{LISTEN}")
    agent.type("textbox", "Field", "a", enter=False)
    assert "keydownEnter" not in agent.js("events")
    agent.type("textbox", "Field", "a", enter=True)
    assert agent.js("events").count("keydownEnter") == 1


def test_text_of_several_lines_is_typed(agent: Agent) -> None:
    rich = "<div contenteditable role=textbox aria-label=Rich>old</div>"
    agent.show(f"<textarea aria-label=Area>old</textarea><input {FIELD}>{rich}")
    agent.type("textbox", "Area", "one\n\ntwo")
    assert value(agent, "textarea") == "one\n\ntwo"
    agent.type("textbox", "Field", "one\ntwo")
    assert value(agent) == "one two"
    agent.type("textbox", "Rich", "one\ntwo")
    assert agent.js("document.querySelector('div').innerText").split() == ["one", "two"]
    agent.type("textbox", "Rich", "")
    assert agent.js("document.querySelector('div').innerText").strip() == ""


def test_enter_in_a_text_area_adds_a_line(agent: Agent) -> None:
    agent.show("<textarea aria-label=Area>old</textarea>")
    agent.type("textbox", "Area", "one", enter=True)
    assert value(agent, "textarea") == "one\n"


@pytest.mark.parametrize(
    ("kind", "role", "good", "bad"),
    [
        ("date", "Date", "2024-05-31", "31.5."),
        ("time", "InputTime", "13:45", "noon"),
        ("month", "DateTime", "2024-05", "May"),
        ("week", "DateTime", "2024-W05", "5"),
        ("datetime-local", "DateTime", "2024-05-31T13:45", "now"),
        ("color", "ColorWell", "#ff0000", "red!"),
        ("number", "spinbutton", "12.5", None),
        ("range", "slider", "70", None),
    ],
)
def test_fields_accept_only_text_of_their_format(
    agent: Agent, kind: str, role: str, good: str, bad: str | None
) -> None:
    agent.show(f"<input type={kind} step=any {FIELD} oninput=\"out.textContent = 'now ' + this.value\">{OUT}")
    agent.type(role, "Field", good)
    assert (value(agent), f"StaticText 'now {good}'" in agent.tree) == (good, True)
    if bad is not None:
        assert "does not take that text" in refused(agent, Type(agent.find(role, "Field"), bad, False))


def test_a_drop_down_list_takes_the_text_of_an_option(agent: Agent) -> None:
    agent.show(f"<select {FIELD}><option value=1>First  one<option value=2>Second<option disabled>Third</select>")
    agent.type("combobox", "Field", "second")
    assert value(agent, "select") == "2"
    agent.type("combobox", "Field", "First one")
    assert value(agent, "select") == "1"
    for text in ("Fourth", "Third"):
        assert "no option of that text" in refused(agent, Type(agent.find("combobox", "Field"), text, False))


@pytest.mark.parametrize(
    ("body", "role", "name", "why"),
    [
        (f"<input readonly {FIELD} value=old>", "textbox", "Field", "can only be read"),
        (f"<input readonly type=date {FIELD} value=2024-01-01>", "Date", "Field", "can only be read"),
        ("<button>Go</button>", "button", "Go", "is no field"),
        ("<input type=checkbox aria-label=Field>", "checkbox", "Field", "is no field"),
        ("<input type=file aria-label=Field>", "button", "Field", "is no field"),
        ("<a href=#>Go</a>", "link", "Go", "is no field"),
        ("<form aria-label=Form><input><input></form>", "form", "Form", "is no field"),
    ],
)
def test_typing_into_other_elements_is_refused(agent: Agent, body: str, role: str, name: str, why: str) -> None:
    agent.show(body)
    assert why in refused(agent, Type(agent.find(role, name), "x", False))


def test_typing_into_a_container_fills_its_only_field(agent: Agent) -> None:
    agent.show("<div role=combobox aria-label=Box><input id=f></div>")
    agent.type("combobox", "Box", "tea")
    assert value(agent) == "tea"


def test_maxlength_is_respected(agent: Agent) -> None:
    agent.show(f"<input maxlength=3 {FIELD}>")
    agent.type("textbox", "Field", "abcdef")
    assert value(agent) == "abc"


@pytest.mark.parametrize("kind", ["text", "date"])
def test_a_field_controlled_by_a_framework_is_filled(agent: Agent, kind: str) -> None:
    agent.show(f"<input type={kind} {FIELD}>{OUT}{REACT}")
    text = "2024-05-31" if kind == "date" else "tea"
    agent.type("Date" if kind == "date" else "textbox", "Field", text)
    assert f"StaticText 'State: {text}'" in agent.tree and value(agent) == text


# The mouse and the keyboard


def test_a_menu_opens_under_the_mouse(agent: Agent) -> None:
    style = "<style>ul { display: none } nav:hover ul { display: block }</style>"
    item = f'<a href=# onclick="{HEARD}">Item</a>'
    agent.show(f"{style}<nav><a href=#>Menu</a><ul><li>{item}</ul></nav>{OUT}")
    assert "Item" not in agent.tree
    agent.hover("link", "Menu")
    agent.click("link", "Item")
    assert was_clicked(agent)


def test_an_element_without_a_box_cannot_be_hovered(agent: Agent) -> None:
    agent.show("<select><option>A</select>")
    assert "no place" in refused(agent, Hover(agent.find("option", "A")))


def test_keys_are_pressed_in_the_focused_element(agent: Agent) -> None:
    agent.show(f"<input {FIELD} value='some text'><input aria-label=Second>{LISTEN}")
    agent.press("Control+a", agent.find("textbox", "Field"))
    agent.press("Backspace")
    assert value(agent) == ""
    agent.press("Tab")
    assert "textbox 'Second' focused: True" in agent.tree
    agent.press("x")
    agent.press("Shift+Y")
    assert agent.js("document.querySelectorAll('input')[1].value") == "xY"


def test_a_key_can_open_another_page(agent: Agent) -> None:
    agent.site.put("/next", html("", title="Next"))
    agent.show("<a href=/next>Next</a>")
    agent.press("Enter", agent.find("link", "Next"))
    assert agent.session.view.title == "Next"


def top(agent: Agent, expression: str = "scrollY") -> Any:
    return agent.js(expression)


def test_scroll_moves_by_a_window_until_the_end(agent: Agent) -> None:
    agent.show("<style>html { scroll-behavior: smooth }</style><div style='height: 1800px'></div>")
    assert "further up" in agent.act(Scroll("up"))
    assert (agent.act(Scroll("down")), top(agent)) == ("", 720)
    assert (agent.act(Scroll("down")), top(agent) > 1000) == ("", True)
    assert "further down" in agent.act(Scroll("down"))
    agent.act(Scroll("up"))
    assert top(agent) < 720


def test_scroll_moves_the_largest_scrollable_part(agent: Agent) -> None:
    small = "<div style='height: 50px; overflow: auto'><p style='height: 900px'></p></div>"
    agent.show(f"{small}<main style='height: 300px; overflow: auto'><p style='height: 900px'></p></main>")
    assert agent.act(Scroll("down")) == "" and top(agent, "document.querySelector('main').scrollTop") == 300


def test_a_page_that_cannot_be_scrolled_gives_a_note(agent: Agent) -> None:
    agent.show("<p>Short</p>")
    assert "further down" in agent.act(Scroll("down"))


# Ids


@pytest.mark.parametrize("action", [Click, Hover, lambda id: Type(id, "x"), lambda id: Press("a", id)])
def test_unknown_ids_are_refused(agent: Agent, action: Any) -> None:
    agent.show("<button>Go</button>")
    assert "no element [999]" in refused(agent, action(999))


def test_an_id_of_a_removed_element_is_refused(agent: Agent) -> None:
    agent.show("<button onclick='this.remove()'>Go</button><button>Stay</button>")
    removed, stay = agent.find("button", "Go"), agent.find("button", "Stay")
    agent.click("button", "Go")
    assert f"no element [{removed}]" in refused(agent, Click(removed))
    assert agent.find("button", "Stay") == stay


def test_an_id_of_an_earlier_page_is_refused(agent: Agent) -> None:
    agent.show("<p>" + "<button>x</button>" * 20)
    last = agent.session.view.count
    agent.show("<button>Go</button>", "/2")
    assert "no element" in refused(agent, Click(last))


def test_an_id_of_a_page_that_navigated_by_itself_is_refused(agent: Agent) -> None:
    agent.show("<button>Go</button>")
    button = agent.find("button", "Go")
    agent.site.put("/next", html("<button>Other</button>"))
    agent.js("void (location = '/next')")
    agent.run(agent.session.settle())
    assert "no element" in refused(agent, Click(button))

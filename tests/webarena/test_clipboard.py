"""Each episode has a clipboard of its own, which its pages and tabs share."""

import pytest

from agentgym_envs.webarena.actions import NewTab
from tests.webarena.conftest import Agent, MakeAgent

pytestmark = pytest.mark.slow
FIELDS = """
<p>Plain words</p><input aria-label=From value="{text}"><input aria-label=To><input aria-label=Short maxlength=3>
<input type=password aria-label=Secret value=hidden><textarea aria-label=Long></textarea><p id=log></p>
"""


def value(agent: Agent, name: str) -> str:
    return str(agent.js(f"document.querySelector('[aria-label={name}]').value"))


def copy(agent: Agent, name: str = "From", keys: str = "Control+c") -> None:
    agent.press("Control+a", agent.find("textbox", name))
    agent.press(keys)


def paste(agent: Agent, name: str = "To", keys: str = "Control+v") -> str:
    agent.press(keys, agent.find("textbox", name))
    return value(agent, name)


def test_episodes_in_one_browser_do_not_share_copied_texts(make_agent: MakeAgent) -> None:
    one, two = make_agent(), make_agent()
    assert one.session.context.browser is two.session.context.browser
    for agent, text in ((one, "of one"), (two, "of two")):
        agent.show(FIELDS.format(text=text))
    copy(one)
    assert paste(two) == "", "pasted what the other episode copied"
    copy(two, keys="Control+x")
    assert value(two, "From") == ""
    assert paste(one) == "of one" and paste(two) == "of two"
    three = make_agent()
    three.show(FIELDS.format(text="of three"))
    assert [paste(three, keys=keys) for keys in ("Control+v", "Shift+Insert", "Control+Shift+v")] == ["", "", ""]


def test_a_copied_text_can_be_pasted_on_other_pages_and_tabs(fresh: Agent) -> None:
    fresh.show(FIELDS.format(text="several words"))
    copy(fresh)
    assert paste(fresh, "Short") == "sev"
    fresh.show(FIELDS.format(text=""), path="/next")
    assert paste(fresh) == "several words"
    fresh.act(NewTab())
    fresh.show(FIELDS.format(text=""), path="/tab")
    assert paste(fresh, "Long", "Shift+Insert") == "several words"
    fresh.show("<p>Only text</p><script>document.body.tabIndex = 0</script>", path="/text")
    fresh.press("Control+a")
    fresh.press("Control+c")
    fresh.show(FIELDS.format(text="") + "<div contenteditable role=textbox aria-label=Rich>Old </div>", path="/rich")
    copy(fresh, "Secret")
    assert paste(fresh) == "Only text", "a password was copied"
    fresh.press("Control+v", fresh.find("textbox", "Rich"))
    assert "Only text" in str(fresh.js("document.querySelector('[contenteditable]').textContent"))


def test_scripts_of_pages_see_the_clipboard_of_their_episode(fresh: Agent) -> None:
    fresh.show(
        FIELDS.format(text="typed")
        + """<button onclick="select_(); document.execCommand('copy')">Copy</button><script>
        const [from, to] = document.querySelectorAll('input');
        const select_ = () => from.select();
        addEventListener('paste', e => log.append('Got ' + e.clipboardData.getData('text/plain') + '.'));
        from.addEventListener('cut', e => { e.clipboardData.setData('text/plain', 'own text'); e.preventDefault() });
        to.addEventListener('paste', e => e.preventDefault());
        </script>"""
    )
    copy(fresh, keys="Control+x")
    assert (paste(fresh), value(fresh, "From")) == ("", "typed"), "a page can prevent a cut and a paste"
    assert paste(fresh, "Long") == "own text"
    fresh.click("button", "Copy")
    assert paste(fresh, "Short") == "typ"
    assert fresh.js("log.textContent") == "Got own text.Got own text.Got typed."

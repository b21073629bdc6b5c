"""The HTML report in a real Chromium."""

from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.cli.reports import make_report, to_html
from tests.cli.test_reports import HOSTILE, episode, many
from tests.viewer.showing import chromium

_CONTRAST = """() => {
    const shade = colour => colour.match(/[\\d.]+/g).slice(0, 3).map(Number).map(c => c / 255)
        .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
    const paper = shade(getComputedStyle(document.body).backgroundColor);
    const ratio = node => {
        const style = getComputedStyle(node), ink = shade(node.closest('svg') ? style.fill : style.color);
        return (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
    };
    const words = document.querySelectorAll('p:not(.note), td, th, dt, dd, figcaption, svg text, li, h1, h2');
    return Math.min(...[...words].map(ratio));
}"""


@pytest.fixture(scope="module")
def browser() -> Any:
    with chromium() as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme"),
    [(1180, "light"), (360, "dark")],
)
def test_the_page_is_readable_loads_nothing_and_fits_the_screen(
    browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    played = [*many(), episode("AgentGym/TextCraft-v0", HOSTILE, HOSTILE, 0.0, goal=HOSTILE)]
    path = tmp_path / "report.html"
    path.write_text(to_html(make_report(played, agentgym_rl=True)), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.on("dialog", lambda dialog: messages.append("a script ran"))
    page.on("request", lambda request: messages.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(_CONTRAST) >= 4.5
    assert (
        page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"
    )  # the policy allows the style
    assert page.locator("svg[role=img]").count() >= 6
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("details td.text").first.is_visible()
    page.close()
    assert not messages

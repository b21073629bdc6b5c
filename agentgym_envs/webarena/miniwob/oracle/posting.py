"""Oracles of the pages with posts."""

from __future__ import annotations

from agentgym_envs.webarena.actions import Action
from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.miniwob.oracle.page_reader import Solver, WidgetReader, click, on

_UNDER_MORE = ("Share via DM", "Copy link to Tweet", "Embed Tweet", "Mute", "Block", "Report")


def one_post(page: WidgetReader) -> Action:
    """Click a button of a user's post, or an entry of its menu."""
    user, label = page.asks(r'For the user (@.+), click on the "(.+)" button')
    post = _posts(page, user)[0]
    if label not in _UNDER_MORE:
        return click(next(e for e in post if e.name == label and e.role == "button"))
    entry = (e for e in post if e.role == "menuitem" and e.name in (label, f"{label} {user}"))
    return click(next(entry, None) or next(e for e in post if e.name == "more"))


def all_posts(page: WidgetReader) -> Action:
    """Click a button of all posts of a user, or of the first `count` ones."""
    label, count, user = page.asks(r'the "(.+)" button on (all|\d+) posts? by (@.+) and then')
    buttons = [next(e for e in post if e.name == label and e.role == "button") for post in _posts(page, user)]
    wanted = buttons if count == "all" else buttons[: int(count)]
    ids = [button.id for button in wanted]
    wrong = (button for button in page.all("button") if on(button, "pressed") != (button.id in ids))
    return click(next(wrong, None) or page.one("button", "Submit"))


def _posts(page: WidgetReader, user: str) -> list[list[Element]]:
    """Return the posts of a user, each as its elements from the user's name to the next one."""
    posts: list[list[Element]] = []
    for element in page.body:
        if element.role == "StaticText" and element.name.startswith("@"):
            posts.append([])
        if posts:
            posts[-1].append(element)
    return [post for post in posts if post[0].name == user]


SOLVERS: dict[str, Solver] = {
    "social-media": one_post,
    "social-media-all": all_posts,
    "social-media-some": all_posts,
}

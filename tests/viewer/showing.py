"""Helpers: the viewer for given paths, in a real Chromium."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.server import make_server
from agentgym_envs.webarena.browser.chromium import find_chromium
from tests.waiting import SECONDS

NAMED = {"button", "link", "textbox", "searchbox", "combobox", "spinbutton", "slider", "tab", "region", "dialog"}
"""Roles of elements that must have an accessible name."""


def roles_and_names(page: Any) -> list[tuple[str, str]]:
    """The accessibility tree of a page, as screen readers get it: roles and names."""
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    return [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in nodes
        if not node.get("ignored")
    ]


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser with Playwright's synchronous interface."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        program = find_chromium(None, playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def serving(*paths: Path) -> Iterator[str]:
    """Run a viewer within this context. Yields its address."""
    viewer = Viewer(paths)
    viewer.summary()
    server = make_server(viewer, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def page_of(browser: Any, address: str, **options: Any) -> Iterator[Any]:
    """Open a page at an address. Errors and warnings of its scripts fail the test at the end."""
    page = browser.new_page(**{"viewport": {"width": 1200, "height": 900}, **options})
    page.set_default_timeout(1000 * SECONDS)
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    try:
        page.goto(address)
        yield page
    finally:
        page.close()
    assert not problems

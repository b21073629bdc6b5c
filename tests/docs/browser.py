"""The built site in a browser: what a search finds, what it loads, and how wide its pages are on a phone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.quiet_http import QuietHTTPServer

PHONE: Any = {"width": 390, "height": 844}
_LINKS = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.pathname)"
_TOO_WIDE = "document.documentElement.scrollWidth - innerWidth"


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server of these files."""
    with QuietHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def phone(address: str) -> Iterator[tuple[Any, list[str]]]:
    """A page with the width of a phone, and the addresses of other hosts that it asks."""
    from playwright.sync_api import sync_playwright

    from agentgym_envs.webarena.browser.chromium import find_chromium

    outside: list[str] = []
    with sync_playwright() as playwright:
        path = find_chromium(None, playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport=PHONE)
        own = (address, "data:", "blob:")
        page.on("request", lambda request: None if request.url.startswith(own) else outside.append(request.url))
        yield page, outside
        browser.close()


def found(page: Any, address: str, words: str) -> list[str]:
    """The pages that a search finds, the best first."""
    page.goto(f"{address}/?q={words}")
    page.wait_for_selector(".md-search-result__link", state="attached")
    return list(dict.fromkeys(page.evaluate(_LINKS)))


def too_wide(page: Any, url: str) -> int:
    """The pixels by which a page is wider than the window."""
    page.goto(url)
    return int(page.evaluate(_TOO_WIDE))

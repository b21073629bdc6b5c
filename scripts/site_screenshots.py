"""Take the screenshots of the embedded sites for the documentation: python scripts/site_screenshots.py [FOLDER]."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.backends import BACKENDS
from agentgym_envs.webarena.browser.chromium import find_chromium
from agentgym_envs.webarena.browser.execute import goto
from agentgym_envs.webarena.browser.pool import shut_down
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.env import browser_options
from agentgym_envs.webarena.inspector.app import InspectorApp, make_server
from agentgym_envs.webarena.inspector.session import InspectorSession
from agentgym_envs.webarena.sites.episodes import HEADER, episodes
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World, world
from agentgym_envs.webarena.tasks.table import load

SIZE = (1280, 800)
TASK, PRODUCT, PRICE = "webarena/shopping-offer-price/21/2", "Karrenby Echo Sweater", "$23.99"
"""A task of the inspector, and its solution."""


def pages(local_world: World) -> dict[str, str]:
    """The screenshots' names and what they show: each site's main pages."""
    product = local_world.value(
        "SELECT slug FROM shop_products WHERE special_price IS NOT NULL AND enabled = 1 ORDER BY id"
    )
    shelf = local_world.value("SELECT slug FROM shop_categories WHERE parent IS NOT NULL ORDER BY id")
    query = "SELECT b.name, p.id FROM forum_posts p JOIN forum_boards b ON b.id = p.board ORDER BY p.score DESC"
    post = local_world.rows(query)
    query = "SELECT n.path, p.slug FROM code_projects p JOIN code_namespaces n ON n.id = p.namespace ORDER BY p.id"
    space, slug = local_world.rows(query)[0]
    town = local_world.rows("SELECT name FROM map_towns ORDER BY population DESC")
    return {
        "shop": f"{ORIGINS['shop']}/",
        "shop-category": f"{ORIGINS['shop']}/category/{shelf}",
        "shop-product": f"{ORIGINS['shop']}/product/{product}",
        "admin": f"{ORIGINS['admin']}/",
        "admin-orders": f"{ORIGINS['admin']}/orders",
        "forum": f"{ORIGINS['forum']}/all",
        "forum-post": f"{ORIGINS['forum']}/b/{post[0][0]}/{post[0][1]}",
        "code": f"{ORIGINS['code']}/{space}/{slug}",
        "code-issues": f"{ORIGINS['code']}/{space}/{slug}/-/issues",
        "map": f"{ORIGINS['maps']}/",
        "encyclopedia": f"{ORIGINS['encyclopedia']}/",
        "encyclopedia-article": f"{ORIGINS['encyclopedia']}/article/{town[2][0]}",
        "map-directions": f"{ORIGINS['maps']}/directions?from={town[0][0]}&to={town[3][0]}",
    }


async def take(folder: Path) -> None:
    """Visit them and save what is in the window."""
    episode = episodes().open(world(1))
    options = SessionOptions(browser_options(None), headers={HEADER: episode.token}, size=SIZE)
    session = await BrowserSession.open(options, BACKENDS["js"]())
    for name, url in pages(episode.world).items():
        await goto(session, url)
        screenshot = await session.guarded(session.tab.page.screenshot(type="jpeg", quality=72))
        (folder / f"{name}.jpg").write_bytes(screenshot)
    await session.close()


@contextmanager
def inspector() -> Iterator[str]:
    """Serve the inspector with a task within this context. Yields its address."""
    session = InspectorSession(load(), browser_options(None), 1)
    session.begin(load().get(TASK))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = InspectorApp(session, listener.getsockname()[1])
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield app.origin
        finally:
            server.should_exit = True
            thread.join()


def take_inspector(folder: Path) -> None:
    """Solve the task in the inspector, search for another task, and save what is in the window."""
    from playwright.sync_api import sync_playwright

    with inspector() as address, sync_playwright() as playwright:
        path = find_chromium(None, playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 850})
        page.goto(address)
        site = page.frame_locator("iframe")
        site.locator("input[name=q]").first.fill(PRODUCT)
        site.locator("input[name=q]").first.press("Enter")
        site.get_by_text(PRICE).first.wait_for()
        page.get_by_label("Answer").fill(PRICE)
        page.get_by_text("Evaluators").click()
        page.get_by_label("Find a task").press_sequentially("compare list")
        page.locator("#results li").first.wait_for()
        page.wait_for_timeout(3_000)
        page.screenshot(path=folder / "inspector.jpg", quality=72)
        browser.close()


def main() -> None:
    """Run the script."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/sites")
    folder.mkdir(parents=True, exist_ok=True)
    loop.run(take(folder))
    shut_down()
    take_inspector(folder)


if __name__ == "__main__":
    main()

"""Take the screenshots of the embedded sites for the documentation: python scripts/site_screenshots.py [FOLDER]."""

from __future__ import annotations

import sys
from pathlib import Path

from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.backends import BACKENDS
from agentgym_envs.webarena.browser.execute import goto
from agentgym_envs.webarena.browser.pool import shut_down
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.env import browser_options
from agentgym_envs.webarena.sites.episodes import HEADER, episodes
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World, world

SIZE = (1280, 800)


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


def main() -> None:
    """Run the script."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/sites")
    folder.mkdir(parents=True, exist_ok=True)
    loop.run(take(folder))
    shut_down()


if __name__ == "__main__":
    main()

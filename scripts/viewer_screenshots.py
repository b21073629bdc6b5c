"""Take the screenshots of the viewer for the documentation.

    python scripts/viewer_screenshots.py RUNS [FOLDER [NAME ...]]

RUNS is a folder with an evaluation with tokens, runs of several scenarios and of teams, and a training run. If NAMEs
are given, only the runs in these screenshots are needed.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from agentgym_envs.viewer.api import Viewer
from agentgym_envs.viewer.server import make_server
from agentgym_envs.webarena.browser.chromium import find_chromium

SIZE = {"width": 1280, "height": 800}
TALL = {"width": 1280, "height": 1000}
PHONE = {"width": 390, "height": 800}


@contextmanager
def serving(viewer: Viewer) -> Iterator[str]:
    """Serve the viewer within this context. Yields its address."""
    server = make_server(viewer, "127.0.0.1", 0)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join()


def page_finders(address: str) -> dict[str, Callable[[], str]]:
    """Names of the screenshots, with functions that find their pages."""

    def rows(**query: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = httpx.get(f"{address}api/episodes", params=query).json()["rows"]
        return found

    def longest_episode(**query: str) -> int:
        return int(rows(sort="turns", desc="1", limit="1", **query)[0]["id"])

    def tokens() -> str:
        found = rows(limit="500", sort="score", desc="1", source="tiny")
        return f"episode/{next(row['id'] for row in found if row['has_tokens'])}?tab=tokens"

    def solved_episode(env: str, turn: int, **query: str) -> Callable[[], str]:
        return lambda: f"episode/{longest_episode(env=f'AgentGym/{env}-v0', success='1', **query)}?turn={turn}"

    return {
        "list": lambda: "",
        "episode": solved_episode("TextCraft", 2, source="textcraft-oracle"),
        "babyai": solved_episode("BabyAI", 2),
        "sciworld": solved_episode("SciWorld", 2),
        "search": solved_episode("Search", 2),
        "pages": solved_episode("SearchPages", 5),
        "web": solved_episode("WebArena", 2),
        "team": lambda: most_transfers(address, rows(env="AgentGym/TextCraftCoop-v0", success="1", limit="50")),
        "tokens": tokens,
        "training": lambda: "training",
        "runs": lambda: "runs?env=AgentGym/TextCraft-v0",
        "run": lambda: "run?name=textcraft-random",
        "compare": lambda: most_in_common(address, rows(source="textcraft-random", limit="50")),
    }


def most_transfers(address: str, rows: list[dict[str, Any]]) -> str:
    """The page of a team of two, at the turn with the most messages and gifts in it and the next two."""

    def found() -> Iterator[tuple[int, bool, int, str]]:
        for row in rows:
            team = httpx.get(f"{address}api/episodes/{row['id']}").json()["team"]
            for turn in range(1, len(team["turns"]) - 2) if len(team["agents"]) == 2 else ():
                transfers = [one for played in team["turns"][turn : turn + 3] for one in played["transfers"]]
                kinds = {"item" in one for one in transfers}
                yield len(kinds), True in kinds, len(transfers), f"episode/{row['id']}?turn={turn + 1}"

    return max(found())[-1]


def most_in_common(address: str, rows: list[dict[str, Any]]) -> str:
    """The comparison of two episodes that begin with the most equal actions, and then differ."""

    def episode(number: int) -> Any:
        return httpx.get(f"{address}api/episodes/{number}").json()

    def found() -> Iterator[tuple[int, str]]:
        for row in rows:
            one = episode(row["id"])
            for other in map(episode, [sibling["id"] for sibling in one["siblings"]]):
                pairs = zip(one["turns"], other["turns"], strict=False)
                equal = [a["action"] == b["action"] for a, b in pairs]
                if not all(equal):
                    yield equal.index(False), f"compare/{other['row']['id']}/{row['id']}"

    return max(found())[-1]


def shoot(page: Callable[..., Any], address: str, path: Path, **options: Any) -> None:
    """Open a page, wait until it is still, and save a screenshot of the window."""
    tab = page(**options)
    tab.goto(address)
    tab.wait_for_load_state("networkidle")
    tab.wait_for_timeout(3_000)
    tab.screenshot(path=path)
    tab.close()


def main() -> None:
    """Run the script."""
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[2] if len(sys.argv) > 2 else "docs/viewer")
    folder.mkdir(parents=True, exist_ok=True)
    viewer = Viewer([Path(sys.argv[1])])
    viewer.summary()
    with serving(viewer) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(None, playwright.chromium.executable_path), args=["--no-sandbox"]
        )
        known = page_finders(address)
        for name in sys.argv[3:] or known:
            page = f"{address}#/{known[name]()}"
            shoot(browser.new_page, page, folder / f"{name}-light.png", viewport=TALL if name == "team" else SIZE)
            if name == "episode":
                shoot(browser.new_page, page, folder / "episode-dark.png", viewport=SIZE, color_scheme="dark")
                shoot(browser.new_page, page, folder / "episode-phone.png", viewport=PHONE)
        browser.close()


if __name__ == "__main__":
    main()

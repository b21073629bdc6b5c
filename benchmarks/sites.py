"""The embedded sites of `AgentGym/WebArena-v0`: rendering, resetting, and oracles that play them.

    python -m benchmarks.sites [--out benchmarks/results/sites.json] [--episodes 100] [--soak 2000] [--large] [--quick]

A page's render is the CPU time of this process from the request to the last byte of the answer, without a socket and
without a browser. The database is restored in three ways that take turns: from the image, as the sites do it; by
SQLite's backup; and from a copy of a file. A reset is all of `env.reset`: database, browser context, first page, first
observation. Oracles play tasks of all templates, many at a time in one browser; one that does not score 1 counts as
flaky. `--soak` plays that many. `--large` measures version 2 of the tasks, and its large worlds. `--quick` shows that
everything runs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from agentgym_envs.errors import NoOracle
from agentgym_envs.registration import register_all
from agentgym_envs.task import Task
from agentgym_envs.webarena.env import WebArenaEnv, next_command
from agentgym_envs.webarena.sites.episodes import HEADER, Episode, episodes
from agentgym_envs.webarena.sites.framework.app import make_app
from agentgym_envs.webarena.sites.framework.site import HOSTS
from agentgym_envs.webarena.sites.world import open_image, world
from agentgym_envs.webarena.tasks.scoring import template_of
from agentgym_envs.webarena.tasks.table import load
from benchmarks.common import machine
from benchmarks.web_resets import paired_resets

AT_ONCE = 6
TARGETS = {"render": 5.0, "restore": 1.0, "reset": 150.0, "reset p90": 200.0}
"""Milliseconds."""


async def render(app: Any, host: str, path: str, episode: Episode) -> int:
    """Have a page made; its status."""
    path, _, query = path.partition("?")
    headers = [(b"host", host.encode()), (HEADER.encode(), episode.token.encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": headers,
        "server": (host, 80),
        "client": ("127.0.0.1", 1),
        "http_version": "1.1",
        "root_path": "",
    }
    status = 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


def pages_of(host: str, app: Any, episode: Episode, maximum: int) -> list[str]:
    """Pages of a site as a crawler finds them from its first one."""
    from starlette.testclient import TestClient

    client = TestClient(app, base_url=f"http://{host}", headers={HEADER: episode.token}, follow_redirects=False)
    found, waiting = dict.fromkeys(["/"]), ["/"]
    while waiting and len(found) < maximum:
        answer = client.get(waiting.pop(0))
        for link in re.findall(r'<a [^>]*href="(/[^"#]*)"', answer.text):
            path = link.replace("&amp;", "&")
            if path not in found and len(found) < maximum:
                found[path] = None
                waiting.append(path)
    return [path for path in found if client.get(path).status_code == 200]


def render_figures(pages: int, repeats: int, large: bool = False) -> dict[str, Any]:
    """Milliseconds of CPU a page, for each site: median, the ninetieth percentile and the slowest page."""
    app, episode, figures = make_app(), episodes().open(world(1, large)), {}
    for name, host in HOSTS.items():
        taken = {path: cpu_ms(app, host, path, episode, repeats) for path in pages_of(host, app, episode, pages)}
        ordered = sorted(taken.values())
        slowest = max(taken, key=lambda path: taken[path])
        figures[name] = {
            "pages": len(ordered),
            "median": statistics.median(ordered),
            "p90": ordered[int(0.9 * (len(ordered) - 1))],
            "slowest": [slowest, taken[slowest]],
        }
    episodes().close(episode)
    return figures


def cpu_ms(app: Any, host: str, path: str, episode: Episode, repeats: int) -> float:
    """The median of how long a page takes to be made."""

    async def measure() -> float:
        taken = []
        for _ in range(repeats):
            began = time.process_time()
            await render(app, host, path, episode)
            taken.append(1e3 * (time.process_time() - began))
        return statistics.median(taken)

    return asyncio.run(measure())


def restore_figures(repeats: int, large: bool = False) -> dict[str, Any]:
    """Milliseconds to bring a world back, by turns."""
    local = world(1, large)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "world.db"
        with sqlite3.connect(file) as stored:
            local.database.backup(stored)
        ways = {"image": lambda: open_image(local.image), "backup": lambda: backed_up(local.database)}
        ways["file"] = lambda: copied(file)
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(repeats):
            for name, restore in ways.items():
                taken[name].append(wall_ms(restore))
    figures: dict[str, Any] = {name: statistics.median(values) for name, values in taken.items()}
    return {"megabytes": len(local.image) / 1e6, **figures}


def backed_up(database: sqlite3.Connection) -> sqlite3.Connection:
    """A copy in memory by SQLite's backup."""
    made = sqlite3.connect(":memory:")
    database.backup(made)
    return made


def copied(file: Path) -> sqlite3.Connection:
    """A copy of the file, opened."""
    made = sqlite3.connect(shutil.copy(file, file.with_suffix(".copy")))
    made.execute("SELECT COUNT(*) FROM sqlite_master")
    return made


def wall_ms(restore: Callable[[], sqlite3.Connection]) -> float:
    """Seconds per restore."""
    began = time.perf_counter()
    made = restore()
    taken = 1e3 * (time.perf_counter() - began)
    made.close()
    return taken


def version_of(large: bool) -> int:
    """The version of the tasks to play."""
    return 2 if large else 1


def reset_figures(repeats: int, large: bool = False) -> dict[str, Any]:
    """Milliseconds of a reset of random tasks, one at a time, with a prepared session and without."""
    with contextlib.closing(WebArenaEnv(table_version=version_of(large))) as env:
        every = [task.id for task in env.tasks.sample(split="train") if (template_of(task).since > 1) == large]
        tasks = random.Random(5).sample(every, repeats)
        for world_tasks in {task.split("/")[2]: task for task in tasks}.values():
            env.reset(options={"task": world_tasks})  # builds the world
        return paired_resets(env, tasks, repeats)


def oracle_figures(count: int, at_once: int, version: int = 1) -> dict[str, Any]:
    """Episodes that oracles play, how fast, and which of them failed."""
    table = load(version)
    tasks = table.sample(count, seed=11) if count <= len(table) else table.sample()
    waiting, failed, steps = iter(track(tasks, "oracles")), list[list[str]](), [0]
    began = time.perf_counter()
    asyncio.run(play_all(waiting, failed, steps, at_once, version))
    seconds = time.perf_counter() - began
    return {
        "episodes": len(tasks),
        "steps": steps[0],
        "seconds": seconds,
        "episodes_a_minute": 60 * len(tasks) / seconds,
        "failed": failed,
    }


async def play_all(
    waiting: Iterator[Task], failed: list[list[str]], steps: list[int], at_once: int, version: int
) -> None:
    """Several environments that take the next task until none is left."""

    async def player() -> None:
        env = WebArenaEnv(split=None, table_version=version)
        for task in waiting:
            why, actions = await solve(env, task)
            steps[0] += actions
            if why:
                failed.append([task.id, why])
        env.close()

    await asyncio.gather(*(player() for _ in range(at_once)))


async def solve(env: WebArenaEnv, task: Task) -> tuple[str, int]:
    """The reason why the oracle failed ("" on success), and the number of actions."""
    _, info = await env.areset(options={"task": task.id})
    try:
        while info["stop_reason"] is None:
            *_, info = await env.astep(next_command(env.session, task))
    except NoOracle as error:
        return f"the oracle is lost: {error}", int(info["turn"])
    return ("" if info["success"] else str(info.get("reason") or info.get("error"))), int(info["turn"])


def show(result: dict[str, Any]) -> None:
    """Print the tables."""
    table = Table(title="CPU of a page", title_justify="left")
    for name in ("site", "pages", "median ms", "p90 ms", "slowest ms", "which"):
        table.add_column(name, justify="left" if name in ("site", "which") else "right")
    for name, row in result["render"].items():
        path, worst = row["slowest"]
        table.add_row(name, str(row["pages"]), f"{row['median']:.2f}", f"{row['p90']:.2f}", f"{worst:.2f}", path[:60])
    console, restore, reset, oracle = Console(), result["restore"], result["reset"], result["oracle"]
    console.print(table)
    console.print(
        f"restore of {restore['megabytes']:.1f} MB: {restore['image']:.2f} ms (target {TARGETS['restore']:g}); backup "
        f"{restore['backup'] / restore['image']:.1f} times as long, file {restore['file'] / restore['image']:.1f} times"
    )
    for name, row in (("prepared", reset), ("not prepared", reset["not prepared"])):
        console.print(f"reset, {name}: median {row['median']:.0f} ms, p90 {row['p90']:.0f} ms")
    console.print(f"targets of a prepared one: {TARGETS['reset']:g} and {TARGETS['reset p90']:g} ms")
    console.print(
        f"oracles: {oracle['episodes']} episodes, {oracle['steps']} steps, {oracle['episodes_a_minute']:.0f} a minute, "
        f"{len(oracle['failed'])} failed"
    )
    for task_id, why in oracle["failed"]:
        console.print(f"  {task_id}: {why}", markup=False)


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--episodes", type=int, default=100, help="how many tasks the oracles play (default: 100)")
    parser.add_argument("--soak", type=int, help="play so many instead")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help=f"episodes at a time (default: {AT_ONCE})")
    parser.add_argument("--large", action="store_true", help="measure version 2 of the tasks and its large worlds")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    arguments = parser.parse_args()
    register_all()
    pages, repeats = (4, 2) if arguments.quick else (60, 15)
    count = 2 if arguments.quick else arguments.soak or arguments.episodes
    result = {
        "machine": machine(),
        "render": render_figures(pages, repeats, arguments.large),
        "restore": restore_figures(10 * repeats, arguments.large),
        "reset": reset_figures(2 * repeats, arguments.large),
        "oracle": oracle_figures(count, arguments.at_once, version_of(arguments.large)),
    }
    show(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

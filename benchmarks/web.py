"""Measure time and memory of the browser engine, with BrowserGym as the baseline in the same run.

    pip install --no-deps browsergym-core==0.14.3; pip install pyparsing lxml beautifulsoup4 pillow mcp
    python -m benchmarks.web [--out benchmarks/results/web.json] [--repeats 20] [--soak] [--quick]

Both sides use the same pages of a local shop in Chromium, and alternate, so that load on the computer affects both
equally. A step is a click on a link to another page of about 400 elements, until the text observation of that page is
ready. BrowserGym runs with the setting of its WebArena package (`slow_mo=1000`) and without it (`slow_mo=0`); its
default wait of half a second before each observation is kept in both. It pins an older Playwright; here it runs with
ours.

`--soak` also plays MiniWoB's oracles for 1,000 steps and 2,000 short episodes, which takes ten minutes. `--quick` is a
smoke run: its figures mean nothing. A reset is measured with a session that was prepared during the previous episode,
and without, in turns. Memory is the proportional share (PSS) of Chromium and of
Playwright's driver.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import psutil
from rich.console import Console
from rich.table import Table

from agentgym_envs.core import text_env
from agentgym_envs.registration import register_all
from agentgym_envs.webarena.actions import Click
from agentgym_envs.webarena.browser import loop
from agentgym_envs.webarena.browser.backends import JsBackend
from agentgym_envs.webarena.browser.execute import execute, goto
from agentgym_envs.webarena.browser.pool import shut_down
from agentgym_envs.webarena.browser.session import BrowserSession, SessionOptions
from agentgym_envs.webarena.browser.view import elements
from benchmarks.common import machine
from benchmarks.web_pages import CATEGORIES, HOST, SIZES, ShopEnv, address, browser_options
from benchmarks.web_resets import paired_resets

OBSERVE_TARGETS = {400: 10.0, 1700: 40.0}
"""Milliseconds, by elements."""
STEP_TARGETS = {"BrowserGym, slow_mo=0": 8.0, "BrowserGym, as shipped for WebArena": 15.0}
"""Times faster."""
RESET_TARGET, RESET_P90, MEMORY_TARGET = 150.0, 200.0, 1300.0
"""Milliseconds: median and 90th percentile; MB of 32 contexts."""


class Sizes(NamedTuple):
    """The extent of the measurement."""

    contexts: tuple[int, ...] = (1, 4, 16, 32)
    steps: int = 128
    """In all contexts together."""
    oracle_steps: int = 1000
    episodes: int = 2000


QUICK = Sizes(contexts=(1, 2), steps=4, oracle_steps=10, episodes=10)


def measure(sizes: Sizes, repeats: int) -> dict[str, Any]:
    """Every figure but those of `measure_long`."""
    result = {
        "machine": machine(),
        "observe": loop.run(observe_figures(repeats)),
        "contexts": [loop.run(context_figures(count, sizes.steps)) for count in sizes.contexts],
        "reset": reset_figures(repeats),
        "step": step_figures(repeats),  # last: BrowserGym's processes would count among ours
    }
    shut_down()
    return result


def measure_long(sizes: Sizes) -> dict[str, Any]:
    """Slow measurements: oracle steps, and memory over many episodes."""
    result = {"oracle": oracle_figures(sizes.oracle_steps), "soak": soak_figures(sizes.episodes)}
    shut_down()
    return result


async def open_shop(products: int = SIZES[400]) -> BrowserSession:
    """A session on a page of the shop, looked at."""
    session = await BrowserSession.open(SessionOptions(browser_options()), JsBackend())
    await goto(session, f"http://{HOST}/shop?n={products}")
    await session.observe()
    return session


async def observe_figures(repeats: int) -> dict[str, dict[str, Any]]:
    """Milliseconds to render a page as text: one rendered before, and one just loaded."""
    figures = {}
    for size, products in SIZES.items():
        session = await open_shop(products)
        again, fresh, cpu = list[float](), list[float](), list[float]()
        await session.tab.send("Performance.enable")
        for _ in range(repeats):
            again.append(await timed(session.observe()))
            await goto(session, f"http://{HOST}/shop?n={products}")
            before = await renderer_seconds(session)
            fresh.append(await timed(session.observe()))
            cpu.append(await renderer_seconds(session) - before)
        count = await session.evaluate("document.querySelectorAll('*').length")
        await session.close()
        figures[str(size)] = {"elements": count, "again": in_ms(again), "fresh": in_ms(fresh), "fresh CPU": in_ms(cpu)}
    return figures


async def renderer_seconds(session: BrowserSession) -> float:
    """CPU time of the main thread of the page's process."""
    metrics = (await session.tab.send("Performance.getMetrics"))["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "ThreadTime"))


async def timed(work: Any) -> float:
    """Seconds that something asynchronous takes."""
    begun = time.perf_counter()
    await work
    return time.perf_counter() - begun


def in_ms(seconds: Sequence[float]) -> dict[str, Any]:
    """Milliseconds: the median, the least, and all."""
    samples = [round(1e3 * value, 2) for value in seconds]
    return {"median": round(statistics.median(samples), 2), "min": round(min(samples), 1), "samples": samples}


def step_figures(repeats: int) -> dict[str, Any]:
    """Milliseconds a step of every side, and how many times faster ours is; each round, every side takes a step."""
    sides: dict[str, Callable[[int], None]] = {"AgentGym Envs": OurSide().step}
    others = [BrowserGymSide(slow_mo) for slow_mo in (0, 1000)]
    sides |= dict(zip(STEP_TARGETS, (other.step for other in others), strict=True))
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repeats):
        for name, step in sides.items():
            begun = time.perf_counter()
            step(turn)
            seconds[name].append(time.perf_counter() - begun)
    for other in others:
        other.close()
    ours = seconds["AgentGym Envs"]
    return {name: {**in_ms(taken), "times": times(taken, ours)} for name, taken in seconds.items()}


def times(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """The median of the rounds' own ratios."""
    return round(statistics.median(other / own for other, own in zip(theirs, ours, strict=True)), 1)


class OurSide:
    """A session of ours, stepped from a synchronous program."""

    def __init__(self) -> None:
        self.session = loop.run(open_shop())

    def step(self, turn: int) -> None:
        """Click a category and look."""
        loop.run(click_category(self.session, turn))


async def click_category(session: BrowserSession, turn: int) -> None:
    """One step."""
    name = f"Category {turn % CATEGORIES}"
    target = next(e.id for e in elements(session.view.tree) if e.role == "link" and e.name == name)
    assert target is not None
    await execute(session, Click(target))
    await session.observe()


class BrowserGymSide:
    """An environment of BrowserGym on the same page."""

    def __init__(self, slow_mo: int) -> None:
        os.environ.setdefault("PLAYWRIGHT_BROWSERS_PATH", "0")
        import browsergym.core.env as module
        from browsergym.core.task import OpenEndedTask

        module.Chat = NoChat
        task = {"start_url": f"http://{address()}/shop?n={SIZES[400]}", "goal": "look round"}
        self.env = module.BrowserEnv(
            OpenEndedTask, task_kwargs=task, headless=True, slow_mo=slow_mo, pw_chromium_kwargs=chromium_arguments()
        )
        self.text = self._told(self.env.reset()[0])

    def step(self, turn: int) -> None:
        """Click a category and look."""
        [target] = re.findall(rf"\[(\w+)\] link 'Category {turn % CATEGORIES}'", self.text)
        self.text = self._told(self.env.step(f"click('{target}')")[0])

    def close(self) -> None:
        """End its browser."""
        self.env.close()

    def _told(self, observation: Any) -> str:
        from browsergym.utils.obs import flatten_axtree_to_str

        return str(flatten_axtree_to_str(observation["axtree_object"]))


class NoChat:
    """Replaces BrowserGym's chat window, which would open a second browser."""

    def __init__(self, **_: Any) -> None:
        self.messages: list[dict[str, Any]] = []
        self.page = None

    def add_message(self, role: str, msg: str) -> None:
        self.messages.append({"role": role, "message": msg, "timestamp": time.time()})

    def close(self) -> None:
        pass


def chromium_arguments() -> dict[str, Any]:
    """So that BrowserGym starts the program that we do."""
    from agentgym_envs.webarena.browser.chromium import find_chromium

    return {"executable_path": find_chromium(None, "")}


def reset_figures(repeats: int) -> dict[str, Any]:
    """Milliseconds of a whole reset, with a prepared session and without: context, first page, first observation."""
    with contextlib.closing(ShopEnv()) as env:
        return paired_resets(env, [None], repeats)


async def context_figures(count: int, steps: int) -> dict[str, Any]:
    """Steps per second, milliseconds per step and megabytes for a number of concurrent contexts."""
    sessions = await asyncio.gather(*(open_shop() for _ in range(count)))
    taken: list[float] = []

    async def play(session: BrowserSession) -> None:
        for turn in range(max(1, steps // count)):
            taken.append(await timed(click_category(session, turn)))

    cpu, begun = cpu_seconds(), time.perf_counter()
    await asyncio.gather(*map(play, sessions))
    wall, cpu = time.perf_counter() - begun, cpu_seconds() - cpu
    by_process = megabytes_by_process()
    memory = sum(by_process.values())
    await asyncio.gather(*(session.close() for session in sessions))
    return {
        "contexts": count,
        "steps_per_second": round(len(taken) / wall, 1),
        "ms_per_step": in_ms(taken)["median"],
        "cpu_ms_per_step": round(1e3 * cpu / len(taken), 1),
        "megabytes": round(memory),
        "megabytes_by_process": by_process,
    }


def helpers() -> list[psutil.Process]:
    """Chromium's processes and Playwright's driver."""
    return psutil.Process().children(recursive=True)


def megabytes() -> float:
    """Memory of all together."""
    return over_helpers(lambda process: process.memory_full_info().pss / 2**20)


def megabytes_by_process() -> dict[str, int]:
    """Memory of the browser, the driver, the renderers and so on."""
    found: dict[str, float] = {}
    for process in helpers():
        with contextlib.suppress(psutil.Error):
            kind = next((word[7:] for word in process.cmdline() if word.startswith("--type=")), process.name())
            found[kind] = found.get(kind, 0.0) + process.memory_full_info().pss / 2**20
    return {kind: round(size) for kind, size in sorted(found.items()) if round(size)}


def cpu_seconds() -> float:
    """CPU time of the processes and this one."""
    own = psutil.Process().cpu_times()
    return over_helpers(lambda process: sum(process.cpu_times()[:2])) + own.user + own.system


def over_helpers(ask: Callable[[psutil.Process], float]) -> float:
    """The sum of what the processes answer; those that have ended meanwhile count for nothing."""
    total = 0.0
    for process in helpers():
        with contextlib.suppress(psutil.Error):
            total += ask(process)
    return total


def oracle_figures(steps: int) -> dict[str, Any]:
    """Run MiniWoB's oracles over tasks for `steps` steps: every episode must succeed."""
    failures: list[str] = []
    done = episodes = seed = 0
    with gym.make("AgentGym/MiniWoB-v0") as made:
        env = text_env(made)
        pages = list(env.tasks.counts() or env.tasks.groups)
        while done < steps:
            for group in pages:
                _, info = env.reset(seed=seed, options={"group": group, "split": "test"})
                for command in env.oracle():
                    *_, info = env.step(command)
                    done += 1
                episodes += 1
                if not info["success"]:
                    failures.append(f"{info['task_id']}: {info.get('error') or info.get('reason')}")
            seed += 1
    return {"steps": done, "episodes": episodes, "failures": failures}


def soak_figures(episodes: int) -> dict[str, Any]:
    """Memory over many short episodes: megabytes at every twentieth part."""
    curve, every = [], max(1, episodes // 20)
    env = ShopEnv()
    for number in range(episodes):
        env.reset(seed=0)
        env.step("scroll [down]")
        if (number + 1) % every == 0:
            own = psutil.Process().memory_info().rss / 2**20
            curve.append([number + 1, round(megabytes()), round(own)])
    env.close()
    return {"episodes": episodes, "curve": curve}


def show(result: dict[str, Any]) -> None:
    """Print the tables."""
    console = Console()
    console.print(observe_table(result["observe"]), step_table(result), context_table(result["contexts"]))
    if "oracle" in result:
        oracle = result["oracle"]
        console.print(
            f"{oracle['steps']:,} oracle steps in {oracle['episodes']} episodes; failed: {oracle['failures']}"
        )
    if "soak" in result:
        console.print("Memory over episodes (episodes, browser MB, Python MB):", result["soak"]["curve"])


def observe_table(figures: dict[str, dict[str, Any]]) -> Table:
    """The cost of rendering a page as text."""
    columns = ("elements", "observed again, ms", "just loaded, ms", "its minimum", "its CPU in the page", "target")
    table = Table(*columns, title="Observation")
    for size, row in figures.items():
        target = OBSERVE_TARGETS.get(int(size))
        again, fresh, cpu = (f"{row[name]['median']:.1f}" for name in ("again", "fresh", "fresh CPU"))
        least = f"{row['fresh']['min']:.1f}"
        table.add_row(f"{row['elements']:,.0f}", again, fresh, least, cpu, f"<= {target}" if target else "")
    return table


def step_table(result: dict[str, Any]) -> Table:
    """A step and a reset, next to BrowserGym."""
    table = Table("", "ms, median", "ms, least", "times ours", "target", title="Click, navigate, observe; and reset")
    for name, row in result["step"].items():
        target = f">= {STEP_TARGETS[name]:g}" if name in STEP_TARGETS else ""
        table.add_row(name, f"{row['median']:.0f}", f"{row['min']:.0f}", f"{row['times']:g}", target)
    reset = result["reset"]
    target = f"<= {RESET_TARGET:g}, p90 <= {RESET_P90:g} (here {reset['p90']:.0f})"
    for name, row, wanted in (("prepared", reset, target), ("not prepared", reset["not prepared"], "")):
        table.add_row(f"reset of ours, {name}", f"{row['median']:.0f}", f"{row['min']:.0f}", "", wanted)
    return table


def context_table(rows: list[dict[str, Any]]) -> Table:
    """Contexts side by side."""
    table = Table("contexts", "steps/s", "ms a step", "CPU ms a step", "MB", "target", title="One browser")
    for row in rows:
        target = f"<= {MEMORY_TARGET:g} MB" if row["contexts"] == 32 else ""
        figures = (
            row["contexts"],
            row["steps_per_second"],
            row["ms_per_step"],
            row["cpu_ms_per_step"],
            row["megabytes"],
        )
        table.add_row(*(f"{figure:g}" for figure in figures), target)
    return table


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument("--repeats", type=int, default=20, help="how often a step is measured (default: 20)")
    parser.add_argument("--soak", action="store_true", help="also play for ten minutes")
    parser.add_argument("--quick", action="store_true", help="only show that everything runs")
    arguments = parser.parse_args()
    register_all()
    sizes, repeats = (QUICK, 2) if arguments.quick else (Sizes(), arguments.repeats)
    long = measure_long(sizes) if arguments.soak else {}  # first: BrowserGym leaves processes behind
    result = measure(sizes, repeats) | long
    show(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

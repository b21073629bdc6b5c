"""Soak test: a server under misbehaving clients must stay correct, small and clean.

    python -m benchmarks.soak [--env ID ...] [--episodes 50000] [--isolated-env ID ...] [--isolated-episodes 5000]

Two parts, each with its own server (`agentgym serve`): in the first the environments live in the server's process,
in the second in worker processes (`--isolate`). Seven kinds of clients play at the same time, each a process:

    batches    32 environments behind `make_vec`, one request for many steps
    steady     `gym.make(base_url=...)`, episode after episode
    retries    sends requests twice, one after the other or at once, gives up on replies and asks again, and uses
               sequence numbers that are not next
    closers    a session an episode, closed several times, then used again
    crashes    is killed (SIGKILL) at any moment; another client looks at what it left, and may go on
    vanishes   cuts its connection in the middle of a request, and leaves its session behind
    hangs      sends half a request, and keeps its sessions without using them for longer than they are kept

Every episode was played locally before, so every reply is compared with the expected one. At the end the turns reported
by the server must equal the requested steps, each counted once; no session may be left; and the memory of the server
(with its workers) may not have grown by more than 5 % since the first fifth.

SciWorld needs `--idle-seconds 30`: while its Java processes start, sessions wait for longer than ten seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.common import machine
from benchmarks.soak_clients import Script, client, make_scripts

TEXTCRAFT, BABYAI = "AgentGym/TextCraft-v0", "AgentGym/BabyAI-v0"
MOST_GROWTH = 0.05
SHARES = {
    "batches": 0.58,
    "steady": 0.15,
    "retries": 0.10,
    "closers": 0.12,
    "crashes": 0.02,
    "vanishes": 0.02,
    "hangs": 0.01,
}


class Part(NamedTuple):
    """Load on one server."""

    name: str
    envs: list[str]
    episodes: int
    flags: tuple[str, ...]


class Sample(NamedTuple):
    """The server at a moment: the share of the episodes that were begun, memory of it and its workers, open files."""

    share: float
    bytes: int
    files: int


def main() -> int:
    arguments = parse()
    parts = [Part("in the server", arguments.env or [TEXTCRAFT], arguments.episodes, ())]
    isolated = arguments.isolated_env or [BABYAI]
    flags = ("--isolate", "--workers", str(arguments.workers))
    parts.append(Part("in worker processes", isolated, arguments.isolated_episodes, flags))
    console = Console(stderr=True)
    results = [soak(part, arguments.idle_seconds, console) for part in parts if part.episodes]
    report = {"machine": machine(), "idle_seconds": arguments.idle_seconds, "parts": results}
    if arguments.out:
        arguments.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    Console().print(table_of(results))
    for result in results:
        for line in result["wrong"]:
            Console().print(f"wrong, {result['name']}: {line}", style="red", markup=False)
    return 0 if all(result["passed"] for result in results) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", action="append", help=f"an id for the first part (default: {TEXTCRAFT})")
    parser.add_argument("--episodes", type=int, default=50_000)
    parser.add_argument("--isolated-env", action="append", help=f"an id for the second part (default: {BABYAI})")
    parser.add_argument("--isolated-episodes", type=int, default=5_000)
    parser.add_argument("--workers", type=int, default=2, help="worker processes of the second part (default: 2)")
    parser.add_argument("--idle-seconds", type=float, default=10.0, help="when the servers close unused sessions")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    return parser.parse_args()


def soak(part: Part, idle_seconds: float, console: Console) -> dict[str, Any]:
    """One server and all its clients, from start to end."""
    scripts = make_scripts(part.envs)
    began = time.monotonic()
    flags = (*part.flags, "--idle-seconds", str(idle_seconds), "--max-sessions", "256")
    with serving(part.envs, flags) as (server, url):
        counts, wrong, samples = treat_badly(part, server, url, scripts, idle_seconds, console)
        left, emptied = wait_until_empty(url, idle_seconds)
        cpu = cpu_seconds(server)
        children = server.children(recursive=True)
        server.terminate()
        status = server.wait(30)
    time.sleep(0.5)
    memory = growth_of(samples)
    verdicts = {
        "turns_told_are_steps_asked": counts["told"] == counts["steps"] > 0 and not wrong,
        "no_session_left": left == 0,
        "memory_flat": memory["growth"] <= MOST_GROWTH,
        "ended_well": status == 0 and not any(child.is_running() for child in children),
    }
    return {
        "name": part.name,
        "envs": part.envs,
        "seconds": round(time.monotonic() - began, 1),
        "server_cpu_seconds": round(cpu, 1),
        "counts": dict(sorted(counts.items())),
        "memory": memory,
        "sessions_left": left,
        "seconds_until_empty": emptied,
        "exit_status": status,
        "wrong": wrong,
        "verdicts": verdicts,
        "passed": all(verdicts.values()),
    }


@contextlib.contextmanager
def serving(env_ids: list[str], flags: tuple[str, ...]) -> Iterator[tuple[psutil.Popen, str]]:
    """`agentgym serve` in a process of its own, and its address."""
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder, "out.txt")
        command = [sys.executable, "-m", "agentgym_envs", "serve", *env_ids, "--port", "0", *flags]
        with shown.open("w") as out:
            server = psutil.Popen(command, stdout=out)
        try:
            while not (found := re.search(r"Serving at (\S+)", shown.read_text())):
                if server.poll() is not None:
                    raise SystemExit("the server did not start")
                time.sleep(0.05)
            yield server, found[1]
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()


def treat_badly(
    part: Part, server: psutil.Popen, url: str, scripts: list[Script], idle_seconds: float, console: Console
) -> tuple[Counter[str], list[str], list[Sample]]:
    """Run the clients to their ends: what they count, what was wrong, and the server on the way."""
    context = multiprocessing.get_context("spawn")
    outbox = context.SimpleQueue()
    clients = {}
    for name, share in SHARES.items():
        arguments = (name, url, scripts, max(1, round(share * part.episodes)), outbox, idle_seconds)
        clients[name] = context.Process(target=client, args=arguments, daemon=True)
        clients[name].start()
    counts: Counter[str] = Counter()
    wrong, samples = list[str](), list[Sample]()
    with progress(part, console) as show:
        while clients:
            while not outbox.empty():
                note(outbox.get(), counts, wrong, clients)
            lost = [name for name, process in clients.items() if process.exitcode not in (None, 0)]
            wrong += [f"the client {name!r} ended with {clients.pop(name).exitcode}" for name in lost]
            samples.append(sample(server, counts["episodes"] / part.episodes))
            show(counts["episodes"], samples[-1])
            time.sleep(0.2)
    return counts, wrong, samples


def note(message: Any, counts: Counter[str], wrong: list[str], clients: dict[str, Any]) -> None:
    if isinstance(message, str):
        clients.pop(message).join()
    else:
        counts.update(message[0])
        wrong += message[1]


def sample(server: psutil.Popen, share: float) -> Sample:
    processes = [server, *server.children(recursive=True)]
    return Sample(share, sum(process.memory_info().rss for process in processes), server.num_fds())


def growth_of(samples: list[Sample]) -> dict[str, Any]:
    """From the median between 20 % and 30 % of the episodes to the median of the last tenth."""
    early = [sample.bytes for sample in samples if 0.2 <= sample.share < 0.3] or [samples[0].bytes]
    late = [sample.bytes for sample in samples if sample.share >= 0.9] or [samples[-1].bytes]
    before, after = statistics.median(early), statistics.median(late)
    points = samples[:: max(1, len(samples) // 40)]
    return {
        "megabytes_at_20_percent": round(before / 1e6, 1),
        "megabytes_at_end": round(after / 1e6, 1),
        "growth": round(after / before - 1, 4),
        "open_files_most": max(sample.files for sample in samples),
        "open_files_at_end": samples[-1].files,
        "curve": [[round(point.share, 3), round(point.bytes / 1e6, 1)] for point in points],
    }


def wait_until_empty(url: str, idle_seconds: float) -> tuple[int, float]:
    """Sessions that are left once all must have been closed for idleness, and how long it took."""
    began = time.monotonic()
    while True:
        left = int(httpx.get(f"{url}/health", trust_env=False).json()["sessions"])
        waited = time.monotonic() - began
        if not left or waited > 2 * idle_seconds + 10:
            return left, round(waited, 1)
        time.sleep(0.25)


def cpu_seconds(server: psutil.Popen) -> float:
    times = [process.cpu_times() for process in (server, *server.children(recursive=True))]
    return float(sum(one.user + one.system for one in times))


@contextlib.contextmanager
def progress(part: Part, console: Console) -> Iterator[Any]:
    text = TextColumn("{task.fields[megabytes]:.0f} MB, {task.fields[files]} open files")
    with Progress(part.name, BarColumn(), MofNCompleteColumn(), text, TimeElapsedColumn(), console=console) as bar:
        task = bar.add_task("", total=part.episodes, megabytes=0, files=0)

        def show(done: int, now: Sample) -> None:
            bar.update(task, completed=done, megabytes=now.bytes / 1e6, files=now.files)

        yield show


def table_of(results: list[dict[str, Any]]) -> Table:
    table = Table(title="A server treated badly", box=box.SIMPLE_HEAD)
    table.add_column("")
    for result in results:
        table.add_column(result["name"], justify="right")
    rows: dict[str, Any] = {
        "episodes begun": lambda r: f"{r['counts']['episodes']:,}",
        "steps asked for": lambda r: f"{r['counts']['steps']:,}",
        "turns told": lambda r: f"{r['counts']['told']:,}",
        "wrong replies": lambda r: str(len(r["wrong"])),
        "requests sent again": lambda r: f"{r['counts'].get('repeats', 0):,}",
        "refused as out of order": lambda r: f"{r['counts'].get('refused', 0):,}",
        "sessions closed again": lambda r: f"{r['counts'].get('closed_again', 0):,}",
        "clients killed": lambda r: f"{r['counts']['killed']:,}",
        "connections cut": lambda r: f"{r['counts']['vanished']:,}",
        "clients that hung": lambda r: f"{r['counts']['hung']:,}",
        "refused as full": lambda r: f"{r['counts'].get('full', 0):,}",
        "sessions left": lambda r: f"{r['sessions_left']} after {r['seconds_until_empty']} s",
        "memory, 20 % → end": lambda r: "{megabytes_at_20_percent} → {megabytes_at_end} MB".format(**r["memory"]),
        "growth": lambda r: f"{100 * r['memory']['growth']:+.1f} %",
        "server CPU": lambda r: f"{r['server_cpu_seconds']} s of {r['seconds']} s",
        "passed": lambda r: "yes" if r["passed"] else "no: " + ", ".join(k for k, v in r["verdicts"].items() if not v),
    }
    for name, cell in rows.items():
        table.add_row(name, *(cell(result) for result in results))
    return table


if __name__ == "__main__":
    sys.exit(main())

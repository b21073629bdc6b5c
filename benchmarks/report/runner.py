"""Runs chapters: each script is a process, one at a time, and what it found is kept with how it was found."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report.sections import Chapter
from benchmarks.report.venvs import CACHE, ROOT, Venv, cache_folder, lacking, required, thread_limits

RECORD = "benchmark-book.json"
"""How the figures in this folder were found, by chapter."""
_NAMED = ("gymnasium", "numpy", "torch", "transformers", "trl")
_ASK = "import json, sys; from benchmarks.report.venvs import installed; print(json.dumps(installed(sys.argv[1:])))"


class Wish(NamedTuple):
    """How chapters are to be run. `again` runs what is there already."""

    out: Path
    cache: Path = cache_folder()
    quick: bool = False
    again: bool = False
    repeats: int | None = None
    agentgym: Path | None = None
    """A checkout of AgentGym's `agentenv-babyai`, which no index has."""


def records(out: Path) -> dict[str, Any]:
    """What is known of the figures in a folder."""
    path = out / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def finished(chapter: Chapter, wish: Wish) -> bool:
    """Whether its figures are there, and are more than a look if more is wanted."""
    known = records(wish.out).get(chapter.name, {})
    return (wish.out / chapter.file).exists() and known.get("quick", False) <= wish.quick


def run(chapter: Chapter, wish: Wish) -> str:
    """Run a chapter, unless it is finished: "there", "done", or why it failed."""
    if finished(chapter, wish) and not wish.again:
        return "there"
    try:
        python = python_for(chapter, wish.cache)
    except subprocess.CalledProcessError as error:
        return f"its packages could not be installed: {_last_line(error.stderr)}"
    words = [*arguments(chapter, wish), chapter.out, str(wish.out.resolve() / chapter.file)]
    log = wish.cache / "logs" / f"{chapter.name}.log"
    for folder in (log.parent, wish.out):
        folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with log.open("w", encoding="utf-8") as stream:
        environ = {**thread_limits(), "COLUMNS": "140", CACHE: str(wish.cache.resolve())}
        done = subprocess.run(
            [python, *chapter.command(*words)], cwd=ROOT, env=environ, stdout=stream, stderr=stream, check=False
        )
    if done.returncode:
        return f"exit status {done.returncode}: {_last_line(log.read_text(encoding='utf-8'))} ({log})"
    note(chapter, wish, python, time.perf_counter() - began)
    return "done"


def arguments(chapter: Chapter, wish: Wish) -> list[str]:
    """What the wish puts on the command line."""
    words = list(chapter.quick) if wish.quick else []
    if wish.repeats is not None and chapter.repeats:
        words += ["--repeats", str(wish.repeats)]
    if chapter.plot and not wish.quick:
        words += [chapter.plot, str(wish.out.resolve() / Path(chapter.file).with_suffix(".png"))]
    if chapter.name == "babyai" and wish.agentgym is not None:
        pins = ("minigrid==2.3.1", "gymnasium==0.29.1", "gym==0.26.2", "matplotlib")
        python = Venv(wish.cache / "peer-agentgym").ensure(pins)
        words += ["--agentgym", str(wish.agentgym.resolve()), "--agentgym-python", str(python)]
    return words


def python_for(chapter: Chapter, cache: Path) -> str:
    """This Python if it has what ours and what stands beside it need, else that of a venv made for the chapter."""
    if not lacking([*chapter.peers, *chapter.bare, *required(chapter.extras)]):
        return sys.executable
    ours = f"-e.[{','.join(chapter.extras)}]" if chapter.extras else "-e."
    venv = Venv(cache / f"chapter-{chapter.name}")
    return str(venv.ensure([ours, *chapter.peers], chapter.bare))


def note(chapter: Chapter, wish: Wish, python: str, seconds: float) -> None:
    """Write down how the figures were found."""
    known = records(wish.out)
    known[chapter.name] = {
        "command": shlex.join(["python", *chapter.command(*_shown(arguments(chapter, wish)))]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "quick": wish.quick,
        "seconds": round(seconds),
        "machine": this_machine(),
        "packages": versions(chapter, python, wish.out / chapter.file),
    }
    (wish.out / RECORD).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _shown(words: list[str]) -> list[str]:
    """Without folders of this machine."""
    return [Path(word).name if os.sep in word else word for word in words]


def versions(chapter: Chapter, python: str, result: Path) -> Mapping[str, str]:
    """Of what stands beside ours and of what ours stands on, in the chapter's Python."""
    names = [pin.partition("==")[0] for pin in (*chapter.peers, *chapter.bare)]
    wanted = [*names, *_NAMED] if "trl" in chapter.extras else [*names, *_NAMED[:2]]
    command = [python, "-c", _ASK, *dict.fromkeys(wanted)]
    done = subprocess.run(command, cwd=ROOT, env=thread_limits(), capture_output=True, text=True, check=True)
    # The libraries of this chapter have Pythons of their own.
    sides = json.loads(result.read_text(encoding="utf-8"))["sides"] if chapter.name == "peers" else {}
    return {**json.loads(done.stdout), **{name: side["version"] for name, side in sides.items()}}


def this_machine() -> dict[str, Any]:
    """Processor, cores, memory, system and Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "GiB": round(memory),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 1),
    }


def processor(info: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's own name for itself, or the architecture."""
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.machine()


def _last_line(text: str | None) -> str:
    return ([line for line in (text or "").splitlines() if line.strip()] or ["it said nothing"])[-1][:300]

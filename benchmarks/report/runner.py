"""Run sections, each script as a process, one at a time, and record how its figures were measured."""

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

from benchmarks.report.freshness import measured
from benchmarks.report.sections import Section
from benchmarks.report.venvs import CACHE, ROOT, Venv, cache_folder, lacking, required, thread_limits

RECORD = "report.json"
"""The file that records how the figures of its folder were measured, by section."""
_NAMED = ("gymnasium", "numpy", "torch", "transformers", "trl")
_ASK = "import json, sys; from benchmarks.report.venvs import installed; print(json.dumps(installed(sys.argv[1:])))"


class RunOptions(NamedTuple):
    """Options of a run. `again` also runs finished sections."""

    out: Path
    cache: Path = cache_folder()
    quick: bool = False
    again: bool = False
    repeats: int | None = None
    agentgym: Path | None = None
    """A checkout of AgentGym's `agentenv-babyai`, which no index has."""


def records(out: Path) -> dict[str, Any]:
    """The records of the figures in a folder."""
    path = out / RECORD
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def finished(section: Section, options: RunOptions) -> bool:
    """True if the section has figures, and full ones unless a quick run suffices."""
    known = records(options.out).get(section.name, {})
    return (options.out / section.file).exists() and known.get("quick", False) <= options.quick


def run(section: Section, options: RunOptions) -> str:
    """Run a section unless it is finished. Returns "there", "done" or the reason of the failure."""
    if finished(section, options) and not options.again:
        return "there"
    try:
        python = python_for(section, options.cache)
    except subprocess.CalledProcessError as error:
        return f"its packages could not be installed: {_last_line(error.stderr)}"
    words = [*arguments(section, options), section.out, str(options.out.resolve() / section.file)]
    log = options.cache / "logs" / f"{section.name}.log"
    for folder in (log.parent, options.out):
        folder.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    with log.open("w", encoding="utf-8") as stream:
        environ = {**thread_limits(), "COLUMNS": "140", CACHE: str(options.cache.resolve())}
        done = subprocess.run(
            [python, *section.command(*words)], cwd=ROOT, env=environ, stdout=stream, stderr=stream, check=False
        )
    if done.returncode:
        return f"exit status {done.returncode}: {_last_line(log.read_text(encoding='utf-8'))} ({log})"
    note(section, options, python, time.perf_counter() - began)
    return "done"


def arguments(section: Section, options: RunOptions) -> list[str]:
    """The command-line arguments that follow from the options."""
    words = list(section.quick) if options.quick else []
    if options.repeats is not None and section.repeats:
        words += ["--repeats", str(options.repeats)]
    if section.plot and not options.quick:
        words += [section.plot, str(options.out.resolve() / Path(section.file).with_suffix(".png"))]
    if section.name == "babyai" and options.agentgym is not None:
        pins = ("minigrid==2.3.1", "gymnasium==0.29.1", "gym==0.26.2", "matplotlib")
        python = Venv(options.cache / "peer-agentgym").ensure(pins)
        words += ["--agentgym", str(options.agentgym.resolve()), "--agentgym-python", str(python)]
    return words


def python_for(section: Section, cache: Path) -> str:
    """This Python if it has all packages of the section, else that of a virtual environment made for it."""
    if not lacking([*section.peers, *section.bare, *required(section.extras)]):
        return sys.executable
    ours = f"-e.[{','.join(section.extras)}]" if section.extras else "-e."
    venv = Venv(cache / f"section-{section.name}")
    return str(venv.ensure([ours, *section.peers], section.bare))


def note(section: Section, options: RunOptions, python: str, seconds: float) -> None:
    """Record how the figures were measured."""
    known = records(options.out)
    known[section.name] = {
        "command": shlex.join(["python", *section.command(*_shown(arguments(section, options)))]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **measured(section.name),
        "quick": options.quick,
        "seconds": round(seconds),
        "machine": this_machine(),
        "packages": versions(section, python, options.out / section.file),
    }
    (options.out / RECORD).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _shown(words: list[str]) -> list[str]:
    """The words without local folders."""
    return [Path(word).name if os.sep in word else word for word in words]


def versions(section: Section, python: str, result: Path) -> Mapping[str, str]:
    """Versions of the baselines and of our main dependencies, in the section's Python."""
    names = [pin.partition("==")[0] for pin in (*section.peers, *section.bare)]
    wanted = [*names, *_NAMED] if "trl" in section.extras else [*names, *_NAMED[:2]]
    command = [python, "-c", _ASK, *dict.fromkeys(wanted)]
    done = subprocess.run(command, cwd=ROOT, env=thread_limits(), capture_output=True, text=True, check=True)
    # The libraries of this section run in virtual environments of their own.
    sides = json.loads(result.read_text(encoding="utf-8"))["sides"] if section.name == "peers" else {}
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
    """The model name of the processor, or the architecture."""
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.machine()


def _last_line(text: str | None) -> str:
    return ([line for line in (text or "").splitlines() if line.strip()] or ["no output"])[-1][:300]

"""Checks of the machine: Java, a browser, the build of torch, the GPU, a port, the cache.

Imports no heavy packages and starts no browser or JVM. It runs at most `java -version` and `nvidia-smi`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from agentgym_envs.cli import doctor_packages as packages
from agentgym_envs.errors import MissingExtra, UsageError

_SECONDS = 10.0
PORT = 8000
"""The default of `agentgym serve`."""


class Component(NamedTuple):
    """A component of the machine: what was found, what its absence blocks, and how to get it."""

    name: str
    installed: bool
    found: str
    blocks: str = ""
    get: str = ""


def check_machine() -> list[Component]:
    """Check all components, in the order of the output."""
    return [java(), chromium(), torch(), gpu(), port(), cache()]


def java() -> Component:
    """The Java that SciWorld uses: the first one of JAVA_HOME, PATH and the extra's that is recent enough."""
    from agentgym_envs.sciworld import java as sciworld

    get, blocks, old = packages.install_command("sciworld"), "AgentGym/SciWorld-v0", list[str]()
    for program in sciworld.javas():
        version = _java_version(Path(program))
        if version is not None and int(version.split(".")[0]) >= sciworld.OLDEST:
            return Component("Java", True, f"{version} at {program}")
        old.append(f"{version or 'unknown version'} at {program}")
    too_old = f"; found: {', '.join(old)}" if old else ""
    return Component("Java", False, f"no Java {sciworld.OLDEST} or later{too_old}", blocks, get)


def _java_version(program: Path) -> str | None:
    """The version in the file `release` of its folder, else the output of `java -version`."""
    with contextlib.suppress(OSError):
        text = (program.resolve().parents[1] / "release").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r'^JAVA_VERSION="(\d[\w.]*)', text, re.MULTILINE):
            return found[1]
    found = re.search(r'version "(\d[\w.]*)', _output(str(program), "-version"))
    return found[1] if found else None


def chromium() -> Component:
    """The browser that the web environments use, found by their own search."""
    from agentgym_envs.webarena.browser.chromium import find_chromium

    blocks = "AgentGym/WebArena-v0, MiniWoB-v0, WebArenaOfficial-v0"
    try:
        return Component("Chromium", True, find_chromium(None, _playwright_chromium()))
    except UsageError as error:
        given = os.environ.get("CHROMIUM_PATH")
        get = f"{sys.executable} -m playwright install chromium-headless-shell"
        if importlib.util.find_spec("playwright") is None:
            get = f"{packages.install_command('webarena')} && playwright install chromium-headless-shell"
        found = str(error).partition(". ")[0] if given else "no Chromium: not Playwright's, and none on PATH"
        return Component("Chromium", False, found, blocks, "unset CHROMIUM_PATH" if given else get)


def _playwright_chromium() -> str:
    """The path of Playwright's full Chromium, found without starting the driver; "" without Playwright.

    Source: the registry of Playwright's driver, `driver/package/browsers.json` and PLAYWRIGHT_BROWSERS_PATH.
    """
    spec = importlib.util.find_spec("playwright")
    if spec is None or spec.origin is None:
        return ""
    driver = Path(spec.origin).parent / "driver" / "package"
    try:
        listed = json.loads((driver / "browsers.json").read_text(encoding="utf-8"))["browsers"]
        number = next(row["revision"] for row in listed if row["name"] == "chromium")
    except (OSError, ValueError, KeyError, StopIteration):
        return ""
    folder = _browsers(driver) / f"chromium-{number}"
    programs = ("chrome", "chrome.exe", "Chromium", "Google Chrome for Testing")
    found = (path for path in folder.rglob("*") if path.name in programs and path.is_file())
    return str(next(found, folder / "chrome-linux" / "chrome"))


def _browsers(driver: Path) -> Path:
    chosen = os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "")
    if chosen == "0":
        return driver / ".local-browsers"
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ms-playwright"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "ms-playwright"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ms-playwright"


def torch() -> Component:
    """The installed build of torch, from its `version.py`, without importing torch."""
    version, get = packages.version_of("torch"), packages.install_command("trl")
    if version is None:
        return Component("torch", False, "not installed", "agentgym train, agentgym verl, eval --policy hf:MODEL", get)
    spec, build = importlib.util.find_spec("torch"), "unknown build"
    with contextlib.suppress(OSError):
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8") if spec and spec.origin else ""
        cuda = re.search(r"^cuda\b[^=]*=\s*'([\d.]+)'", text, re.MULTILINE)
        rocm = re.search(r"^hip\b[^=]*=\s*'([\d.]+)", text, re.MULTILINE)
        build = f"with CUDA {cuda[1]}" if cuda else f"with ROCm {rocm[1]}" if rocm else "for CPUs"
    return Component("torch", True, f"{version.partition('+')[0]}, {build}")


def gpu() -> Component:
    """The GPUs that nvidia-smi lists."""
    output = _output("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    lines = [line.strip() for line in output.splitlines() if "," in line]
    if lines:
        return Component("GPU", True, "; ".join(lines))
    return Component("GPU", False, "nvidia-smi lists none", "training of large models")


def port(number: int = PORT) -> Component:
    """Check that the default port of `agentgym serve` is free."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", number))
        except OSError as error:
            why = error.strerror or str(error)
            return Component(
                f"port {number}", False, why, "agentgym serve without --port", "agentgym serve --port 0  # a free one"
            )
    return Component(f"port {number}", True, "free, for `agentgym serve`")


def cache() -> Component:
    """Check that Search can save its index."""
    from agentgym_envs.search.corpus import embedded

    try:
        folder = embedded.cache_folder()
    except MissingExtra:
        return Component("cache", True, "comes with the extra search")
    try:
        existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
        with tempfile.TemporaryFile(dir=existing):
            free = shutil.disk_usage(existing).free
    except OSError as error:
        blocks = "reuse of Search's index: every process builds it again"
        return Component("cache", False, f"{folder}: {error.strerror}", blocks, f"export {embedded.CACHE}=FOLDER")
    return Component("cache", True, f"{folder}, {free / 1e9:,.0f} GB free")


def official_tasks() -> str | None:
    """The missing requirement of WebArena's official tasks; None if they can be read."""
    from agentgym_envs.webarena.official import tasks

    if os.environ.get(tasks.VARIABLE):
        return None
    try:
        tasks.find_tasks("original")
    except MissingExtra:
        return "the file of its tasks"
    return None


def _output(*words: str) -> str:
    """The output of a program; "" if it is not installed or does not end in time."""
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr

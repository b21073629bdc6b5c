"""What is on this machine beside Python packages: Java, a browser, torch and its GPU, a port, a cache.

Nothing heavy is imported and no browser or Java machine is started; at most `java -version` and `nvidia-smi` are asked.
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


class Part(NamedTuple):
    """A part of the machine: whether it is there, what was found, what its absence blocks, and how to get it."""

    name: str
    there: bool
    found: str
    blocks: str = ""
    get: str = ""


def parts() -> list[Part]:
    """All of them, in the order in which they are shown."""
    return [java(), chromium(), torch(), gpu(), port(), cache()]


def java() -> Part:
    """The Java that SciWorld would take: the first of JAVA_HOME, PATH and the extra's own that is new enough."""
    from agentgym_envs.sciworld import java as sciworld

    get, blocks, old = packages.install_command("sciworld"), "AgentGym/SciWorld-v0", list[str]()
    for place in sciworld.javas():
        version = _java_version(Path(place))
        if version is not None and int(version.split(".")[0]) >= sciworld.OLDEST:
            return Part("Java", True, f"{version} at {place}")
        old.append(f"{version or 'of unknown version'} at {place}")
    too_old = f"; found: {', '.join(old)}" if old else ""
    return Part("Java", False, f"no Java {sciworld.OLDEST} or later{too_old}", blocks, get)


def _java_version(program: Path) -> str | None:
    """As the file `release` of its folder says, else as it says itself."""
    with contextlib.suppress(OSError):
        text = (program.resolve().parents[1] / "release").read_text(encoding="utf-8", errors="replace")
        if found := re.search(r'^JAVA_VERSION="(\d[\w.]*)', text, re.MULTILINE):
            return found[1]
    found = re.search(r'version "(\d[\w.]*)', _said(str(program), "-version"))
    return found[1] if found else None


def chromium() -> Part:
    """The browser that the web environments would take, by their own search."""
    from agentgym_envs.webarena.browser.chromium import find_chromium

    blocks = "AgentGym/WebArena-v0, MiniWoB-v0, WebArenaOfficial-v0"
    try:
        return Part("Chromium", True, find_chromium(None, _playwrights_browser()))
    except UsageError as error:
        given = os.environ.get("CHROMIUM_PATH")
        get = f"{sys.executable} -m playwright install chromium-headless-shell"
        if importlib.util.find_spec("playwright") is None:
            get = f"{packages.install_command('webarena')} && playwright install chromium-headless-shell"
        found = str(error).partition(". ")[0] if given else "no Chromium: not Playwright's, and none on PATH"
        return Part("Chromium", False, found, blocks, "unset CHROMIUM_PATH" if given else get)


def _playwrights_browser() -> str:
    """Where Playwright keeps its full Chromium, as its driver would say, without starting that; "" without Playwright.

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


def torch() -> Part:
    """Which build of torch is installed, by the file that its import would read."""
    version, get = packages.version_of("torch"), packages.install_command("trl")
    if version is None:
        return Part("torch", False, "not installed", "agentgym train, agentgym verl, eval --policy hf:MODEL", get)
    spec, build = importlib.util.find_spec("torch"), "of unknown build"
    with contextlib.suppress(OSError):
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8") if spec and spec.origin else ""
        cuda = re.search(r"^cuda\b[^=]*=\s*'([\d.]+)'", text, re.MULTILINE)
        rocm = re.search(r"^hip\b[^=]*=\s*'([\d.]+)", text, re.MULTILINE)
        build = f"with CUDA {cuda[1]}" if cuda else f"with ROCm {rocm[1]}" if rocm else "for CPUs"
    return Part("torch", True, f"{version.partition('+')[0]}, {build}")


def gpu() -> Part:
    """The GPUs that the driver names."""
    said = _said("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    lines = [line.strip() for line in said.splitlines() if "," in line]
    if lines:
        return Part("GPU", True, "; ".join(lines))
    return Part("GPU", False, "none that nvidia-smi names", "large models train on GPUs only")


def port(number: int = PORT) -> Part:
    """Whether `agentgym serve` can have its port."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", number))
        except OSError as error:
            why = error.strerror or str(error)
            return Part(
                f"port {number}", False, why, "agentgym serve without --port", "agentgym serve --port 0  # a free one"
            )
    return Part(f"port {number}", True, "free, for `agentgym serve`")


def cache() -> Part:
    """Whether Search can keep its index."""
    from agentgym_envs.search.corpus import embedded

    try:
        folder = embedded.cache_folder()
    except MissingExtra:
        return Part("cache", True, "comes with the extra search")
    try:
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except OSError as error:
        blocks = "every process makes Search's index anew"
        return Part("cache", False, f"{folder}: {error.strerror}", blocks, f"export {embedded.CACHE}=FOLDER")
    return Part("cache", True, f"{folder}, {free / 1e9:,.0f} GB free")


def official_tasks() -> str | None:
    """Why WebArena's own tasks cannot be read; None if they can be."""
    from agentgym_envs.webarena.official import tasks

    if os.environ.get(tasks.VARIABLE):
        return None
    try:
        tasks.find_tasks("original")
    except MissingExtra:
        return "the file of its tasks"
    return None


def _said(*words: str) -> str:
    """What a program writes; nothing if it is not there or does not end."""
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

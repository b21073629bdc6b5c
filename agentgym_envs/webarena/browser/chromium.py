"""Search for a Chromium program, and its launch options."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from agentgym_envs.errors import UsageError, missing_extra
from agentgym_envs.webarena.browser.hosts import HostRules

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Program names searched for on PATH."""
HEAP_MB = 512
"""Memory limit for the JavaScript of one page, so that a runaway page crashes alone."""
_ARGUMENTS = (
    "--disable-dev-shm-usage",
    "--no-proxy-server",  # a proxy would resolve host names itself
    "--proxy-server=direct://",  # the same for the headless shell, which otherwise uses the proxy of the environment
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-domain-reliability",
)
_SMALL_HEAP = "--initial-old-space-size=2 --optimize-for-size"
"""Options of V8: collect garbage early, instead of keeping the documents of the last hundred pages."""
_INSTALL_HINT = (
    "Install one with `playwright install chromium-headless-shell` or, on Debian and Ubuntu, "
    "`apt-get install chromium-headless-shell`, or name one by the environment variable CHROMIUM_PATH"
)
_log = logging.getLogger(__name__)


def check_packages() -> None:
    """Raise MissingExtra if a package that the browser needs is not installed."""
    for package in ("jinja2", "playwright", "starlette", "uvicorn"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra("A web environment", package, "webarena")


def find_chromium(given: str | os.PathLike[str] | None, bundled: str) -> str:
    """Return the program: `given`, CHROMIUM_PATH, Playwright's own (`bundled`), or one on PATH, in this order.

    Raises UsageError, which says how to install one.
    """
    for path, where in ((given, "chromium="), (os.environ.get("CHROMIUM_PATH"), "CHROMIUM_PATH")):
        if path:
            if not (found := shutil.which(path)):
                raise UsageError(f"{where} names {os.fspath(path)!r}, which is no program. {_INSTALL_HINT}")
            return found
    if own := playwright_chromium(bundled):
        return own
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise UsageError(
            f"no Chromium was found: Playwright has none and none of {', '.join(NAMES)} is on PATH. {_INSTALL_HINT}"
        )
    return found


def playwright_chromium(bundled: str) -> str | None:
    """The program that `playwright install` installed: the headless shell, else the full browser (`bundled`)."""
    full = Path(bundled)
    if len(full.parts) < 4:  # <browsers folder>/chromium-<number>/<folder>/<program>
        return None
    folder = full.parents[1]
    headless = folder.with_name(folder.name.replace("chromium-", "chromium_headless_shell-"))
    shells = sorted(headless.glob("*/*headless*shell*")) if headless != folder else []
    return next((str(path) for path in (*shells, full) if path.is_file() and os.access(path, os.X_OK)), None)


@cache
def _warn_about_sandbox() -> None:
    """Log the warning once per process."""
    _log.warning("running as root: Chromium's own sandbox is off (--no-sandbox); run as another user to have it")


def launch_options(program: str, hosts: HostRules, *, small_heap: bool = False) -> dict[str, Any]:
    """Arguments of Playwright's `launch`. The sandbox is on unless this process is root, which Chromium refuses.

    `small_heap` is described in `BrowserOptions`.
    """
    sandbox = not (hasattr(os, "geteuid") and os.geteuid() == 0)
    if not sandbox:
        _warn_about_sandbox()
    heap = f"--max-old-space-size={HEAP_MB} {_SMALL_HEAP if small_heap else ''}".strip()
    return {
        "executable_path": program,
        "headless": True,
        "chromium_sandbox": sandbox,
        "args": [*_ARGUMENTS, f"--host-resolver-rules={hosts.resolver_rules}", f"--js-flags={heap}"],
        "handle_sigint": False,  # an interrupted program closes its environments, and so the browser
        "handle_sigterm": False,
        "handle_sighup": False,
    }

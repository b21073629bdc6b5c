"""Resets of the sites to their initial state, by a reset server or by a function."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import urlsplit

from agentgym_envs.core import describe
from agentgym_envs.errors import AgentGymError, EnvError, UsageError

ResetHook: TypeAlias = Callable[[], object]
"""Resets the sites to their initial state and returns when they are ready. Its errors become EnvError."""
VARIABLE = "WA_FULL_RESET"
"""BrowserGym's environment variable for the address of a reset server."""
TIMEOUT = 900.0
"""The longest time of a reset, in seconds; the published images take three to ten minutes."""
POLL_INTERVAL = 5.0
"""Seconds between two requests for the status."""
_READY = "Ready for duty!"


def make_reset(reset: str | ResetHook | None) -> ResetHook | None:
    """Make the function that resets the sites before an episode.

    The control service in webarena-verified's images is no reset server: its `/init` sets a site's public address and
    keeps the data. To reset those sites, pass a function that starts their containers again.

    Args:
        reset: None (never), "full" (the server at WA_FULL_RESET), the URL of a reset server, or a function.

    Raises:
        UsageError: any other value.
    """
    if reset is None or callable(reset):
        return reset
    url = os.environ.get(VARIABLE, "") if reset == "full" else reset
    if reset == "full" and not url:
        raise UsageError(f'reset="full" needs the address of a reset server; set {VARIABLE}')
    if not isinstance(url, str) or urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f'reset is None, "full", the URL of a reset server or a function, got {reset!r:.120}')
    return FullReset(url.rstrip("/"))


class FullReset:
    """Resets the sites by a server: `/reset` starts a reset (200; 418 if one is running), `/status` reports its end.

    Source: the protocol of BrowserGym's WebArenaInstance and of the reset server of gasse/webarena-setup. An older
    version of that server answers `/reset` after the reset and has no `/status`.
    """

    def __init__(self, url: str, *, timeout: float = TIMEOUT, interval: float = POLL_INTERVAL) -> None:
        self.url, self._timeout, self._interval = url, timeout, interval

    def __call__(self) -> None:
        """Reset the sites and wait. Raises EnvError if the server fails or takes too long."""
        end = time.monotonic() + self._timeout
        status, _ = self._get("/reset", end)
        if status not in (200, 418):
            raise EnvError(f"the reset server {self.url} answered /reset with status {status}")
        while True:
            status, text = self._get("/status", end)
            if status == 404 or (status == 200 and text.strip() == _READY):
                return
            if status != 200:
                raise EnvError(f"the reset server {self.url} answered /status with status {status}")
            time.sleep(self._interval)

    def _get(self, path: str, end: float) -> tuple[int, str]:
        import httpx

        left = end - time.monotonic()
        if left <= 0:
            raise EnvError(f"the sites were not reset within {self._timeout:g} s (reset server {self.url})")
        try:
            answer = httpx.get(
                f"{self.url}{path}", timeout=httpx.Timeout(left, connect=min(left, 10.0)), trust_env=False
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EnvError(f"the reset server {self.url} does not answer: {describe(error)}") from error
        return answer.status_code, answer.text


def run_reset(hook: ResetHook) -> None:
    """Call a reset hook, and raise its errors as EnvError."""
    try:
        hook()
    except AgentGymError:
        raise
    except Exception as error:
        raise EnvError(f"the reset of the sites failed: {describe(error)}") from error

"""Bringing the sites back to their first state: by a server of the user's, or by a function."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import urlsplit

from agentgym_envs.core import describe
from agentgym_envs.errors import AgentGymError, EnvError, UsageError

ResetHook: TypeAlias = Callable[[], object]
"""Brings the sites back to their first state and returns when they are ready. What it raises is the machine's fault."""
VARIABLE = "WA_FULL_RESET"
"""The environment variable that names a reset server: BrowserGym's."""
PATIENCE = 900.0
"""Seconds that a reset may take; those of the published images take three to ten minutes."""
PAUSE = 5.0
"""Seconds between two questions whether it is done."""
_READY = "Ready for duty!"


def reset_hook(reset: str | ResetHook | None) -> ResetHook | None:
    """What is called before an episode: None (never), "full" (the server that WA_FULL_RESET names), a URL, a function.

    The control service in webarena-verified's images is no such server: its `/init` sets a site's public address and
    leaves the data as they are. Those sites are reset by starting their containers anew, which a function can do.
    Raises UsageError.
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
    """A reset server: `/reset` begins (200; 418 if one is running), and in the end `/status` says "Ready for duty!".

    Source: the protocol of BrowserGym's WebArenaInstance and of the reset server of gasse/webarena-setup. That server's
    older form answers `/reset` when it is done, and knows no `/status`.
    """

    def __init__(self, url: str, *, patience: float = PATIENCE, pause: float = PAUSE) -> None:
        self.url, self._patience, self._pause = url, patience, pause

    def __call__(self) -> None:
        """Reset and wait. Raises EnvError if the server fails or it takes too long."""
        end = time.monotonic() + self._patience
        status, _ = self._get("/reset", end)
        if status not in (200, 418):
            raise EnvError(f"the reset server {self.url} answered /reset with status {status}")
        while True:
            status, text = self._get("/status", end)
            if status == 404 or (status == 200 and text.strip() == _READY):
                return
            if status != 200:
                raise EnvError(f"the reset server {self.url} answered /status with status {status}")
            time.sleep(self._pause)

    def _get(self, path: str, end: float) -> tuple[int, str]:
        import httpx

        left = end - time.monotonic()
        if left <= 0:
            raise EnvError(f"the sites were not reset within {self._patience:g} s (reset server {self.url})")
        try:
            answer = httpx.get(
                f"{self.url}{path}", timeout=httpx.Timeout(left, connect=min(left, 10.0)), trust_env=False
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EnvError(f"the reset server {self.url} does not answer: {describe(error)}") from error
        return answer.status_code, answer.text


def run_hook(hook: ResetHook) -> None:
    """Call a hook. Raises EnvError for whatever it raises."""
    try:
        hook()
    except AgentGymError:
        raise
    except Exception as error:
        raise EnvError(f"the reset of the sites failed: {describe(error)}") from error

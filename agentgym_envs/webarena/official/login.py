"""Signing in to the sites before an episode: through their forms, by header, or with cookies from files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.webarena.browser.execute import goto
from agentgym_envs.webarena.browser.session import BrowserSession
from agentgym_envs.webarena.official.accounts import account
from agentgym_envs.webarena.official.sites import SiteAddresses

if TYPE_CHECKING:
    from playwright.async_api import APIResponse, Page

FORMS = {"shopping": "/customer/account/login/", "shopping_admin": "", "gitlab": "/users/sign_in", "reddit": "/login"}
"""Where a site asks who one is. The others know no accounts that a task needs."""
HEADERS = {
    "shopping": "X-M2-Customer-Auto-Login",
    "shopping_admin": "X-M2-Admin-Auto-Login",
    "reddit": "X-Postmill-Auto-Login",
}
"""The header by which webarena-verified's images sign one in. Its GitLab knows none.

Source: docs/environments of ServiceNow/webarena-verified.
"""
_FORM = "form:has(input[type=password]:visible)"
_USER = "input:is([type=text], [type=email], :not([type])):visible"
_SEND = ":is(button:not([type=button]), input[type=submit]):visible"


class Login(Protocol):
    """Signs a session in."""

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """Sign in to the sites of these names. Raises EnvError if one does not let us in."""


def make_login(login: str | os.PathLike[str]) -> Login:
    """The way to sign in: "form", "header", "none", or the folder of state files. Raises UsageError."""
    if isinstance(login, str) and login in _WAYS:
        return _WAYS[login]()
    if not isinstance(login, str | os.PathLike) or not Path(login).is_dir():
        raise UsageError(f"login is {', '.join(map(repr, _WAYS))} or a folder with *_state.json files, got {login!r}")
    return FileLogin(Path(login).absolute())


def accounts_of(sites: SiteAddresses, names: Sequence[str]) -> list[str]:
    """The sites out of `names` that one signs in to, in the order in which that works.

    The shop and the forum name their cookies alike, and cookies do not tell ports apart: on one host only one of them
    can know us. It is the forum, as in WebArena, since the tasks with both write there.
    """
    found = [name for name in FORMS if name in names]
    hosts = [urlsplit(sites.urls[name]).hostname for name in found if name in ("shopping", "reddit")]
    return [name for name in found if name != "shopping" or len(hosts) == len(set(hosts))]


class NoLogin:
    """Nobody signs in."""

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """See `Login`."""


class FormLogin:
    """Through the sites' own forms, in a session beside the episode's.

    The cookies are kept for the next episode of the same environment, and tried before they are used. They are not
    shared with other environments: where one agent logs out, the cookie is worth nothing any more.
    """

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, ...], Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return FormLogin, ()

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """See `Login`."""
        wanted = tuple(accounts_of(sites, names))
        if kept := self._cookies.get(wanted):
            await session.guarded(session.context.add_cookies(kept))
            if not await refusing(session, sites, wanted):
                return
            await session.guarded(session.context.clear_cookies())
        if wanted:
            self._cookies[wanted] = await _cookies_of(session, sites, wanted)
            await session.guarded(session.context.add_cookies(self._cookies[wanted]))


class HeaderLogin:
    """By a header of every request, where the site's image knows one; else through its form."""

    def __init__(self) -> None:
        self._form = FormLogin()

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """See `Login`."""
        headers = {HEADERS[name]: ":".join(account(name)) for name in names if name in HEADERS}
        await session.guarded(session.context.set_extra_http_headers({**session.options.headers, **headers}))
        await self._form(session, sites, [name for name in names if name not in HEADERS])


class FileLogin:
    """With the cookies of files that Playwright wrote, named as WebArena names them: `gitlab.reddit_state.json`.

    A file for all sites of a task counts before those for one. The files are read anew for every episode, and nothing
    is written to them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """See `Login`."""
        wanted = accounts_of(sites, names)
        files = self._files(wanted)
        for file in files:
            await session.guarded(session.context.add_cookies(_read_cookies(file)))
        if refused := await refusing(session, sites, wanted):
            raise EnvError(
                f"the cookies in {', '.join(map(str, files))} do not sign in to {', '.join(refused)} (any more); "
                "make the files anew"
            )

    def _files(self, names: Sequence[str]) -> list[Path]:
        together = self.folder / f"{'.'.join(sorted(names))}_state.json"
        files = [together] if together.is_file() else [self.folder / f"{name}_state.json" for name in names]
        if missing := [file for file in files if not file.is_file()]:
            raise UsageError(f"this task needs {' and '.join(map(str, missing))} to sign in, which is not there")
        return files


async def refusing(session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> list[str]:
    """Those sites that do not know (any more) who the session is: they ask for a password on a page of one's own."""
    return [name for name in names if not await session.guarded(_knows_us(session, sites, name))]


async def _knows_us(session: BrowserSession, sites: SiteAddresses, name: str) -> bool:
    """Whether a page of one's own comes, and neither an error nor the form, which may stand in its place."""
    own = _OWN_PAGE.get(name) or f"/user/{account(name).user}/account"
    timeout = 1e3 * session.options.call_seconds
    answer: APIResponse = await session.context.request.get(sites.urls[name] + own, timeout=timeout)
    if not answer.ok or (FORMS[name] and answer.url.startswith(sites.urls[name] + FORMS[name])):
        return False
    return name != "shopping_admin" or "login[password]" not in await answer.text()


_OWN_PAGE = {"shopping": "/wishlist/", "shopping_admin": "/dashboard", "gitlab": "/-/profile"}


async def _cookies_of(session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> Any:
    """The cookies of a fresh session that has signed in."""
    beside = await BrowserSession.open(session.options, session.backend)
    try:
        for name in names:
            await goto(beside, sites.urls[name] + FORMS[name])
            beside.tab.page.set_default_timeout(1e3 * session.options.call_seconds)
            await beside.guarded(_fill_in(beside.tab.page, name))
        return await beside.guarded(beside.context.cookies())
    finally:
        await beside.close()


async def _fill_in(page: Page, name: str) -> None:
    """Send the form of a page that asks for a password. Raises EnvError if it is asked for again."""
    form, (user, password) = page.locator(_FORM).first, account(name)
    if not await form.count():
        raise EnvError(f"{page.url} has no form to sign in to {name!r}")
    await form.locator(_USER).first.fill(user)
    await form.locator("input[type=password]").first.fill(password)
    async with page.expect_navigation(wait_until="load"):
        await form.locator(_SEND).first.click()
    if await page.locator(_FORM).count():
        variables = f"WA_{name.upper()}_USERNAME and WA_{name.upper()}_PASSWORD"
        raise EnvError(f"the site {name!r} does not let {user!r} in; set {variables} if its accounts are others")


def _read_cookies(file: Path) -> Any:
    try:
        state: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return state["cookies"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is no storage state as Playwright writes it: {error}") from None


_WAYS: Mapping[str, Callable[[], Login]] = {"form": FormLogin, "header": HeaderLogin, "none": NoLogin}

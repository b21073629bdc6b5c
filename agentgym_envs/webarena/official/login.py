"""Ways to sign in to the sites before an episode: by their forms, by HTTP headers, or by cookies from files."""

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

LOGIN_PAGES = {
    "shopping": "/customer/account/login/",
    "shopping_admin": "",
    "gitlab": "/users/sign_in",
    "reddit": "/login",
}
"""The login pages of sites. No task needs an account on the other sites."""
HEADERS = {
    "shopping": "X-M2-Customer-Auto-Login",
    "shopping_admin": "X-M2-Admin-Auto-Login",
    "reddit": "X-Postmill-Auto-Login",
}
"""The headers by which webarena-verified's images sign in. Its GitLab has none.

Source: docs/environments of ServiceNow/webarena-verified.
"""
_FORM = "form:has(input[type=password]:visible)"
_USER = "input:is([type=text], [type=email], :not([type])):visible"
_SEND = ":is(button:not([type=button]), input[type=submit]):visible"


class Login(Protocol):
    """A way to sign in."""

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """Sign a session in to the sites with these names. Raises EnvError if a site refuses."""


def make_login(login: str | os.PathLike[str]) -> Login:
    """Make the login named "form", "header" or "none", or one for a folder of state files. Raises UsageError."""
    if isinstance(login, str) and login in _LOGINS:
        return _LOGINS[login]()
    if not isinstance(login, str | os.PathLike) or not Path(login).is_dir():
        raise UsageError(f"login is {', '.join(map(repr, _LOGINS))} or a folder with *_state.json files, got {login!r}")
    return FileLogin(Path(login).absolute())


def login_sites(sites: SiteAddresses, names: Sequence[str]) -> list[str]:
    """The sites among `names` that need a login, in a working order.

    The shop and the forum use the same cookie names, and cookies are not separated by port. So on one host only one of
    them can have a login. As in WebArena, that is the forum, because tasks with both sites write there.
    """
    found = [name for name in LOGIN_PAGES if name in names]
    hosts = [urlsplit(sites.urls[name]).hostname for name in found if name in ("shopping", "reddit")]
    return [name for name in found if name != "shopping" or len(hosts) == len(set(hosts))]


class NoLogin:
    """Does not sign in."""

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """Do nothing."""


class FormLogin:
    """Signs in through the sites' own forms, in a separate session.

    The cookies are kept for the next episode of the same environment, and tested before use. Environments do not share
    them, because a cookie becomes invalid when an agent logs out.
    """

    def __init__(self) -> None:
        self._cookies: dict[tuple[str, ...], Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return FormLogin, ()

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """Sign in, as in `Login`."""
        wanted = tuple(login_sites(sites, names))
        if kept := self._cookies.get(wanted):
            await session.guarded(session.context.add_cookies(kept))
            if not await signed_out_sites(session, sites, wanted):
                return
            await session.guarded(session.context.clear_cookies())
        if wanted:
            self._cookies[wanted] = await _cookies_of(session, sites, wanted)
            await session.guarded(session.context.add_cookies(self._cookies[wanted]))


class HeaderLogin:
    """Signs in by a header on every request, where the site's image supports one; otherwise through its form."""

    def __init__(self) -> None:
        self._form = FormLogin()

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """Sign in, as in `Login`."""
        headers = {HEADERS[name]: ":".join(account(name)) for name in names if name in HEADERS}
        await session.guarded(session.context.set_extra_http_headers({**session.options.headers, **headers}))
        await self._form(session, sites, [name for name in names if name not in HEADERS])


class FileLogin:
    """Signs in with the cookies of Playwright's state files, named as in WebArena: `gitlab.reddit_state.json`.

    A file for all sites of a task takes precedence over files for single sites. The files are read again for every
    episode and never written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def __call__(self, session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> None:
        """Sign in, as in `Login`."""
        wanted = login_sites(sites, names)
        files = self._files(wanted)
        for file in files:
            await session.guarded(session.context.add_cookies(_read_cookies(file)))
        if refused := await signed_out_sites(session, sites, wanted):
            raise EnvError(
                f"the cookies in {', '.join(map(str, files))} do not sign in to {', '.join(refused)} (any more); "
                "create the files again"
            )

    def _files(self, names: Sequence[str]) -> list[Path]:
        together = self.folder / f"{'.'.join(sorted(names))}_state.json"
        files = [together] if together.is_file() else [self.folder / f"{name}_state.json" for name in names]
        if missing := [file for file in files if not file.is_file()]:
            raise UsageError(f"this task needs {' and '.join(map(str, missing))} to sign in, which is not there")
        return files


async def signed_out_sites(session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> list[str]:
    """The sites on which the session is not signed in: they ask for a password on a page that needs an account."""
    return [name for name in names if not await session.guarded(_is_signed_in(session, sites, name))]


async def _is_signed_in(session: BrowserSession, sites: SiteAddresses, name: str) -> bool:
    """Return True if the site shows an account page, and neither an error nor the login form."""
    path = _ACCOUNT_PAGES.get(name) or f"/user/{account(name).user}/account"
    timeout = 1e3 * session.options.call_seconds
    answer: APIResponse = await session.context.request.get(sites.urls[name] + path, timeout=timeout)
    if not answer.ok or (LOGIN_PAGES[name] and answer.url.startswith(sites.urls[name] + LOGIN_PAGES[name])):
        return False
    return name != "shopping_admin" or "login[password]" not in await answer.text()


_ACCOUNT_PAGES = {"shopping": "/wishlist/", "shopping_admin": "/dashboard", "gitlab": "/-/profile"}


async def _cookies_of(session: BrowserSession, sites: SiteAddresses, names: Sequence[str]) -> Any:
    """Sign in with a new session and return its cookies."""
    other = await BrowserSession.open(session.options, session.backend)
    try:
        for name in names:
            await goto(other, sites.urls[name] + LOGIN_PAGES[name])
            other.tab.page.set_default_timeout(1e3 * session.options.call_seconds)
            await other.guarded(_fill_in(other.tab.page, name))
        return await other.guarded(other.context.cookies())
    finally:
        await other.close()


async def _fill_in(page: Page, name: str) -> None:
    """Submit the login form of a page. Raises EnvError if the site shows the form again."""
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
        raise UsageError(f"{file} is not a storage state as Playwright writes it: {error}") from None


_LOGINS: Mapping[str, Callable[[], Login]] = {"form": FormLogin, "header": HeaderLogin, "none": NoLogin}

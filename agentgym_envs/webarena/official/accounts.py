"""The accounts of the sites: WebArena's standard ones, unless environment variables say otherwise."""

from __future__ import annotations

import os
from typing import NamedTuple


class SiteAccount(NamedTuple):
    """A user name (the shop's is an e-mail address) and a password."""

    user: str
    password: str


STANDARD = {
    "shopping": SiteAccount("emma.lopez@gmail.com", "Password.123"),
    "shopping_admin": SiteAccount("admin", "admin1234"),
    "shopping_site_admin": SiteAccount("admin", "admin1234"),
    "reddit": SiteAccount("MarvelsGrantMan136", "test1234"),
    "gitlab": SiteAccount("byteblaze", "hello1234"),
}
"""Published with the sites' images. "shopping_site_admin" is whom scoring asks the shop's REST interface as."""


def account(name: str) -> SiteAccount:
    """The account of that name; `WA_GITLAB_USERNAME` and `WA_GITLAB_PASSWORD` replace GitLab's, and so on."""
    standard, prefix = STANDARD[name], f"WA_{name.upper()}"
    return SiteAccount(
        os.environ.get(f"{prefix}_USERNAME") or standard.user, os.environ.get(f"{prefix}_PASSWORD") or standard.password
    )

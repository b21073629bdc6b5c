"""Accounts of the sites: WebArena's standard ones, unless environment variables replace them."""

from __future__ import annotations

import os
from typing import NamedTuple


class SiteAccount(NamedTuple):
    """A user name (in the shop, an e-mail address) and a password."""

    user: str
    password: str


STANDARD = {
    "shopping": SiteAccount("emma.lopez@gmail.com", "Password.123"),
    "shopping_admin": SiteAccount("admin", "admin1234"),
    "shopping_site_admin": SiteAccount("admin", "admin1234"),
    "reddit": SiteAccount("MarvelsGrantMan136", "test1234"),
    "gitlab": SiteAccount("byteblaze", "hello1234"),
}
"""The published accounts. Scoring uses "shopping_site_admin" for the shop's REST interface."""


def account(name: str) -> SiteAccount:
    """The account of a site; `WA_GITLAB_USERNAME` and `WA_GITLAB_PASSWORD` replace GitLab's, and so on."""
    standard, prefix = STANDARD[name], f"WA_{name.upper()}"
    return SiteAccount(
        os.environ.get(f"{prefix}_USERNAME") or standard.user, os.environ.get(f"{prefix}_PASSWORD") or standard.password
    )

"""Accounts with their profiles, groups, and follow relations."""

from __future__ import annotations

import datetime
import random

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.code import wordlists_history, wordlists_projects
from agentgym_envs.webarena.sites.code.seed_tools import TableRows, slug, working_moment
from agentgym_envs.webarena.sites.people import Person
from agentgym_envs.webarena.sites.world import SeedInputs

ACCOUNTS, GROUPS = 60, 6
ME = 1
"""The agent's account."""
_LANGUAGES = ("Python", "Go", "Rust", "JavaScript", "C")
_TOPICS = ("maps", "music", "gardening", "typography", "databases", "radio", "accessibility", "weather", "old machines")


def add_accounts(rows: TableRows, seeds: SeedInputs) -> None:
    """Add the agent's person and some others. Each gets a namespace with the same number as the account."""
    rng = seeds.rng
    chosen = [seeds.people[0], *rng.sample(seeds.people[1:], ACCOUNTS - 1)]
    for person in chosen:
        joined = working_moment(rng, NOW - datetime.timedelta(days=1500), NOW - datetime.timedelta(days=950))
        account = _add_account(rows, rng, person, stamp(joined))
        rows.add(
            "namespaces", path=person.user, name=person.name, account=account, description="",
            visibility="public", created=stamp(joined),
        )  # fmt: skip
    _add_follows(rows, rng)
    _add_keys(rows, rng)


def add_groups(rows: TableRows, rng: random.Random) -> list[int]:
    """Add the groups with their members; return their namespaces. The agent's account is in two of them."""
    groups = []
    for index, (name, text) in enumerate(rng.sample(wordlists_projects.GROUPS, GROUPS)):
        created = working_moment(rng, NOW - datetime.timedelta(days=940), NOW - datetime.timedelta(days=800))
        namespace = rows.add(
            "namespaces", path=slug(name), name=name, account=None, description=text,
            visibility="public", created=stamp(created),
        )  # fmt: skip
        members = rng.sample(range(2, ACCOUNTS + 1), rng.randint(3, 6))
        roles = ["Owner", *rng.choices(("Maintainer", "Developer", "Developer", "Reporter"), k=len(members) - 1)]
        if index < 2:
            members.append(ME)
            roles.append(("Developer", "Owner")[index])
        for account, role in zip(members, roles, strict=True):
            since = stamp(working_moment(rng, created, created + datetime.timedelta(days=400)))
            rows.add("group_members", namespace=namespace, account=account, role=role, since=since)
        groups.append(namespace)
    return groups


def _add_account(rows: TableRows, rng: random.Random, person: Person, joined: str) -> int:
    bio = rng.choice(wordlists_projects.BIOS).format(language=rng.choice(_LANGUAGES), topic=rng.choice(_TOPICS))
    busy = rng.random() < 0.12
    status = rng.choice(wordlists_projects.STATUSES) if busy or rng.random() < 0.15 else ""
    mine = person.number == 1
    return rows.add(
        "accounts", user=person.user, name=person.name, email=person.email, bio=bio[:1].upper() + bio[1:],
        job=rng.choice(wordlists_projects.JOBS), organisation=rng.choice(wordlists_projects.EMPLOYERS),
        location=person.town.name if rng.random() < 0.8 else "",
        website=f"https://{slug(person.user)}.example" if rng.random() < 0.4 else "",
        status="" if mine else status, busy=int(busy and not mine),
        colour=rng.choice(wordlists_projects.COLOURS), joined=joined,
    )  # fmt: skip


def _add_follows(rows: TableRows, rng: random.Random) -> None:
    """Add follow relations: a few accounts have many followers."""
    popular = rng.sample(range(1, ACCOUNTS + 1), ACCOUNTS)
    weights = [1 / (index + 2) for index in range(ACCOUNTS)]
    for account in range(1, ACCOUNTS + 1):
        count = 5 if account == ME else rng.choice((0, 0, 1, 1, 2, 3, 4))
        for followed in dict.fromkeys(rng.choices(popular, weights, k=count)):
            if followed != account:
                rows.add("follows", account=account, follows=followed)


def _add_keys(rows: TableRows, rng: random.Random) -> None:
    """Add two keys of the agent's account."""
    for title in rng.sample(wordlists_history.KEY_TITLES, 2):
        letters = "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", k=43))
        created = working_moment(rng, NOW - datetime.timedelta(days=600), NOW - datetime.timedelta(days=30))
        user = rows.row("accounts", ME)["user"]
        key = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{letters} {user}@{slug(title)}"
        rows.add("keys", account=ME, title=title, key=key, created=stamp(created), expires=None)

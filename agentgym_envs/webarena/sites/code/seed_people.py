"""Accounts, what their owners say of themselves, groups, and who follows whom."""

from __future__ import annotations

import datetime
import random

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.code import wordlists_history, wordlists_projects
from agentgym_envs.webarena.sites.code.seed_tools import Rows, slug, working_moment
from agentgym_envs.webarena.sites.people import Person
from agentgym_envs.webarena.sites.world import SeedInputs

ACCOUNTS, GROUPS = 60, 6
ME = 1
"""The account of the first person, for whom the agent acts."""
_LANGUAGES = ("Python", "Go", "Rust", "JavaScript", "C")
_TOPICS = ("maps", "music", "gardening", "typography", "databases", "radio", "accessibility", "weather", "old machines")


def add_accounts(rows: Rows, seeds: SeedInputs) -> None:
    """Add the first person and some of the others, each with a namespace of its own that has the account's number."""
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


def add_groups(rows: Rows, rng: random.Random) -> list[int]:
    """Add the groups with their members; returns their namespaces. The first person is in two of them."""
    groups = []
    for place, (name, text) in enumerate(rng.sample(wordlists_projects.GROUPS, GROUPS)):
        created = working_moment(rng, NOW - datetime.timedelta(days=940), NOW - datetime.timedelta(days=800))
        namespace = rows.add(
            "namespaces", path=slug(name), name=name, account=None, description=text,
            visibility="public", created=stamp(created),
        )  # fmt: skip
        members = rng.sample(range(2, ACCOUNTS + 1), rng.randint(3, 6))
        roles = ["Owner", *rng.choices(("Maintainer", "Developer", "Developer", "Reporter"), k=len(members) - 1)]
        if place < 2:
            members.append(ME)
            roles.append(("Developer", "Owner")[place])
        for account, role in zip(members, roles, strict=True):
            since = stamp(working_moment(rng, created, created + datetime.timedelta(days=400)))
            rows.add("group_members", namespace=namespace, account=account, role=role, since=since)
        groups.append(namespace)
    return groups


def _add_account(rows: Rows, rng: random.Random, person: Person, joined: str) -> int:
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


def _add_follows(rows: Rows, rng: random.Random) -> None:
    """Few are followed by many. The first person follows some, and by far not all."""
    popular = rng.sample(range(1, ACCOUNTS + 1), ACCOUNTS)
    weights = [1 / (place + 2) for place in range(ACCOUNTS)]
    for account in range(1, ACCOUNTS + 1):
        count = 5 if account == ME else rng.choice((0, 0, 1, 1, 2, 3, 4))
        for followed in dict.fromkeys(rng.choices(popular, weights, k=count)):
            if followed != account:
                rows.add("follows", account=account, follows=followed)


def _add_keys(rows: Rows, rng: random.Random) -> None:
    """Two keys of the first person."""
    for title in rng.sample(wordlists_history.KEY_TITLES, 2):
        letters = "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", k=43))
        created = working_moment(rng, NOW - datetime.timedelta(days=600), NOW - datetime.timedelta(days=30))
        user = rows.row("accounts", ME)["user"]
        key = f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{letters} {user}@{slug(title)}"
        rows.add("keys", account=ME, title=title, key=key, created=stamp(created), expires=None)

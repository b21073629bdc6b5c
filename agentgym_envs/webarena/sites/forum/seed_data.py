"""The forum's rows at the start of an episode."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.forum import seed_account, seed_threads
from agentgym_envs.webarena.sites.forum.members import ME, Board, ForumMember, moment_of_day
from agentgym_envs.webarena.sites.forum.subjects import ALWAYS, FLAIRS, OTHERS, subject
from agentgym_envs.webarena.sites.forum.tables import insert
from agentgym_envs.webarena.sites.forum.texts import Slots
from agentgym_envs.webarena.sites.forum.titles import invented
from agentgym_envs.webarena.sites.forum.wordlists import BIOS, COLOURS
from agentgym_envs.webarena.sites.people import Person
from agentgym_envs.webarena.sites.world import SeedInputs

MEMBERS, BOARDS = 140, 16


def fill(database: sqlite3.Connection, seeds: SeedInputs) -> None:
    """Write the forum of a world. Account ids equal person numbers."""
    rng = seeds.rng
    boards = _boards(seeds)
    members = _members(seeds, boards)
    _subscribe(rng, members, boards)
    insert(database, "forum_users", (_user_row(rng, seeds.people[member.id - 1], member) for member in members))
    _write_boards(database, seeds, boards)
    posts = seed_threads.write(database, seeds, boards)
    seed_account.write(database, seeds, boards, posts)


def _boards(seeds: SeedInputs) -> list[Board]:
    """Return the boards by opening date. The activity of a board does not depend on its age."""
    rng = seeds.rng
    names = [*ALWAYS, *rng.sample(OTHERS, BOARDS - len(ALWAYS))]
    rng.shuffle(names)
    weights = [1 / (rank + 3) for rank in range(BOARDS)]
    rng.shuffle(weights)
    opened = sorted(moment_of_day(rng, NOW - datetime.timedelta(days=rng.uniform(500, 2_300))) for _ in names)
    return [_board(seeds, *given) for given in enumerate(zip(names, weights, opened, strict=True), 1)]


def _board(seeds: SeedInputs, number: int, given: tuple[str, float, datetime.datetime]) -> Board:
    name, weight, opened = given
    about = subject(name)
    things: Sequence[str] = about.things
    if things[0].startswith("@"):
        things = invented(seeds.rng, things[0][1:])
    shown = f"ask{seeds.country.name.lower()}" if name == "ask" else name
    return Board(number, shown, about, tuple(things), weight, opened)


def _members(seeds: SeedInputs, boards: Sequence[Board]) -> list[ForumMember]:
    """Return the agent's account and those of others. Most are older than the oldest post."""
    rng = seeds.rng
    chosen = sorted([ME, *rng.sample(range(ME + 1, len(seeds.people) + 1), MEMBERS - 1)])
    members = []
    for number in chosen:
        days = 900.0 if number == ME else rng.choice((rng.uniform(20, 430), *[rng.uniform(430, 2_200)] * 6))
        activity = 0.0 if number == ME else rng.paretovariate(1.1)
        member = ForumMember(
            number, seeds.people[number - 1].user, NOW - datetime.timedelta(days=days), min(activity, 25.0)
        )
        members.append(member)
    return members


def _subscribe(rng: random.Random, members: Sequence[ForumMember], boards: Sequence[Board]) -> None:
    """Assign subscribers to boards, and choose moderators from the oldest subscribers."""
    for member in members:
        count = 7 if member.id == ME else rng.randint(2, 8)
        wanted = sorted(boards, key=lambda board: rng.random() ** (1 / board.weight), reverse=True)
        for board in wanted[:count]:
            board.members.append(member)
        member.interest = next(board.subject.title.lower() for board in wanted if "{" not in board.subject.title)
    for board in boards:
        old = sorted((member for member in board.members if member.id != ME), key=lambda member: member.joined)
        board.moderators.extend(old[: rng.randint(1, 3)])
    mine = [board for board in boards if any(member.id == ME for member in board.members)]
    sorted(mine, key=lambda board: board.weight)[len(mine) // 2].moderators.append(members[0])


def _user_row(rng: random.Random, person: Person, member: ForumMember) -> dict[str, Any]:
    own = rng.random() < 0.7 or member.id == ME
    bio = rng.choice(BIOS).format(board=member.interest, town=person.town.name, town2="the capital") if own else ""
    return {
        "id": member.id,
        "name": person.user,
        "email": person.email,
        "joined": stamp(member.joined),
        "bio": bio[:1].upper() + bio[1:],
        "location": person.town.name if rng.random() < 0.6 else "",
        "website": f"https://{person.user.strip('_.').replace('_', '-')}.test" if rng.random() < 0.15 else "",
        "avatar": rng.choice(COLOURS),
    }


def _write_boards(database: sqlite3.Connection, seeds: SeedInputs, boards: Sequence[Board]) -> None:
    country = seeds.country.name
    insert(database, "forum_boards", (_board_row(board, country) for board in boards))
    insert(database, "forum_rules", [row for board in boards for row in _rule_rows(seeds, board)])
    flairs = [{"board": board.id, "name": FLAIRS[kind]} for board in boards for kind in board.subject.kinds]
    insert(database, "forum_flairs", flairs)
    pairs = [(member.id, board.id) for board in boards for member in board.members]
    insert(database, "forum_subscriptions", ({"account": account, "board": board} for account, board in sorted(pairs)))
    insert(database, "forum_moderators", [row for board in boards for row in _moderator_rows(board)])


def _rule_rows(seeds: SeedInputs, board: Board) -> Iterator[dict[str, Any]]:
    for index, (short, long) in enumerate(board.subject.rules, 1):
        text = Slots(seeds.rng, seeds.country, board.things, {}).fill(long)
        yield {"board": board.id, "position": index, "title": short, "text": text}


def _moderator_rows(board: Board) -> Iterator[dict[str, Any]]:
    for member in board.moderators:
        since = max(member.joined, board.opened) + datetime.timedelta(days=20)
        yield {"board": board.id, "user": member.id, "since": stamp(since)}


def _board_row(board: Board, country: str) -> dict[str, Any]:
    about = board.subject.about.format(country=country)
    more = "New here? Read the rules first and say hello. The moderators answer messages within a day or two."
    return {
        "id": board.id,
        "name": board.name,
        "title": board.subject.title.format(country=country),
        "description": about,
        "sidebar": f"{about}\n\n{more}",
        "created": stamp(board.opened),
    }

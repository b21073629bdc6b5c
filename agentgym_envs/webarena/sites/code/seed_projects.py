"""Projects with their owners, members, labels, releases and milestones."""

from __future__ import annotations

import datetime
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.code import wordlists_history, wordlists_projects
from agentgym_envs.webarena.sites.code.seed_people import ACCOUNTS, ME
from agentgym_envs.webarena.sites.code.seed_tools import TableRows, Words, fill_in, working_moment
from agentgym_envs.webarena.sites.code.wordlists_projects import IDEAS, Idea

PROJECTS = 26
"""Number of projects without forks."""
_MINE = (1, 6, 12, 19)
"""Projects of the agent's account, as ranks by activity; the last one is private."""
_MY_ROLES = {
    0: "Developer", 3: "Maintainer", 4: "Developer", 8: "Reporter", 10: "Developer", 14: "Guest", 16: "Reporter",
}  # fmt: skip
_INTERNAL, _PRIVATE, _ARCHIVED = (7, 15, 22), (16, 19), (20, 24)
_COUNTS = (2, 3, 5, 8, 12, 15, 20, 25, 30, 40, 60, 64, 80, 100, 120, 150, 200, 250)


@dataclass
class Draft:
    """A project during generation.

    `releases` are (time, version); `milestones` are (state, due date, id); `blobs` are by path; `facts` replace
    placeholders in sources.
    """

    number: int
    idea: Idea
    path: str
    slug: str
    name: str
    owner: int
    created: datetime.datetime
    ended: datetime.datetime
    weight: float
    licence: str
    members: dict[int, str]
    releases: list[tuple[datetime.datetime, str]]
    labels: dict[str, int] = field(default_factory=dict)
    more_labels: list[int] = field(default_factory=list)
    part_labels: dict[str, int] = field(default_factory=dict)
    milestones: list[tuple[str, datetime.date | None, int]] = field(default_factory=list)
    branch: int = 0
    blobs: dict[str, int] = field(default_factory=dict)
    facts: Words = field(default_factory=dict)
    issues: list[int] = field(default_factory=list)
    branch_names: set[str] = field(default_factory=set)

    def coders(self) -> list[int]:
        """Members who may push, most active first."""
        return [account for account, role in self.members.items() if role in ("Owner", "Maintainer", "Developer")]

    def helpers(self) -> list[int]:
        """Members who get issues assigned."""
        return [account for account, role in self.members.items() if role != "Guest"]

    def version(self, moment: datetime.datetime = NOW) -> str:
        """Return the latest version at a time."""
        index = bisect_right([when for when, _ in self.releases], moment)
        return self.releases[max(index - 1, 0)][1]

    def moment(self, share: float) -> datetime.datetime:
        """Return the time at a fraction of the project's lifetime."""
        return self.created + (self.ended - self.created) * share

    def words(self, rng: random.Random, moment: datetime.datetime, part: str | None = None) -> Words:
        """Draw the words for a text about the project."""
        thing, other = rng.sample(self.idea.things, 2)
        part = part or rng.choice(self.idea.parts)
        other_part = rng.choice([other for other in self.idea.parts if other != part])
        option = rng.choice((f"{thing}_limit", f"keep_{other}s", f"skip_{thing}s", f"{part}_timeout", f"strict_{part}"))
        words = {"thing": thing, "things": f"{thing}s", "other": other, "others": f"{other}s", "part": part}
        words |= {"other_part": other_part, "option": option, "project": self.name, "version": self.version(moment)}
        words |= {key.capitalize(): word.capitalize() for key, word in words.items() if key in _CAPITALISED}
        return words | {"n": str(rng.choice(_COUNTS[4:])), "small": str(rng.choice(_COUNTS[:5]))}


_CAPITALISED = ("thing", "things", "part", "other_part")


def add_projects(rows: TableRows, rng: random.Random, groups: Sequence[int]) -> list[Draft]:
    """Add the projects without their content, most active first."""
    drafts = []
    owners = rng.sample(range(2, ACCOUNTS + 1), PROJECTS)
    for index, idea in enumerate(rng.sample(IDEAS, PROJECTS)):
        group = None if index in _MINE or rng.random() < 0.45 else groups[index % len(groups)]
        draft = _draft(rows, rng, index, idea, ME if index in _MINE else owners[index], group)
        _add_members(rows, rng, draft, group)
        _add_labels(rows, rng, draft)
        _add_milestones(rows, rng, draft)
        drafts.append(draft)
    return drafts


def _draft(rows: TableRows, rng: random.Random, index: int, idea: Idea, owner: int, group: int | None) -> Draft:
    slug = rng.choice(idea.names)
    name = " ".join(word.capitalize() for word in slug.split("-")) if rng.random() < 0.6 else slug
    age = rng.uniform(260, 780)
    created = working_moment(rng, NOW - datetime.timedelta(days=age), NOW - datetime.timedelta(days=age - 20))
    ended = NOW - datetime.timedelta(days=rng.uniform(90, 160)) if index in _ARCHIVED else NOW
    licence, namespace = rng.choice(wordlists_projects.LICENCES), group or owner
    visibility = "private" if index in _PRIVATE else "internal" if index in _INTERNAL else "public"
    topics = rng.sample(idea.topics, rng.choice((1, 2, 3, 3)))
    number = rows.add(
        "projects", namespace=namespace, slug=slug, name=name, description=idea.summary, visibility=visibility,
        topics=", ".join([*topics, idea.language]), licence=licence,
        default_branch="master" if rng.random() < 0.15 else "main", archived=int(index in _ARCHIVED),
        forked_from=None, created=stamp(created),
    )  # fmt: skip
    path = rows.row("namespaces", namespace)["path"]
    weight = 1 / (index + 2) ** 0.72
    roles: dict[int, str] = {owner: "Owner"}
    releases = _releases(rng, created, ended, weight)
    return Draft(number, idea, path, slug, name, owner, created, ended, weight, licence, roles, releases)


def _releases(
    rng: random.Random, created: datetime.datetime, ended: datetime.datetime, weight: float
) -> list[tuple[datetime.datetime, str]]:
    """Return (time, version) of the releases in order."""
    count = max(1, min(7, round(10 * weight + rng.uniform(0, 2))))
    length = (ended - created) / (count + 1)
    major, minor, patch = rng.choice((0, 0, 0, 1, 1, 2)), rng.randint(1, 4), 0
    releases = []
    for index in range(1, count + 1):
        moment = working_moment(rng, created + length * (index - 0.2), created + length * (index + 0.3))
        releases.append((moment, f"{major}.{minor}.{patch}"))
        major, minor, patch = _next_version(rng, major, minor, patch)
    return releases


def _next_version(rng: random.Random, major: int, minor: int, patch: int) -> tuple[int, int, int]:
    draw = rng.random()
    if draw < 0.12:
        return major + 1, 0, 0
    return (major, minor + 1, 0) if draw < 0.7 else (major, minor, patch + 1)


def _add_members(rows: TableRows, rng: random.Random, draft: Draft, group: int | None) -> None:
    """Add the members. In a project of a group, the group's members also count, without rows of their own."""
    index = draft.number - 1
    count = rng.randint(4, 8) if index < 8 else rng.randint(2, 5)
    others = [account for account in rng.sample(range(2, ACCOUNTS + 1), count) if account != draft.owner]
    roles = rng.choices(("Maintainer", "Developer", "Reporter", "Guest"), (2, 5, 2, 1), k=len(others))
    roles[0] = "Developer"
    chosen = dict(zip(others, roles, strict=True))
    if index in _MY_ROLES:
        chosen[ME] = _MY_ROLES[index]
    draft.members |= chosen
    for account, role in draft.members.items():
        since = working_moment(rng, draft.created, draft.moment(0.4 if account != draft.owner else 0.001))
        rows.add("members", project=draft.number, account=account, role=role, since=stamp(since))
    for row in rows.tables["group_members"]:
        if row["namespace"] == group:
            draft.members.setdefault(row["account"], row["role"])


def _add_labels(rows: TableRows, rng: random.Random, draft: Draft) -> None:
    scoped = rng.random() < 0.2
    for kind, colour, text in wordlists_projects.LABELS:
        names = wordlists_projects.RENAMED[kind]
        name = names[-1] if scoped and "::" in names[-1] else rng.choice([name for name in names if "::" not in name])
        draft.labels[kind] = rows.add("labels", project=draft.number, name=name, colour=colour, description=text)
    for name, colour, text in rng.sample(wordlists_projects.MORE_LABELS, rng.randint(2, 5)):
        label = rows.add("labels", project=draft.number, name=name, colour=colour, description=text)
        draft.more_labels.append(label)
    if draft.number <= 12:
        for part in rng.sample(draft.idea.parts, 2):
            colour, text = rng.choice(wordlists_projects.PART_COLOURS), f"About {part}"
            label = rows.add("labels", project=draft.number, name=part, colour=colour, description=text)
            draft.part_labels[part] = label


def _add_milestones(rows: TableRows, rng: random.Random, draft: Draft) -> None:
    """Add closed milestones of the last releases, open ones of the next releases, and sometimes a theme."""
    for moment, version in draft.releases[-3:]:
        start = (moment - datetime.timedelta(days=rng.randint(40, 90))).date()
        _add_release_plan(rows, rng, draft, version, start, moment.date(), "closed")
    if draft.ended < NOW:
        return
    major, minor, _ = map(int, draft.releases[-1][1].split("."))
    for ahead in range(1, 3 if draft.number <= 10 else 2):
        due = (NOW + datetime.timedelta(days=rng.randint(12, 45) + 60 * (ahead - 1))).date()
        start = due - datetime.timedelta(days=rng.randint(60, 90))
        _add_release_plan(rows, rng, draft, f"{major}.{minor + ahead}.0", start, due, "open")
    if rng.random() < 0.5:
        words = draft.words(rng, NOW)
        title, text = (fill_in(template, words) for template in rng.choice(wordlists_history.THEMES))
        _add_milestone(rows, draft, title, text, None, None, "open")


def _add_release_plan(
    rows: TableRows,
    rng: random.Random,
    draft: Draft,
    version: str,
    start: datetime.date,
    due: datetime.date,
    state: str,
) -> None:
    words = draft.words(rng, NOW) | {"version": version}
    text = fill_in(rng.choice(wordlists_history.MILESTONE_TEXTS), words)
    _add_milestone(rows, draft, f"v{version}", text, start, due, state)


def _add_milestone(
    rows: TableRows,
    draft: Draft,
    title: str,
    text: str,
    start: datetime.date | None,
    due: datetime.date | None,
    state: str,
) -> None:
    dates = {"start": start and start.isoformat(), "due": due and due.isoformat()}
    number = rows.add("milestones", project=draft.number, title=title, description=text, **dates, state=state)
    draft.milestones.append((state, due, number))

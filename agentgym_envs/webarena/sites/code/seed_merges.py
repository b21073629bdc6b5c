"""Merge requests with their branches, and branches without a merge request."""

from __future__ import annotations

import datetime
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.code import wordlists_history
from agentgym_envs.webarena.sites.code.repository import count_changed_lines
from agentgym_envs.webarena.sites.code.seed_issues import add_comment, milestone_for, someone
from agentgym_envs.webarena.sites.code.seed_people import ME
from agentgym_envs.webarena.sites.code.seed_projects import Draft
from agentgym_envs.webarena.sites.code.seed_sources import module_path, one_more
from agentgym_envs.webarena.sites.code.seed_tools import (
    TableRows,
    Words,
    fill_in,
    sha,
    shares,
    slug,
    soon,
    working_moment,
)

MERGE_REQUESTS = 140
_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged merge request, with the data for its commits."""

    key: int
    number: int
    source: str
    author: int
    by: int
    title: str
    words: Words
    start: datetime.datetime
    end: datetime.datetime


@dataclass(frozen=True, slots=True)
class _Plan:
    """The content and the dates of a merge request."""

    title: str
    body: str
    source: str
    words: Words
    created: datetime.datetime
    ended: datetime.datetime | None
    state: str
    closes: int | None


def add_merge_requests(rows: TableRows, rng: random.Random, drafts: Sequence[Draft]) -> dict[int, list[Merged]]:
    """Add merge requests and other branches. Return the merged requests by project."""
    merged: dict[int, list[Merged]] = {}
    for draft, count in zip(drafts, shares(MERGE_REQUESTS, [draft.weight for draft in drafts], 1), strict=True):
        begin, closed_issues = draft.moment(0.3), _closed_issues(rows, draft)
        last = draft.ended - 2 * _DAY
        moments = sorted(working_moment(rng, working_moment(rng, begin, last), last) for _ in range(count))
        plans = sorted((_plan(rows, rng, draft, moment, closed_issues) for moment in moments), key=lambda p: p.created)
        added = [_add(rows, rng, draft, number, plan) for number, plan in enumerate(plans, 1)]
        merged[draft.number] = [one for one in added if one is not None]
        for _ in range(2 if ME in draft.coders() else rng.choice((0, 0, 1))):
            _, _, source, words = _idea(rng, draft, draft.ended)
            start = working_moment(rng, draft.moment(0.8), draft.ended - _DAY)
            _add_branch(rows, rng, draft, source, someone(rng, draft.coders()), words, start)
            draft.branch_names.add(source)
    return merged


def _closed_issues(rows: TableRows, draft: Draft) -> list[int]:
    """Return closed issues that a merge request may have resolved: recent enough and open for at least a day."""
    begin = stamp(draft.moment(0.3))
    closed_issues = []
    for issue in draft.issues:
        row = rows.row("issues", issue)
        if row["closed"] and row["created"] > begin and row["closed"][:10] > row["created"][:10]:
            closed_issues.append(issue)
    return closed_issues


def _plan(
    rows: TableRows, rng: random.Random, draft: Draft, moment: datetime.datetime, closed_issues: list[int]
) -> _Plan:
    """Return a merge request opened at `moment`, or one that resolved an issue, with the dates of the issue."""
    if closed_issues and rng.random() < 0.3:
        return _resolving(rows, rng, draft, closed_issues.pop(rng.randrange(len(closed_issues))))
    title, body, source, words = _idea(rng, draft, moment)
    draft.branch_names.add(source)
    tail = fill_in(rng.choice(wordlists_history.MERGE_TAILS), words)
    body = f"{body}\n\n{tail}".strip()
    end = soon(rng, moment, 9)
    fresh = (NOW - moment).days < rng.uniform(5, 100) and draft.ended == NOW
    state = "open" if fresh or end >= draft.ended else rng.choices(("merged", "closed"), (3, 1))[0]
    return _Plan(title, body, source, words, moment, None if state == "open" else end, state, None)


def _resolving(rows: TableRows, rng: random.Random, draft: Draft, issue: int) -> _Plan:
    row = rows.row("issues", issue)
    opened, closed = (datetime.datetime.fromisoformat(row[key]) for key in ("created", "closed"))
    source = f"{row['number']}-{slug(row['title'])[:40].strip('-')}"
    draft.branch_names.add(source)
    body = f"Closes #{row['number']}."
    words = draft.words(rng, opened)
    created = working_moment(rng, opened, closed)
    return _Plan(f'Resolve "{row["title"]}"', body, source, words, created, closed, "merged", issue)


def _idea(rng: random.Random, draft: Draft, moment: datetime.datetime) -> tuple[str, str, str, Words]:
    """Return a title, a text and a branch that the project does not have yet, with their words."""
    while True:
        title, body = rng.choice(wordlists_history.MERGES)
        words = draft.words(rng, moment)
        filled = fill_in(title, words)
        source = slug(filled)
        if source not in draft.branch_names:
            return filled, fill_in(body, words), source, words


def _add(rows: TableRows, rng: random.Random, draft: Draft, number: int, plan: _Plan) -> Merged | None:
    coders = draft.coders()
    author = ME if ME in coders and plan.state == "open" and rng.random() < 0.2 else someone(rng, coders)
    by = None if plan.ended is None else rng.choice([a for a in coders if a != author] or [author])
    key = rows.add(
        "merge_requests", project=draft.number, number=number, title=plan.title, body=plan.body, source=plan.source,
        target=rows.row("projects", draft.number)["default_branch"], author=author,
        assignee=author if rng.random() < 0.5 else None, milestone=milestone_for(rng, draft, plan.ended),
        closes=plan.closes, state=plan.state, draft=int(plan.state == "open" and rng.random() < 0.2),
        created=stamp(plan.created), ended=plan.ended and stamp(plan.ended), ended_by=by,
    )  # fmt: skip
    if rng.random() < 0.6:
        kind = rng.choice(("bug", "feature", "performance", "maintenance", "documentation"))
        rows.add("merge_request_labels", merge_request=key, label=draft.labels[kind])
    _add_reviews(rows, rng, draft, key, plan)
    if plan.state == "merged" and by is not None and plan.ended is not None:
        if plan.closes:
            rows.row("issues", plan.closes)["closed_by"] = by
        return Merged(key, number, plan.source, author, by, plan.title, plan.words, plan.created - _DAY, plan.ended)
    if plan.state == "open" or rng.random() < 0.4:
        _add_branch(rows, rng, draft, plan.source, author, plan.words, plan.created - _DAY / 24)
    return None


def _add_reviews(rows: TableRows, rng: random.Random, draft: Draft, key: int, plan: _Plan) -> None:
    """Add reviewers, their approvals and comments."""
    row = rows.row("merge_requests", key)
    others = [account for account in draft.helpers() if account != row["author"]]
    reviewers = rng.sample(others, min(len(others), rng.choice((0, 1, 1, 1, 2, 2, 3))))
    if plan.state == "open" and ME in others and ME not in reviewers and rng.random() < 0.35:
        reviewers.append(ME)
    for account in reviewers:
        approved = rng.random() < (0.85 if plan.state == "merged" else 0.3) and (account != ME or bool(plan.ended))
        rows.add("reviewers", merge_request=key, account=account, approved=int(approved))
    count = min(int(rng.expovariate(0.6)), 7)
    end = plan.ended or min(plan.created + 20 * _DAY, NOW)
    moments = sorted(working_moment(rng, plan.created, end) for _ in range(count))
    for text, moment in zip(rng.sample(wordlists_history.REVIEWS, count), moments, strict=True):
        author = rng.choice([row["author"], *reviewers, *reviewers, rng.choice(others or [row["author"]])])
        add_comment(rows, rng, ("merge_request", key), author, fill_in(text, plan.words), stamp(moment))
    if plan.state == "closed" and plan.ended:
        text = rng.choice(wordlists_history.REFUSALS)
        add_comment(rows, rng, ("merge_request", key), row["ended_by"], text, stamp(plan.ended))


def _add_branch(
    rows: TableRows, rng: random.Random, draft: Draft, name: str, author: int, words: Words, start: datetime.datetime
) -> None:
    """Add a branch with one to three commits and its files."""
    started = max(start - _DAY, draft.moment(0.3))
    branch = rows.add(
        "branches", project=draft.number, name=name, origin=draft.branch, started=stamp(started), protected=0
    )
    blobs = dict(draft.blobs)
    last = min(started + 4 * _DAY, NOW)
    for moment in sorted(working_moment(rng, started, last) for _ in range(rng.choice((1, 1, 2, 2, 3)))):
        path, text, message = _edit(rows, rng, draft, blobs, words)
        before, blobs[path] = blobs[path], rows.add("blobs", content=text)
        added, deleted = count_changed_lines(rows.row("blobs", before)["content"], text)
        rows.add(
            "commits", branch=branch, sha=sha(rng), author=author, message=message, moment=stamp(moment),
            additions=added, deletions=deleted, merge_request=None,
            changes=json.dumps([[path, added, deleted, before, blobs[path], 0]], separators=(",", ":")),
        )  # fmt: skip
    for path, blob in blobs.items():
        rows.add("files", branch=branch, path=path, blob=blob)


def _edit(
    rows: TableRows, rng: random.Random, draft: Draft, blobs: dict[str, int], words: Words
) -> tuple[str, str, str]:
    """Return a file to change, its new text, and the commit message."""
    draw, part = rng.random(), words["part"]
    path = module_path(draft, part)
    if path in blobs and draw < 0.65:
        message = rng.choice([text for text in wordlists_history.COMMITS if "{part}" in text and "README" not in text])
        return path, one_more(rng, draft, part, rows.row("blobs", blobs[path])["content"]), fill_in(message, words)
    if draw < 0.85:
        path = "config/default.yaml"
        text = rows.row("blobs", blobs[path])["content"]
        setting = rng.choice(("timeout_seconds", "retries", "keep_days"))
        text = re.sub(rf"({setting}: )\d+", lambda match: f"{match[1]}{rng.randint(2, 120)}", text)
        return path, text, f"Change the default of {setting}"
    text = rows.row("blobs", blobs["README.md"])["content"]
    section = fill_in(
        "## {Part}\n\n{Part} looks at {things} and their {others}. Set `{option}` to change how.\n\n", words
    )
    return "README.md", text.replace("## Help", f"{section}## Help"), f"Mention {part} in the README"

"""Issues and their comments."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.code import wordlists_issues
from agentgym_envs.webarena.sites.code.seed_people import ACCOUNTS, ME
from agentgym_envs.webarena.sites.code.seed_projects import Draft
from agentgym_envs.webarena.sites.code.seed_tools import TableRows, Words, fill_in, shares, soon, working_moment
from agentgym_envs.webarena.sites.code.wordlists_issues import KINDS

ISSUES = 450
_DAY = datetime.timedelta(days=1)
_KIND_WEIGHTS = [weight for _, _, weight in KINDS]


def add_issues(rows: TableRows, rng: random.Random, drafts: Sequence[Draft]) -> None:
    """Add the issues of all projects with labels and comments, numbered by age."""
    for draft, count in zip(drafts, shares(ISSUES, [draft.weight for draft in drafts], 3), strict=True):
        titles = set[str]()
        start = draft.moment(0.05)
        for moment in sorted(working_moment(rng, start, draft.ended) for _ in range(count)):
            draft.issues.append(_add_issue(rows, rng, draft, moment, titles))


def someone(rng: random.Random, accounts: Sequence[int]) -> int:
    """Draw an account; those at the front are more likely."""
    return accounts[min(int(rng.expovariate(0.6)), len(accounts) - 1)]


def milestone_for(rng: random.Random, draft: Draft, closed: datetime.datetime | None) -> int | None:
    """Return a milestone: the next release after `closed`, or a future one for something that is open."""
    if closed is None:
        open_ones = [number for state, _, number in draft.milestones if state == "open"]
        return rng.choice(open_ones) if open_ones and rng.random() < 0.5 else None
    for state, due, number in draft.milestones:
        if state == "closed" and due is not None and due - 100 * _DAY < closed.date() <= due:
            return number if rng.random() < 0.75 else None
    return None


def add_comment(
    rows: TableRows, rng: random.Random, target: tuple[str, int], author: int, text: str, moment: str
) -> None:
    """Add a comment on an issue or merge request. `target` is, for example, ("issue", id)."""
    of = {"issue": None, "merge_request": None, target[0]: target[1]}
    rows.add("comments", **of, author=author, text=text, moment=moment)


def _add_issue(rows: TableRows, rng: random.Random, draft: Draft, moment: datetime.datetime, titles: set[str]) -> int:
    kind, templates, _ = rng.choices(KINDS, _KIND_WEIGHTS)[0]
    title, opening, words = _unused(rng, draft, templates, moment, titles)
    closed = _closing(rng, draft, kind, moment)
    assignee = _assignee(rng, draft, closed)
    coders = draft.coders()
    issue = rows.add(
        "issues", project=draft.number, number=len(draft.issues) + 1, title=title,
        body=_body(rng, kind, opening, words), author=_author(rng, draft), assignee=assignee,
        milestone=milestone_for(rng, draft, closed), state="closed" if closed else "open",
        confidential=int(rng.random() < 0.02), weight=rng.choice((1, 1, 2, 2, 3, 5, 8)) if rng.random() < 0.3 else None,
        due=_due(rng) if closed is None and rng.random() < 0.22 else None, created=stamp(moment),
        closed=closed and stamp(closed),
        closed_by=(assignee if assignee and rng.random() < 0.6 else someone(rng, coders)) if closed else None,
    )  # fmt: skip
    _add_labels(rows, rng, draft, issue, kind, words["part"])
    _add_comments(rows, rng, draft, issue, words)
    return issue


def _unused(
    rng: random.Random, draft: Draft, templates: Sequence[tuple[str, str]], moment: datetime.datetime, taken: set[str]
) -> tuple[str, str, Words]:
    """Return a title that is unique within the project, the start of the text, and the words of both."""
    while True:
        title, opening = rng.choice(templates)
        words = draft.words(rng, moment)
        filled = fill_in(title, words)
        if filled not in taken:
            taken.add(filled)
            return filled, fill_in(opening, words), words


def _body(rng: random.Random, kind: str, opening: str, words: Words) -> str:
    if kind == "bug" and rng.random() < 0.7:
        steps = sorted(rng.sample(range(len(wordlists_issues.STEPS)), rng.randint(2, 4)))
        listed = "\n".join(f"{target}. {wordlists_issues.STEPS[step]}" for target, step in enumerate(steps, 1))
        expected, actual = rng.choice(wordlists_issues.EXPECTED), rng.choice(wordlists_issues.ACTUAL)
        ends = f"**Expected:** {expected}\n\n**Actual:** {actual}"
        text = f"## Steps\n\n{listed}\n\n{ends}\n\n{rng.choice(wordlists_issues.SETTING)}"
    elif kind in ("bug", "performance"):
        text = rng.choice(wordlists_issues.SETTING)
    elif kind == "feature":
        text = rng.choice(wordlists_issues.PROPOSAL)
    else:
        return opening
    return f"{opening}\n\n{fill_in(text, words)}"


def _closing(rng: random.Random, draft: Draft, kind: str, moment: datetime.datetime) -> datetime.datetime | None:
    """Return the closing time, or None. Most issues are closed after some weeks, questions after some days."""
    days = 5 if kind == "question" else 24
    closed = soon(rng, moment, days)
    patient = rng.random() < (0.4 if kind == "feature" else 0.2)
    too_late = closed > draft.ended - _DAY / 2 or closed <= moment or (NOW - moment).days < rng.expovariate(1 / 90)
    return None if patient or too_late else closed


def _assignee(rng: random.Random, draft: Draft, closed: datetime.datetime | None) -> int | None:
    """Draw the assignee. Some open issues are assigned to the agent's account where it is a member."""
    if rng.random() < (0.25 if closed else 0.35):
        return None
    helpers = draft.helpers()
    if ME in helpers and closed is None and rng.random() < 0.15:
        return ME
    return someone(rng, helpers)


def _author(rng: random.Random, draft: Draft) -> int:
    draw = rng.random()
    if ME in draft.members and draw < 0.06:
        return ME
    return rng.choice(list(draft.members)) if draw < 0.5 else rng.randint(2, ACCOUNTS)


def _due(rng: random.Random) -> str:
    return (NOW + datetime.timedelta(days=rng.randint(-12, 55))).date().isoformat()


def _add_labels(rows: TableRows, rng: random.Random, draft: Draft, issue: int, kind: str, part: str) -> None:
    labels = [draft.labels[kind]] if rng.random() < 0.9 else []
    if part in draft.part_labels and rng.random() < 0.7:
        labels.append(draft.part_labels[part])
    if rng.random() < 0.33:
        labels.append(rng.choice(draft.more_labels))
    for label in labels:
        rows.add("issue_labels", issue=issue, label=label)


def _add_comments(rows: TableRows, rng: random.Random, draft: Draft, issue: int, words: Words) -> None:
    """Add comments until the issue is closed: few on most issues, many on some."""
    row = rows.row("issues", issue)
    opened = datetime.datetime.fromisoformat(row["created"])
    end = datetime.datetime.fromisoformat(row["closed"]) if row["closed"] else min(opened + 70 * _DAY, draft.ended)
    count = min(int(rng.expovariate(0.75)), 9)
    texts = [fill_in(text, words) for text in rng.sample(wordlists_issues.COMMENTS, count)]
    people = [row["author"], *rng.sample(list(draft.members), min(3, len(draft.members))), rng.randint(2, ACCOUNTS)]
    remarks = [(rng.choice(people), text) for text in texts]
    if row["assignee"] and rng.random() < 0.25:
        remarks.insert(
            rng.randint(0, len(remarks)), (row["assignee"], fill_in(rng.choice(wordlists_issues.TAKING), words))
        )
    if remarks and rng.random() < 0.12:
        remarks.append(_call(rows, rng, draft, row["author"], words))
    moments = sorted(working_moment(rng, opened, end) for _ in remarks)
    for (author, text), moment in zip(remarks, moments, strict=True):
        add_comment(rows, rng, ("issue", issue), author, text, stamp(moment))
    if row["closed"] and rng.random() < 0.4:
        text = fill_in(rng.choice(wordlists_issues.CLOSING), words)
        add_comment(rows, rng, ("issue", issue), row["closed_by"], text, row["closed"])


def _call(rows: TableRows, rng: random.Random, draft: Draft, author: int, words: Words) -> tuple[int, str]:
    """Return a comment that mentions a member, preferably the agent's account."""
    others = [account for account in draft.members if account != author]
    called = ME if ME in others and rng.random() < 0.4 else rng.choice(others or [author])
    caller = rng.choice([account for account in (author, *others) if account != called] or [author])
    user = rows.row("accounts", called)["user"]
    return caller, fill_in(rng.choice(wordlists_issues.CALLS), words | {"user": user})

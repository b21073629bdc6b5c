"""The rows of the code hosting site at the start of an episode."""

from __future__ import annotations

import datetime
import random
import sqlite3
from collections.abc import Sequence

from agentgym_envs.webarena.sites.clock import NOW, stamp
from agentgym_envs.webarena.sites.code.seed_history import add_heads, add_history
from agentgym_envs.webarena.sites.code.seed_issues import add_issues
from agentgym_envs.webarena.sites.code.seed_merges import add_merge_requests
from agentgym_envs.webarena.sites.code.seed_people import ACCOUNTS, ME, add_accounts, add_groups
from agentgym_envs.webarena.sites.code.seed_projects import Draft, add_projects
from agentgym_envs.webarena.sites.code.seed_tools import TableRows, fill_in, sha, working_moment
from agentgym_envs.webarena.sites.code.wordlists_history import COMMITS
from agentgym_envs.webarena.sites.world import SeedInputs

_FORKS = 3


def fill(database: sqlite3.Connection, seeds: SeedInputs) -> None:
    """Write the tables of the site."""
    rows, rng = TableRows(), seeds.rng
    add_accounts(rows, seeds)
    drafts = add_projects(rows, rng, add_groups(rows, rng))
    add_heads(rows, rng, drafts)
    add_issues(rows, rng, drafts)
    merged = add_merge_requests(rows, rng, drafts)
    add_history(rows, rng, drafts, merged)
    _add_stars(rows, rng, drafts)
    _add_forks(rows, rng, drafts)
    _add_todos(rows, rng)
    rows.write(database)


def _add_stars(rows: TableRows, rng: random.Random, drafts: Sequence[Draft]) -> None:
    """Add stars. Few projects have many, and the counts of the popular ones are unique."""
    public = [draft for draft in drafts if rows.row("projects", draft.number)["visibility"] != "private"]
    rng.shuffle(public)
    count = ACCOUNTS - rng.randint(4, 10)
    for draft in public:
        for account in sorted(rng.sample(range(1, ACCOUNTS + 1), count)):
            since = working_moment(rng, draft.moment(0.1), NOW)
            rows.add("stars", account=account, project=draft.number, since=stamp(since))
        count = max(min(count - 1, int(count * rng.uniform(0.83, 0.95))), 0)


def _add_forks(rows: TableRows, rng: random.Random, drafts: Sequence[Draft]) -> None:
    """Add forks of some projects by other accounts, each with a few commits."""
    public = [draft for draft in drafts if rows.row("projects", draft.number)["visibility"] == "public"]
    owners = rng.sample(range(2, ACCOUNTS + 1), 4 * _FORKS)
    for draft in rng.sample(public[:9], _FORKS):
        owner = next(account for account in owners if account not in draft.members)
        owners.remove(owner)
        _add_fork(rows, rng, draft, owner, working_moment(rng, draft.moment(0.6), draft.moment(0.95)))


def _add_fork(rows: TableRows, rng: random.Random, draft: Draft, owner: int, moment: datetime.datetime) -> None:
    copied = rows.row("projects", draft.number) | {"namespace": owner, "visibility": "public", "archived": 0}
    project = rows.add("projects", **copied | {"forked_from": draft.number, "created": stamp(moment)})
    rows.add("members", project=project, account=owner, role="Owner", since=stamp(moment))
    branch = rows.add(
        "branches", project=project, name=copied["default_branch"], origin=draft.branch, started=stamp(moment),
        protected=1,
    )  # fmt: skip
    for path, blob in draft.blobs.items():
        rows.add("files", branch=branch, path=path, blob=blob)
    for when in sorted(working_moment(rng, moment, NOW) for _ in range(rng.randint(1, 4))):
        words = draft.words(rng, when)
        changes = f'[["README.md",2,1,null,{draft.blobs["README.md"]},{rng.randint(1, 9)}]]'
        rows.add(
            "commits", branch=branch, sha=sha(rng), author=owner, message=fill_in(rng.choice(COMMITS), words),
            moment=stamp(when), additions=2, deletions=1, changes=changes, merge_request=None,
        )  # fmt: skip


def _add_todos(rows: TableRows, rng: random.Random) -> None:
    """Add to-dos for the agent's account: assigned issues, requested reviews and mentions."""
    todos: list[tuple[str, int, str, str, int]] = []
    for key, issue in enumerate(rows.tables["issues"], 1):
        if issue["assignee"] == ME and issue["author"] != ME and (issue["state"] == "open" or rng.random() < 0.2):
            todos.append((issue["created"], issue["author"], "assigned", "issue", key))
    for review in rows.tables["reviewers"]:
        request = rows.row("merge_requests", review["merge_request"])
        if review["account"] == ME and request["state"] == "open":
            todos.append((request["created"], request["author"], "review", "merge_request", review["merge_request"]))
    called = f"@{rows.row('accounts', ME)['user']} "
    for comment in rows.tables["comments"]:
        if called in comment["text"]:
            kind = "issue" if comment["issue"] else "merge_request"
            todos.append((comment["moment"], comment["author"], "mentioned", kind, comment[kind]))
    for moment, author, reason, kind, key in sorted(todos):
        row = rows.row(f"{kind}s", key)
        of = {"issue": None, "merge_request": None, kind: key}
        done = int(row["state"] != "open" or rng.random() < 0.25)
        rows.add("todos", account=ME, author=author, reason=reason, **of, done=done, moment=moment)

"""The history of default branches: commits, merges and releases."""

from __future__ import annotations

import datetime
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.code import wordlists_history
from agentgym_envs.webarena.sites.code.seed_issues import someone
from agentgym_envs.webarena.sites.code.seed_merges import Merged
from agentgym_envs.webarena.sites.code.seed_projects import Draft
from agentgym_envs.webarena.sites.code.seed_sources import add_files, module_path, release_notes, test_path
from agentgym_envs.webarena.sites.code.seed_tools import TableRows, Words, fill_in, sha, shares, working_moment

COMMITS = 640
"""Number on default branches, without merge commits and commits of merge requests."""
_ROOT = ("README.md", "LICENSE", ".gitignore", "CHANGELOG.md")
_MANIFESTS = ("pyproject.toml", "package.json", "go.mod", "Cargo.toml", "Makefile")
_Change = list[Any]


@dataclass
class _Event:
    """A planned commit. `begins` are the files that it adds; without them it changes existing files."""

    moment: datetime.datetime
    author: int
    message: str
    begins: Sequence[str] = ()
    paths: Sequence[str] | None = None
    merge_request: int | None = None
    version: str = ""


@dataclass
class _Lines:
    """The number of lines of each file in its first commit, computed backwards from the current text."""

    left: dict[str, int]
    beginnings: dict[str, _Change] = field(default_factory=dict)


def add_heads(rows: TableRows, rng: random.Random, drafts: Sequence[Draft]) -> None:
    """Add the default branches with their files."""
    for draft in drafts:
        add_files(rows, rng, draft)
        name = rows.row("projects", draft.number)["default_branch"]
        draft.branch = rows.add(
            "branches", project=draft.number, name=name, origin=None, started=stamp(draft.created), protected=1
        )
        for path, blob in draft.blobs.items():
            rows.add("files", branch=draft.branch, path=path, blob=blob)


def add_history(
    rows: TableRows, rng: random.Random, drafts: Sequence[Draft], merged: Mapping[int, Sequence[Merged]]
) -> None:
    """Add the commits of all default branches, with tags and releases."""
    for draft, count in zip(drafts, shares(COMMITS, [draft.weight for draft in drafts], 9), strict=True):
        events = [*_beginning(rng, draft, count), *_releases(rng, draft)]
        for merge in merged[draft.number]:
            events += _merge(rows, rng, draft, merge)
        lines = _Lines({path: _length(rows, blob) for path, blob in draft.blobs.items()})
        events.sort(key=lambda event: event.moment)
        keys = [_add_commit(rows, rng, draft, event, lines) for event in events]
        for path, change in lines.beginnings.items():
            change[1] = lines.left[path]
        _finish_commits(rows, keys)


def _beginning(rng: random.Random, draft: Draft, count: int) -> Iterator[_Event]:
    """Yield the first commit, commits that add the files, and everyday commits."""
    first = [path for path in draft.blobs if path in (*_ROOT, *_MANIFESTS)]
    others = [path for path in draft.blobs if path not in first]
    rng.shuffle(others)
    words = draft.words(rng, draft.created)
    yield _Event(draft.created, draft.owner, fill_in(rng.choice(wordlists_history.FIRST_COMMITS), words), first)
    bringing = min(len(others), max(3, count // 4))
    for index in range(bringing):
        begins = others[index::bringing]
        moment = working_moment(rng, draft.created, draft.moment(0.25))
        yield _Event(moment, someone(rng, draft.coders()[:2]), _brings(begins[0]), begins)
    for _ in range(count - bringing - 1):
        moment = working_moment(rng, draft.moment(0.03), draft.ended)
        message, paths = _everyday(rng, draft, draft.words(rng, moment))
        yield _Event(moment, someone(rng, draft.coders()), message, paths=paths)


def _brings(path: str) -> str:
    """Return the message of a commit that adds a file."""
    name = path.rsplit("/", 1)[-1]
    stem = name.split(".")[0].removeprefix("test_").removesuffix("_test")
    known = {
        ".pipeline.yml": "Run checks and tests for every commit", "default.yaml": "Add the default configuration",
        "guide.md": "Begin a guide", "CONTRIBUTING.md": "Say how to contribute",
        "release.sh": "Script to make releases",
    }  # fmt: skip
    if "test" in path:
        return f"Add tests of {stem}"
    return known.get(name, f"Add {stem}")


def _everyday(rng: random.Random, draft: Draft, words: Words) -> tuple[str, list[str]]:
    """Return a commit message and the files that it is about."""
    template = rng.choice(wordlists_history.COMMITS)
    part = words["part"]
    module = module_path(draft, part)
    manifest = next(path for path in draft.blobs if path in _MANIFESTS)
    for sign, path in (
        ("README", "README.md"), ("changelog", "CHANGELOG.md"), ("dependencies", manifest),
        (" test", test_path(draft, part)), ("Test ", test_path(draft, part)),
        ("ocument", "docs/guide.md"), ("escribe", "docs/guide.md"),
    ):  # fmt: skip
        if sign in template:
            return fill_in(template, words), [path]
    others = [module_path(draft, words["other_part"]), test_path(draft, part)]
    return fill_in(template, words), [module, *rng.sample(others, rng.choice((0, 0, 1, 2)))]


def _releases(rng: random.Random, draft: Draft) -> Iterator[_Event]:
    manifest = next(path for path in draft.blobs if path in _MANIFESTS)
    for moment, version in draft.releases:
        author = rng.choice(draft.coders()[:2])
        yield _Event(moment, author, f"Release {version}", paths=["CHANGELOG.md", manifest], version=version)


def _merge(rows: TableRows, rng: random.Random, draft: Draft, merge: Merged) -> Iterator[_Event]:
    """Yield the commits of a merge request, and the merge commit."""
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        moment = working_moment(rng, merge.start, merge.end)
        words = draft.words(rng, moment, merge.words["part"])
        message, paths = _everyday(rng, draft, words)
        yield _Event(moment, merge.author, message, paths=paths, merge_request=merge.key)
    target = rows.row("projects", draft.number)["default_branch"]
    message = f"Merge branch '{merge.source}' into '{target}'\n\n{merge.title}\n\n"
    message += f"See merge request {draft.path}/{draft.slug}!{merge.number}"
    yield _Event(merge.end, merge.by, message, paths=[], merge_request=merge.key)


def _add_commit(rows: TableRows, rng: random.Random, draft: Draft, event: _Event, lines: _Lines) -> int:
    changes: list[_Change] = []
    for path in event.begins:
        change = [path, 0, 0, None, draft.blobs[path], 1]
        lines.beginnings[path] = change
        changes.append(change)
    if not event.begins and (event.paths is None or event.paths):
        there = [path for path in event.paths or () if path in lines.beginnings]
        changes += [_touch(rng, draft, path, lines) for path in there or rng.sample(list(lines.beginnings), 1)]
    name = sha(rng)
    key = rows.add(
        "commits", branch=draft.branch, sha=name, author=event.author, message=event.message,
        moment=stamp(event.moment), additions=0, deletions=0, changes=changes, merge_request=event.merge_request,
    )  # fmt: skip
    if event.version:
        _add_release(rows, rng, draft, event, name)
    return key


def _touch(rng: random.Random, draft: Draft, path: str, lines: _Lines) -> _Change:
    """Return a change of some lines of a file. It never adds more lines than the current file has."""
    length = lines.left[path]
    added = 1 if path in _MANIFESTS else rng.choice((1, 1, 2, 3, 4, 5, 6, 8, 11))
    deleted = 1 if path in _MANIFESTS else rng.choice((0, 0, 1, added, added // 2, added + 1))
    if added - deleted > length // 4:
        deleted = added = min(added, length)
    lines.left[path] = length - added + deleted
    return [path, added, deleted, None, draft.blobs[path], rng.randint(1, max(1, length - added + 1))]


def _add_release(rows: TableRows, rng: random.Random, draft: Draft, event: _Event, name: str) -> None:
    notes = release_notes(rng, draft, event.moment)
    title = fill_in(rng.choice(wordlists_history.RELEASE_NAMES), draft.words(rng, event.moment))
    tag = rows.add(
        "tags", project=draft.number, name=f"v{event.version}", sha=name, message=f"Release {event.version}",
        created=stamp(event.moment),
    )  # fmt: skip
    rows.add(
        "releases", tag=tag, title=f"{event.version}: {title}" if title else f"{draft.name} {event.version}",
        notes=notes, author=event.author, moment=stamp(event.moment),
    )  # fmt: skip


def _finish_commits(rows: TableRows, keys: Sequence[int]) -> None:
    """Count the changed lines of each commit, and make one author the top contributor without a tie."""
    commits = [rows.row("commits", key) for key in keys]
    for commit in commits:
        changes = commit["changes"]
        commit["additions"], commit["deletions"] = (sum(change[index] for change in changes) for index in (1, 2))
        commit["changes"] = json.dumps(changes, separators=(",", ":"))
    (most, count), *rest = Counter(commit["author"] for commit in commits).most_common(2)
    if rest and rest[0][1] == count:
        next(c for c in reversed(commits) if c["author"] == rest[0][0] and not c["merge_request"])["author"] = most


def _length(rows: TableRows, blob: int) -> int:
    return int(rows.row("blobs", blob)["content"].count("\n"))

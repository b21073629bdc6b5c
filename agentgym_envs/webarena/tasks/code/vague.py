"""Tasks that name issues, merge requests and projects only roughly, and small changes of the account."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.code import parsing, phrases, queries, steps
from agentgym_envs.webarena.tasks.code.queries import MAINTAINER, ORIGIN, REPORTER, CodeTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import do
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

_WRITABLE = f"level >= {REPORTER} AND NOT archived"


def some_words(rng: Random, title: str, others: Sequence[str]) -> str | None:
    """Return three words of a title that no other title has, in lower case; None if there are none."""
    words = title.rstrip("?!.").split()
    starts = list(range(max(1, len(words) - 2)))
    for start in rng.sample(starts, len(starts)):
        part = " ".join(words[start : start + 3]).lower()
        if not any(part in other.lower() for other in others if other != title) and '"' not in part:
            return part
    return None


def like(words: str) -> re.Pattern[str]:
    """Return a pattern for titles with these words."""
    return re.compile(rf".*{re.escape(words)}.*", re.IGNORECASE)


def _open_like(page: PageReader, section: str, words: str) -> Iterator[str]:
    """Open the issue or merge request of the current project with these words in its title."""
    yield from steps.open_section(page, section)
    yield from page.turn_to("heading", like(words))
    yield page.click("link", like(words), after="Clear")


def _my_issues(world: World, rng: Random) -> Iterator[Params]:
    """Yield words of the issues that the agent has opened."""
    titles = queries.column(world, "SELECT title FROM issues WHERE author = 1")
    every = [row[0] for row in world.rows("SELECT title FROM code_issues WHERE author = 1")]
    for title in titles:
        if words := some_words(rng, title, every):
            yield {"words": words}


def _my_issue(world: World, words: str) -> dict[str, Any]:
    found = queries.select(world, "SELECT * FROM issues WHERE author = 1 AND instr(lower(title), ?)", words)
    return found[0]


def _checked(world: World, words: str) -> ExpectedResult:
    issue = _my_issue(world, words)
    wanted, other = ("open", "closed") if issue["state"] == "open" else ("closed", "open")
    return [says(wanted, others=[other]), EndsOn(queries.address(world, issue["path"], "issues", issue["number"]))]


def _check(page: PageReader, words: str, wrong: bool = False) -> Steps[str]:
    yield page.goto(f"{ORIGIN}/dashboard/issues")
    yield page.click("link", "Created by you")
    yield page.click("link", re.compile(r"All \(\d+\)"))
    yield page.type("Search in title and text", words, enter=True)
    yield page.click("link", like(words))
    closed = page.has("button", "Reopen issue")
    return "closed" if closed != wrong else "open"


check_issue = CodeTemplate(
    "code-check-issue",
    "information",
    "medium",
    since=2,
    intents=(
        'Open the issue that I created with "{words}" in its title, and tell me if it is open or closed.',
        'I once opened an issue with "{words}" in the title. Go to its page: is it still open, or closed? Answer with '
        "that one word.",
        'Check if my issue about "{words}" (part of its title) is open or closed. Stay on its page.',
    ),
    instances=_my_issues,
    expected=_checked,
    solution=_check,
    mistake=lambda page, words: _check(page, words, wrong=True),
)


def _assignable(world: World, rng: Random) -> Iterator[Params]:
    """Yield words of open issues, with members of their projects who are not the assignee."""
    every = queries.select(world, f"SELECT * FROM issues WHERE state = 'open' AND {_WRITABLE}")
    for row in rng.sample(every, min(60, len(every))):
        titles = [r[0] for r in world.rows("SELECT title FROM code_issues WHERE project = ?", row["project"])]
        query = """SELECT a.name FROM code_members m JOIN code_accounts a ON a.id = m.account
            WHERE m.project = ? AND a.id <> 1 AND a.id IS NOT ?"""
        people = [r[0] for r in world.rows(query, row["project"], row["assignee"])]
        words = some_words(rng, row["title"], titles)
        if words and people:
            yield {"project": row["path"].partition(" / ")[2], "words": words, "person": rng.choice(people)}


def _rough(world: World, table: str, project: str, words: str) -> dict[str, Any]:
    """Return the open issue or merge request of a project by its short name and words of the title."""
    query = f"SELECT * FROM {table} WHERE path LIKE '% / ' || ? AND instr(lower(title), ?) AND state = 'open'"
    return queries.select(world, query, project, words)[0]


def _open_named(page: PageReader, project: str) -> Iterator[str]:
    """Open a project of the agent by its short name."""
    yield page.type("Filter by name", project, enter=True)
    yield page.click("link", re.compile(rf".+ / {re.escape(project)}"))


assign_rough = CodeTemplate(
    "code-assign-rough",
    "change",
    "medium",
    since=2,
    intents=(
        'Assign the open issue regarding "{words}" in {project} to {person}.',
        '{person} should take care of the open issue about "{words}" of my project {project}. Assign it.',
        'In {project}, one of the open issues has "{words}" in its title. Make {person} its assignee.',
    ),
    instances=_assignable,
    expected=lambda world, project, words, person: Updated(
        "code_issues",
        {"id": _rough(world, "issues", project, words)["id"]},
        {"assignee": queries.account(world, person)},
    ),
    solution=[
        do(_open_named, "{project}"),
        do(_open_like, "Issues", "{words}"),
        do(steps.set_field, "Assignee", "{person}"),
    ],
)


def _open_requests(world: World, rng: Random) -> Iterator[Params]:
    for row in queries.select(world, "SELECT * FROM requests WHERE state = 'open' AND NOT archived AND level > 0"):
        titles = [r[0] for r in world.rows("SELECT title FROM code_merge_requests WHERE project = ?", row["project"])]
        if words := some_words(rng, row["title"], titles):
            yield {"project": row["path"].partition(" / ")[2], "words": words, "text": rng.choice(phrases.COMMENTS)}


comment_on_request = CodeTemplate(
    "code-comment-request",
    "change",
    "medium",
    since=2,
    intents=(
        'Post "{text}" for the open merge request related to "{words}" in the project {project}.',
        'Comment on the open merge request of {project} with "{words}" in its title: "{text}"',
        'My project {project} has an open merge request about "{words}". Write "{text}" below it.',
    ),
    instances=_open_requests,
    expected=lambda world, project, words, text: Added(
        "code_comments",
        {"merge_request": _rough(world, "requests", project, words)["id"], "issue": None, "author": 1, "text": text},
    ),
    solution=[
        do(_open_named, "{project}"),
        do(_open_like, "Merge requests", "{words}"),
        do(steps.add_comment, "{text}"),
    ],
)


def _to_review(world: World, rng: Random) -> Iterator[Params]:
    """Yield words of open merge requests that the agent is asked to review."""
    query = """SELECT r.* FROM requests r JOIN code_reviewers v ON v.merge_request = r.id
        WHERE v.account = 1 AND r.state = 'open' AND NOT r.archived AND r.author <> 1"""
    found = queries.select(world, query)
    for row in found:
        if words := some_words(rng, row["title"], [one["title"] for one in found]):
            yield {"words": words}


def _replied(world: World, words: str) -> Added:
    query = """SELECT r.* FROM requests r JOIN code_reviewers v ON v.merge_request = r.id
        WHERE v.account = 1 AND instr(lower(r.title), ?)"""
    row = queries.select(world, query, words)[0]
    last = world.value(
        "SELECT author FROM code_comments WHERE merge_request = ? ORDER BY moment DESC, id DESC", row["id"]
    )
    user = world.value("SELECT user FROM code_accounts WHERE id = ?", row["author"])
    text = "Thank you" if last == row["author"] else re.compile(rf"@{re.escape(user)}\W*")
    return Added("code_comments", {"merge_request": row["id"], "issue": None, "author": 1, "text": text})


def _reply(page: PageReader, words: str, wrong: bool = False) -> Steps[None]:
    yield page.goto(f"{ORIGIN}/dashboard/merge_requests")
    yield page.click("link", re.compile("(Review|For you to review|Reviews).*"))
    yield page.click("link", like(words))
    address, author, people = page.url, parsing.author(page), parsing.commenters(page)
    responded = bool(people) and people[-1] == author
    if responded != wrong:
        yield from steps.add_comment(page, "Thank you")
        return
    yield page.click("link", author)
    user = page.search(r"^@(\S+) ·")[0]
    yield page.goto(address)
    yield from steps.add_comment(page, f"@{user}")


reply_or_remind = CodeTemplate(
    "code-reply-or-remind",
    "change",
    "medium",
    since=2,
    intents=(
        'Go to the open merge request about "{words}" that I have to review. If the last comment is by its author, '
        'reply "Thank you"; otherwise remind the author with a comment that is only @ and the user name.',
        'I was asked to review the open merge request with "{words}" in its title. Did its author write the last '
        'comment? Then comment "Thank you". If not, comment with nothing but @ and the author\'s user name.',
        'Find the merge request on "{words}" that waits for my review. Comment "Thank you" if the author had the last '
        "word there, and otherwise just @ followed by the user name of the author.",
    ),
    instances=_to_review,
    expected=_replied,
    solution=_reply,
    mistake=lambda page, words: _reply(page, words, wrong=True),
)


def _described(world: World, rng: Random) -> Iterator[Params]:
    """Yield what the agent's projects are about, with people who are no members."""
    query = f"SELECT * FROM projects WHERE level >= {MAINTAINER} AND NOT archived"
    for row in queries.select(world, query):
        for person in rng.sample(_outsiders(world, row["id"]), 4):
            yield {"about": row["description"], "person": person}


def _outsiders(world: World, project: int) -> list[str]:
    query = """SELECT name FROM code_accounts a WHERE id <> 1
        AND NOT EXISTS (SELECT 1 FROM roles r WHERE r.project = ? AND r.account = a.id)"""
    return [str(name) for name in queries.column(world, query, project)]


def _by_description(world: World, about: str) -> int:
    query = f"SELECT id FROM projects WHERE description = ? AND level >= {MAINTAINER}"
    return int(queries.column(world, query, about)[0])


def _open_described(page: PageReader, about: str) -> Iterator[str]:
    """Open the project with this description from the list of the agent's projects."""
    while about not in page.texts():
        yield page.click("link", "Next")
    texts = page.texts()
    before = texts[: texts.index(about)]
    yield page.click("link", next(text for text in reversed(before) if " / " in text))


invite_to_described = CodeTemplate(
    "code-invite-to-described",
    "change",
    "medium",
    since=2,
    intents=(
        '{person} wants to see a project of mine. I do not know its name, but it is described as "{about}" Please '
        "invite them there as a guest.",
        'One of my projects is for this: "{about}" Add {person} to its members, with the role Guest.',
        'Let {person} look at the project that I describe with the words "{about}" A guest may do that, so invite them '
        "as one.",
    ),
    instances=_described,
    expected=lambda world, about, person: Added(
        "code_members",
        {"project": _by_description(world, about), "account": queries.account(world, person), "role": "Guest"},
    ),
    solution=[do(_open_described, "{about}"), do(steps.invite, "{person}", "Guest")],
)

_TOPICS = (
    "dark mode",
    "a plugin system",
    "support for proxies",
    "keyboard shortcuts",
    "packages for Debian",
    "an offline mode",
    "single sign-on",
    "right-to-left scripts",
)


def _about_topics(world: World, rng: Random) -> Iterator[Params]:
    query = "SELECT path FROM projects WHERE NOT archived AND forked_from IS NULL AND level > 0"
    for path in queries.column(world, query):
        for topic in rng.sample(_TOPICS, 3):
            yield {"project": path.partition(" / ")[2], "topic": topic}


def _issue_about(world: World, project: str, topic: str) -> Added:
    number = queries.column(world, "SELECT id FROM projects WHERE path LIKE '% / ' || ? AND level > 0", project)[0]
    title = re.compile(rf".*{re.escape(topic)}.*", re.IGNORECASE)
    return Added("code_issues", {"project": number, "title": title, "author": 1, "state": "open"})


def _open_issue(page: PageReader, project: str, title: str) -> Iterator[str]:
    yield from _open_named(page, project)
    yield from steps.open_section(page, "Issues")
    yield page.click("link", "New issue")
    yield page.type("Title", title)
    yield page.click("button", "Create issue")


issue_in_own_words = CodeTemplate(
    "code-issue-own-words",
    "change",
    "medium",
    since=2,
    intents=(
        "Open a new issue in my project {project} to discuss the implementation of {topic}. Name the topic in the "
        "title.",
        "Create an issue that asks about plans for {topic} in {project}; the title should mention {topic}.",
        "In {project}, start an issue on {topic} in your own words, with these words somewhere in the title.",
    ),
    instances=_about_topics,
    expected=_issue_about,
    solution=[do(_open_issue, "{project}", "Discuss the implementation of {topic}")],
)

"""Tasks that repeat an action for several posts, or join several actions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Expected
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import EDITED, ME, NOTIFICATIONS, PHRASES, ForumTemplate
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader, texts_of
from agentgym_envs.webarena.tasks.steps import ALL_PARAMETERS, answer, click, do, given, type_text
from agentgym_envs.webarena.tasks.template import Params

_AGE = f"(julianday('{stamp()}') - julianday(created) + 2)"


def _trending(world: World, board: str) -> str:
    """Return the title of the first post of a board under "Hot", pinned ones aside."""
    query = f"SELECT title FROM posts WHERE board_name = ? AND NOT pinned ORDER BY score / ({_AGE} * {_AGE}) DESC"
    return str(queries.column(world, query, board)[0])


def _unsubscribed(world: World) -> list[Params]:
    mine = "SELECT board FROM forum_subscriptions WHERE account = 1"
    return [*queries.select(world, f"SELECT name AS board FROM forum_boards WHERE id NOT IN ({mine})")]


def _open_trending(page: PageReader, board: str) -> Iterator[str]:
    yield from steps.open_board(page, board)
    pinned = [steps.heading(line) for line in page.lines("article") if "Pinned" in texts_of(line)]
    yield page.click("link", next(post.title for post in steps.listed(page) if post.title not in pinned))


trending_and_subscribe = ForumTemplate(
    "forum-trending-subscribe",
    "change",
    "medium",
    since=2,
    intents=(
        "Subscribe to the board {board}, and end on the thread that is trending there: the first under Hot that is "
        "not pinned.",
        "Open the trending thread of {board} (at the top of its hot posts, pinned ones aside), after subscribing to "
        "the board.",
        "I want to follow {board}. Subscribe to it, then show me its hottest post that is not pinned.",
    ),
    instances=_unsubscribed,
    expected=lambda world, board: [
        Added("forum_subscriptions", {"account": ME, "board": queries.board(world, board)}),
        EndsOn(queries.post_url(world, _trending(world, board))),
    ],
    solution=[do(steps.open_board, "{board}"), click("button", "Subscribe"), do(_open_trending, "{board}")],
    mistake=[do(steps.open_board, "{board}"), do(_open_trending, "{board}")],
)

_SIDEBARS = ("Beginners", "Questions", "Photos", "Meetings", "Second hand", "Links", "Courses", "Tools")
_NEW = (
    ("beekeeping", "Hives, honey and stings."),
    ("scifi", "A wild place for people who look up."),
    ("karaoke", "For those who sing when nobody asked."),
    ("orchestra", "Strings, brass and borrowed scores."),
    ("tabletennis", "Small balls, loud shoes."),
    ("sourdough", "Flour, water and patience."),
    ("geocaching", "Hidden boxes and wet feet."),
    ("bonsai", "Very small trees, very long plans."),
)


def _sidebar_instances(rng: Random) -> Iterator[Params]:
    for board, text in _NEW:
        for _ in range(3):
            one, two, three = rng.sample(_SIDEBARS, 3)
            yield {"board": board, "text": text, "one": one, "two": two, "three": three}


def _board_with_sidebar(world: World, board: str, text: str, one: str, two: str, three: str) -> list[Expected]:
    number = 1 + int(world.value("SELECT MAX(id) FROM forum_boards"))
    sidebar = re.compile(rf".*{one}.*{two}.*{three}.*", re.DOTALL | re.IGNORECASE)
    return [
        Added("forum_boards", {"id": number, "name": board, "description": text, "sidebar": sidebar}),
        Added("forum_moderators", {"board": number, "user": ME}),
        Added("forum_subscriptions", {"board": number, "account": ME}),
    ]


board_with_sidebar = ForumTemplate(
    "forum-board-with-sidebar",
    "change",
    "medium",
    since=2,
    intents=(
        'Open a new board named {board} with the description "{text}", and list {one}, {two} and {three} in its '
        "sidebar, in this order.",
        'Create the board {board}. Description: "{text}". Its sidebar has these entries: {one}, {two}, {three}.',
        'The forum needs the board {board}; describe it as "{text}" In the sidebar, name {one}, {two} and {three}, one '
        "after the other.",
    ),
    instances=_sidebar_instances,
    expected=_board_with_sidebar,
    solution=[
        click("link", "Open a board"),
        type_text("Name", "{board}"),
        type_text("Title", "{board}"),
        type_text("Description", "{text}"),
        type_text("Sidebar", "{one}, {two}, {three}"),
        click("button", "Open the board"),
    ],
    mistake=[
        click("link", "Open a board"),
        type_text("Name", "{board}"),
        type_text("Title", "{board}"),
        type_text("Description", "{text}"),
        click("button", "Open the board"),
    ],
)


def _votable_tops(world: World) -> Iterator[Params]:
    """Yield boards whose best posts have no vote by the account."""
    for board in queries.boards(world):
        for count in (1, 2, 3, 5):
            if not any(row["voted"] or row["author"] == ME for row in queries.by_score(world, board)[:count]):
                yield {"board": board, "count": count}


def _vote(page: PageReader, titles: Sequence[str], button: str) -> Iterator[str]:
    for title in titles:
        yield page.click_in(title, "button", button)


downvote_top = ForumTemplate(
    "forum-downvote-top",
    "change",
    "medium",
    since=2,
    intents=(
        "Downvote the posts of the board {board} with the highest scores of all time: the best {count}.",
        "Thumbs down for the top {count} ever in {board}.",
        "In {board}, give a downvote to each of the first {count} of the list of top posts of all time.",
    ),
    instances=_votable_tops,
    expected=lambda world, board, count: [
        change for row in queries.by_score(world, board)[:count] for change in queries.vote_changes("post", row, -1)
    ],
    solution=[
        do(steps.open_board, "{board}", "Top"),
        do(_vote, given(lambda page, count: [post.title for post in steps.listed(page)][:count]), "Downvote"),
    ],
    mistake=[
        do(steps.open_board, "{board}", "Top"),
        do(_vote, given(lambda page, count: [post.title for post in steps.listed(page)][: count + 1]), "Downvote"),
    ],
)


def _active_users(world: World) -> list[Params]:
    """Return users with two to six posts in a board, none of them with a vote by the account."""
    query = (
        "SELECT board_name AS board, author_name AS user FROM posts WHERE author <> 1 "
        "GROUP BY board, author HAVING COUNT(*) BETWEEN 2 AND 6 AND MAX(voted) = 0"
    )
    known = set(queries.others(world))
    return [row for row in queries.select(world, query) if row["user"] in known]


def _by_user(world: World, board: str, user: str, value: int) -> list[Expected]:
    query = "SELECT * FROM posts WHERE board_name = ? AND author_name = ?"
    rows = world.rows(queries._TABLES + query, board, user)
    return [change for row in rows for change in queries.vote_changes("post", row, value)]


def _vote_by_user(page: PageReader, user: str, board: str, button: str) -> Iterator[str]:
    """Vote for all posts of a user in a board, on all pages of the profile."""
    yield from steps.open_user(page, user)
    while True:
        lines = [texts for texts in map(texts_of, page.lines("article")) if board in texts[texts.index("in") + 1 :][:1]]
        yield from _vote(page, [_title(texts) for texts in lines], button)
        if not page.has("link", "Next"):
            return
        yield page.click("link", "Next")


like_all_of = ForumTemplate(
    "forum-like-all-of",
    "change",
    "medium",
    since=2,
    intents=(
        "Upvote everything that {user} has posted in the board {board}.",
        "I like what {user} writes in {board}: give an upvote to each of those posts, and to no others.",
        "Like all submissions by {user} in {board}.",
    ),
    instances=_active_users,
    expected=lambda world, board, user: _by_user(world, board, user, 1),
    solution=[do(_vote_by_user, "{user}", "{board}", "Upvote")],
)

dislike_all_of = ForumTemplate(
    "forum-dislike-all-of",
    "change",
    "medium",
    since=2,
    intents=(
        "Downvote everything that {user} has posted in the board {board}.",
        "Dislike all submissions by {user} in {board}, and no others.",
        "The posts by {user} in {board} are all wrong. Give a downvote to each of them.",
    ),
    instances=_active_users,
    expected=lambda world, board, user: _by_user(world, board, user, -1),
    solution=[do(_vote_by_user, "{user}", "{board}", "Downvote")],
)


def _title(texts: Sequence[str]) -> str:
    """Return the title in the texts of a listed post: the text that comes twice."""
    return next(text for text, after in pairwise(texts) if text == after)


_LINES = (
    "EDIT: This news aged well.",
    "EDIT: Solved, thank you all.",
    "EDIT: More on this next week.",
    "EDIT: I was wrong about the date.",
    "EDIT: The cast is amazing!",
)


def _own_texts(world: World, rng: Random) -> Iterator[Params]:
    """Yield three words of the title of each own post with a text, if no other own title has them."""
    titles = queries.column(world, "SELECT title FROM posts WHERE author = 1 AND body <> ''")
    every = queries.column(world, "SELECT title FROM posts WHERE author = 1")
    for title in titles:
        words = title.rstrip("?!.").split()
        starts = range(max(1, len(words) - 2))
        for start in rng.sample(starts, min(2, len(starts))):
            part = " ".join(words[start : start + 3]).lower()
            if sum(part in other.lower() for other in every) == 1 and '"' not in part:
                yield {"words": part, "line": rng.choice(_LINES)}


def _line_added(world: World, words: str, line: str) -> Expected:
    query = "SELECT title, body FROM posts WHERE author = 1 AND instr(lower(title), ?)"
    title, body = queries.select(world, query, words)[0].values()
    return queries.post_updated(world, title, body=re.compile(rf"{re.escape(body)}\s+{re.escape(line)}"), **EDITED)


def _open_own(page: PageReader, words: str) -> Iterator[str]:
    yield from steps.open_account_menu(page, "My profile")
    yield from page.turn_to("link", re.compile(rf".*{re.escape(words)}.*", re.IGNORECASE))
    yield page.click("link", re.compile(rf".*{re.escape(words)}.*", re.IGNORECASE))


def _append(page: PageReader, line: str) -> Iterator[str]:
    yield page.click("link", "Edit")
    text = page.find("textbox", "Text").properties.get("value", "")
    yield page.type("Text", f"{text}\n\n{line}")
    yield page.click("button", "Save changes")


append_line = ForumTemplate(
    "forum-append-line",
    "change",
    "medium",
    since=2,
    intents=(
        'Edit my post about "{words}": add a line at the end of its text that says "{line}"',
        'I once posted something with "{words}" in the title. Append "{line}" to its text, and leave the rest.',
        'At the end of the text of my post on "{words}", add the line "{line}"',
    ),
    instances=_own_texts,
    expected=_line_added,
    solution=[do(_open_own, "{words}"), do(_append, "{line}")],
    mistake=[do(_open_own, "{words}"), do(steps.add_comment_if_open, "{line}")],
)


def _flaired_tops(world: World) -> list[Params]:
    """Return boards in which some of the ten best posts have a flair, and others have not."""
    query = (
        "SELECT t.board_name AS board, f.name AS flair FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY board ORDER BY "
        "score DESC) AS place FROM posts) t JOIN forum_flairs f ON f.id = t.flair WHERE place <= 10 "
        "GROUP BY 1, 2 HAVING COUNT(*) BETWEEN 1 AND 4"
    )
    return [*queries.select(world, query)]


def _flaired(world: World, board: str, flair: str) -> Says:
    tops = queries.by_score(world, board)[:10]
    number = queries.flair(world, queries.board(world, board), flair)
    names = [row["title"] for row in tops if row["flair"] == number]
    return says(*names, others=[row["title"] for row in tops if row["title"] not in names])


def _with_flair(page: PageReader, flair: str, most: int = 10) -> str:
    lines = page.lines("article")[:most]
    return "\n".join(steps.heading(line) for line in lines if flair in texts_of(line)) or "none"


top_with_flair = ForumTemplate(
    "forum-top-with-flair",
    "information",
    "easy",
    since=2,
    intents=(
        'Which of the ten posts with the highest scores in the board {board} have the flair "{flair}"? Give their '
        "titles.",
        'Among the top 10 posts of all time in {board}, list the titles of those that are marked as "{flair}".',
        'Look at the best ten posts of {board} by score. Name all that carry the flair "{flair}".',
    ),
    instances=_flaired_tops,
    expected=_flaired,
    solution=[do(steps.open_board, "{board}", "Top"), answer(_with_flair)],
    mistake=answer(lambda page: "\n".join(post.title for post in steps.listed(page))),
)


def _on_each(page: PageReader, titles: Sequence[str], text: str) -> Iterator[str]:
    for title in titles:
        board = page.url
        yield page.click("link", title)
        yield from steps.add_comment(page, text)
        if title != titles[-1]:
            yield page.goto(board)


def _open_newest(world: World) -> Iterator[Params]:
    """Yield boards whose newest posts are all open to comments."""
    for board in queries.boards(world):
        for count in (3, 4):
            if not any(row["locked"] or row["veiled"] for row in queries.newest(world, board, count)):
                yield {"board": board, "count": count}


answer_each_newest = ForumTemplate(
    "forum-answer-each-newest",
    "change",
    "hard",
    since=2,
    intents=(
        'Comment on each of the {count} newest posts in the board {board}: "{text}"',
        'Leave the same comment, "{text}", under the {count} most recent posts of {board}.',
        'Open the {count} posts of {board} that came last, one after the other, and comment on each: "{text}"',
    ),
    instances=choose(_open_newest, text=PHRASES),
    expected=lambda world, board, count, text: [
        queries.comment_added(world, row["title"], text) for row in queries.newest(world, board, count)
    ],
    free=NOTIFICATIONS,
    solution=[
        do(steps.open_board, "{board}", "New"),
        do(_on_each, given(lambda page, count: [post.title for post in steps.listed(page)][:count]), "{text}"),
    ],
    mistake=[
        do(steps.open_board, "{board}", "New"),
        do(_on_each, given(lambda page: [steps.listed(page)[0].title]), "{text}"),
    ],
)


def _top_authors(world: World) -> Iterator[Params]:
    """Yield boards whose three best posts are by different users, none of them blocked."""
    known = set(queries.others(world))
    for board in queries.boards(world):
        names = [row["author_name"] for row in queries.by_score(world, board)[:3]]
        if len(set(names)) == 3 and set(names) <= known:
            yield {"board": board}


def _write_to_each(page: PageReader, names: Sequence[str], params: Params) -> Iterator[str]:
    for name in names:
        yield from steps.send_message(page, name, params["subject"], params["text"])


message_top_authors = ForumTemplate(
    "forum-message-top-authors",
    "change",
    "hard",
    since=2,
    intents=(
        "Write a private message to each author of the three posts with the highest scores in the board {board}. "
        'Subject: "{subject}". Message: "{text}"',
        'Who wrote the three best posts of {board} by score? Send all three a message called "{subject}" that says '
        '"{text}"',
        "Send the same private message to the authors of the top three posts of all time in {board}: subject "
        '"{subject}", text "{text}"',
    ),
    instances=choose(_top_authors, subject=queries.TITLES, text=PHRASES),
    expected=lambda world, board, subject, text: [
        change
        for row in queries.by_score(world, board)[:3]
        for change in queries.message_added(world, row["author_name"], subject, text)
    ],
    solution=[
        do(steps.open_board, "{board}", "Top"),
        do(_write_to_each, given(lambda page: [post.author for post in steps.listed(page)[:3]]), ALL_PARAMETERS),
    ],
    mistake=[
        do(steps.open_board, "{board}", "New"),
        do(_write_to_each, given(lambda page: [post.author for post in steps.listed(page)[:3]]), ALL_PARAMETERS),
    ],
)

"""Questions that one or two pages answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ForumTemplate, column, rows, select
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader, texts_of
from agentgym_envs.webarena.tasks.steps import answer, do, expand
from agentgym_envs.webarena.tasks.template import Params

_FACTS = {"joining date": "Joined", "karma of posts": "Karma of posts", "karma of comments": "Karma of comments"}
"""Facts of a profile, with their labels."""


def _other_author(page: PageReader) -> str:
    author = steps.author(page)
    return next(comment.author for comment in steps.comments(page) if comment.author != author)


post_author = ForumTemplate(
    "forum-post-author",
    "information",
    "easy",
    intents=(
        'Who wrote the post "{title}"?',
        'Tell me the name of the user who posted "{title}" in the forum.',
        'By whom was the post "{title}" written? Give the user name.',
    ),
    instances=rows(
        "SELECT DISTINCT title FROM comments WHERE author <> poster AND poster <> 1 AND title NOT LIKE '%''%'"
    ),
    expected=lambda world, params, title: queries.says_users(world, params, queries.post(world, title)["author_name"]),
    solution=[do(steps.open_post, "{title}"), answer(steps.author)],
    mistake=answer(_other_author),
)

comment_count = ForumTemplate(
    "forum-comment-count",
    "information",
    "easy",
    intents=(
        'How many comments does the post "{title}" have?',
        'Count the comments on "{title}".',
        'I want to know how much was written about the post "{title}": how many comments are there?',
    ),
    instances=rows("SELECT title FROM posts WHERE comments <> score AND comments > 2"),
    expected=lambda world, title: says(queries.post(world, title)["comments"]),
    solution=[do(steps.open_post, "{title}"), answer(lambda page: page.search(r"^(\d+) comments$")[0])],
    mistake=answer(steps.score),
)

_PERIODS = {"all time": "", "the last year": "2025-03-16 10:30", "the last month": "2026-02-14 10:30"}
"""Periods with their beginnings."""


def _busy_periods(world: World) -> list[Params]:
    """Return boards and periods with several posts."""
    query = "SELECT board_name AS board, ?1 AS period FROM posts WHERE created > ?2 GROUP BY 1 HAVING COUNT(*) > 2"
    return [row for period, start in _PERIODS.items() for row in select(world, query, period, start)]


def _top_title(world: World, board: str, period: str) -> Says:
    posts = queries.by_score(world, board)
    best = next(row["title"] for row in posts if row["created"] >= _PERIODS[period])
    return says(best, others=[row["title"] for row in posts if row["title"] not in best])


def _open_top(page: PageReader, board: str, period: str) -> Iterator[str]:
    yield from steps.open_board(page, board)
    yield from open_top_here(page, period)


def open_top_here(page: PageReader, period: str) -> Iterator[str]:
    """Open the top posts of a period of the board on the page."""
    yield steps.open_tab(page, "Top")
    if period != "all time":
        yield page.choose("Top of", period)


top_post = ForumTemplate(
    "forum-top-post",
    "information",
    "medium",
    intents=(
        "What is the title of the post with the highest score in the board {board}, over {period}?",
        "Which post of {board} has the highest score ({period})? Tell me its title.",
        "In {board}, find the best rated post of {period} and give me its title.",
    ),
    instances=_busy_periods,
    expected=_top_title,
    solution=[do(_open_top, "{board}", "{period}"), answer(lambda page: steps.listed(page)[0].title)],
    mistake=answer(lambda page: steps.listed(page)[1].title),
)


def _most_commented_title(world: World, board: str) -> Says:
    titles = column(world, "SELECT title FROM posts WHERE board_name = ?", board)
    best = queries.most_commented(world, board)
    return says(best, others=[title for title in titles if title not in best])


most_commented = ForumTemplate(
    "forum-most-commented",
    "information",
    "medium",
    intents=(
        "Which post of the board {board} has the most comments? Give me its title.",
        "What is the title of the most discussed post in {board}?",
        "Find the post with the longest discussion in {board} and tell me what it is called.",
    ),
    instances=lambda world: [
        {"board": board} for board in queries.boards(world) if queries.most_commented(world, board)
    ],
    expected=_most_commented_title,
    solution=[do(steps.open_board, "{board}", "Most commented"), answer(lambda page: steps.listed(page)[0].title)],
    mistake=answer(lambda page: steps.listed(page)[1].title),
)


def _clear_newest(world: World) -> list[Params]:
    """Return boards whose two newest posts have different authors."""
    pairs = ((board, queries.newest(world, board, 2)) for board in queries.boards(world))
    return [{"board": board} for board, (first, second) in pairs if first["author"] != second["author"]]


newest_author = ForumTemplate(
    "forum-newest-author",
    "information",
    "easy",
    intents=(
        "Who wrote the newest post in the board {board}?",
        "Which user was the last to post something in {board}?",
        "Tell me the author of the most recent post of {board}.",
    ),
    instances=_clear_newest,
    expected=lambda world, params, board: queries.says_users(
        world, params, queries.newest(world, board)[0]["author_name"]
    ),
    solution=[do(steps.open_board, "{board}", "New"), answer(lambda page: steps.listed(page)[0].author)],
    mistake=answer(lambda page: steps.listed(page)[1].author),
)

top_commenter = ForumTemplate(
    "forum-top-commenter",
    "information",
    "medium",
    intents=(
        'Who wrote the comment with the highest score on the post "{title}"? Replies count too.',
        'Of all comments on "{title}", replies included, which has the highest score? Name its author.',
        'Whose comment has the highest score in the thread "{title}" (replies included)?',
    ),
    instances=lambda world: [{"title": title} for title in queries.top_comment_authors(world)],
    expected=lambda world, params, title: queries.says_users(
        world, params, queries.top_comment(world, title)["author_name"]
    ),
    solution=[
        do(steps.open_post, "{title}"),
        do(steps.all_comments),
        answer(lambda found: max(found, key=lambda comment: comment.score).author),
    ],
    mistake=answer(lambda found: min(found, key=lambda comment: comment.score).author),
)

comment_text = ForumTemplate(
    "forum-comment-of",
    "information",
    "easy",
    intents=(
        'What did {user} write in their comment on the post "{title}"?',
        'Quote the comment of the user {user} on "{title}".',
        'In the thread "{title}", find the comment by {user} and tell me what it says.',
    ),
    instances=rows(
        "SELECT author_name AS user, title FROM lone c WHERE length(body) > 35 AND author <> 1 AND comments < 15 "
        "AND EXISTS (SELECT 1 FROM comments o WHERE o.post = c.post AND length(o.body) < length(c.body))",
        sample=60,
    ),
    expected=lambda world, title, user: says(
        queries.comment(world, title, user)["body"],
        others=column(world, "SELECT body FROM comments WHERE title = ? AND LENGTH(body) > 20", title),
    ),
    solution=[
        do(steps.open_post, "{title}"),
        do(steps.all_comments),
        answer(lambda found, user: next(comment.text for comment in found if comment.author == user)),
    ],
    mistake=answer(lambda found: min((comment.text for comment in found), key=len)),
)


def _moderators(page: PageReader) -> list[str]:
    below = takewhile(lambda element: element.role != "contentinfo", page.elements_after("Moderators"))
    return [element.name for element in below if element.role == "link"]


board_moderators = ForumTemplate(
    "forum-moderators",
    "information",
    "easy",
    intents=(
        "Who are the moderators of the board {board}? Name all of them.",
        "List the user names of everybody who moderates {board}.",
        "I have trouble with a post in {board}. Which users moderate that board?",
    ),
    instances=rows(
        "SELECT b.name AS board FROM forum_moderators m JOIN forum_boards b ON b.id = m.board GROUP BY 1 "
        "HAVING COUNT(*) > 1 AND SUM(m.user = 1) = 0"
    ),
    expected=lambda world, params, board: queries.says_users(world, params, *queries.moderators(world, board)),
    solution=[do(steps.open_board, "{board}"), answer(lambda page: ", ".join(_moderators(page)))],
    mistake=answer(lambda page: _moderators(page)[0]),
)


def _reason(world: World, rule: str, board: str) -> Says:
    query = "SELECT text FROM forum_rules WHERE board = ? AND title {} ?"
    named = (queries.board(world, board), rule)
    return says(*column(world, query.format("="), *named), others=column(world, query.format("<>"), *named))


rule_reason = ForumTemplate(
    "forum-rule-reason",
    "information",
    "medium",
    intents=(
        'The board {board} has the rule "{rule}". What is given as the reason or explanation?',
        'Look up the rule "{rule}" of the board {board} and quote its explanation.',
        'What do the moderators of {board} say about why there is the rule "{rule}"?',
    ),
    instances=rows("SELECT b.name AS board, r.title AS rule FROM forum_rules r JOIN forum_boards b ON b.id = r.board"),
    expected=_reason,
    solution=[
        do(steps.open_board, "{board}"),
        expand("Why", after="{rule}"),
        answer(lambda page, rule: texts_of(page.elements_after(rule))[1]),
    ],
)


def _clear_users(world: World) -> list[Params]:
    """Return users whose two karma figures differ."""
    return [row for row in queries.each_other(world) if len(set(_facts(world, row["user"]))) == 3]


def _other_fact(page: PageReader, fact: str) -> str:
    """Return another line of the profile."""
    labels = list(_FACTS.values())
    return page.value(labels[labels.index(_FACTS[fact]) - 1])


def _facts(world: World, name: str) -> list[str]:
    found = queries.user(world, name)
    karmas = (f"SELECT COALESCE(SUM(score), 0) FROM forum_{kind} WHERE author = ?" for kind in ("posts", "comments"))
    return [day(found["joined"]), *(str(world.value(query, found["id"])) for query in karmas)]


user_fact = ForumTemplate(
    "forum-user-fact",
    "information",
    "medium",
    intents=(
        "What is the {fact} of the user {user}?",
        "Look at the profile of {user} and tell me the {fact}.",
        "Find the user {user}. What does the profile give as {fact}?",
    ),
    instances=choose(_clear_users, fact=list(_FACTS)),
    expected=lambda world, fact, user: says(_facts(world, user)[list(_FACTS).index(fact)]),
    solution=[do(steps.open_user, "{user}"), answer(lambda page, fact: page.value(_FACTS[fact]))],
    mistake=answer(_other_fact),
)


def _last_body(world: World, user: str) -> Says:
    query = "SELECT body FROM forum_messages WHERE author = ? ORDER BY id DESC"
    near = "SELECT conversation FROM forum_messages WHERE author = ?"
    others = f"SELECT body FROM forum_messages WHERE conversation IN ({near}) AND LENGTH(body) > 20"
    number = queries.user(world, user)["id"]
    return says(world.value(query, number), others=column(world, others, number))


def _messages(page: PageReader, user: str, *, theirs: bool) -> list[str]:
    """Return the messages of a user in a conversation, or those of the account."""
    texts = map(texts_of, page.lines("article"))
    return [line[-1] for line in texts if line[0].startswith(f"{user} on ") == theirs]


last_message = ForumTemplate(
    "forum-last-message",
    "information",
    "easy",
    intents=(
        "What was the last thing that {user} wrote to me in our private messages?",
        "Read me the latest message that I got from {user}.",
        "Look at my conversation with {user}. What does the last message from them say?",
    ),
    instances=queries.conversations,
    expected=_last_body,
    solution=[do(steps.open_conversation, "{user}"), answer(lambda page, user: _messages(page, user, theirs=True)[-1])],
    mistake=answer(lambda page, user: _messages(page, user, theirs=False)[0]),
)

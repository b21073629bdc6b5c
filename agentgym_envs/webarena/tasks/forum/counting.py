"""Questions that need several pages or a comparison of figures."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ForumTemplate, column, rows, select
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, click, do, given
from agentgym_envs.webarena.tasks.template import Params

_NEGATIVE_COMMENTS = "SELECT COUNT(*) FROM forum_comments WHERE author = ? AND score < 0"
_COMMENTS = "SELECT COUNT(*) FROM forum_comments WHERE author = ?"
_FIGURES = {"posts": "forum_posts", "subscribers": "forum_subscriptions"}
_OTHER_FIGURE = {"posts": "subscribers", "subscribers": "posts"}


def _count(world: World, board: str, figure: str) -> int:
    """Return the number of subscribers or posts of a board."""
    return int(world.value(f"SELECT COUNT(*) FROM {_FIGURES[figure]} WHERE board = ?", queries.board(world, board)))


def _unequal_figures(world: World) -> Iterator[Params]:
    """Yield both figures of the boards in which they differ."""
    for board in queries.boards(world):
        if _count(world, board, "posts") != _count(world, board, "subscribers"):
            yield from ({"board": board, "figure": figure} for figure in _FIGURES)


def _figures(page: PageReader) -> dict[str, dict[str, int]]:
    """Return the figures in the list of boards."""
    rows = {row["Board"]: row for row in page.table()}
    return {name: {"posts": int(row["Posts"]), "subscribers": int(row["Subscribers"])} for name, row in rows.items()}


board_figure = ForumTemplate(
    "forum-board-figure",
    "information",
    "easy",
    intents=(
        "How many {figure} does the board {board} have?",
        "Tell me the number of {figure} of the forum's board {board}.",
        "Look up how many {figure} there are in {board}.",
    ),
    instances=_unequal_figures,
    expected=lambda world, board, figure: says(_count(world, board, figure)),
    solution=[click("link", "Boards"), answer(lambda page, figure, board: _figures(page)[board][figure])],
    mistake=answer(lambda page, figure, board: _figures(page)[board][_OTHER_FIGURE[figure]]),
)


def _threes(world: World, rng: Random) -> list[Params]:
    """Return sets of three boards with a single leader."""
    found: list[Params] = []
    while len(found) < 30:
        names = rng.sample(queries.boards(world), 3)
        figure = rng.choice(list(_FIGURES))
        counts = sorted((_count(world, name, figure) for name in names), reverse=True)
        if counts[0] > counts[1]:
            found.append(dict(zip(("first", "second", "third", "figure"), [*names, figure], strict=True)))
    return found


def _largest(world: World, first: str, second: str, third: str, figure: str) -> Says:
    names = [first, second, third]
    best = max(names, key=lambda name: _count(world, name, figure))
    return says(best, others=[name for name in names if name != best])


def _by_size(page: PageReader, first: str, second: str, third: str, figure: str) -> list[str]:
    figures = _figures(page)
    return sorted((first, second, third), key=lambda name: figures[name][figure])


larger_board = ForumTemplate(
    "forum-larger-board",
    "information",
    "easy",
    intents=(
        "Which of the boards {first}, {second} and {third} has the most {figure}?",
        "Compare the boards {first}, {second} and {third}: which one has the largest number of {figure}?",
        "Of {first}, {second} and {third}, name the board with the most {figure}.",
    ),
    instances=_threes,
    expected=_largest,
    solution=[
        click("link", "Boards"),
        answer(lambda page, first, second, third, figure: _by_size(page, first, second, third, figure)[-1]),
    ],
    mistake=answer(lambda page, first, second, third, figure: _by_size(page, first, second, third, figure)[0]),
)

links_to_domain = ForumTemplate(
    "forum-links-to-domain",
    "information",
    "easy",
    held_out=True,
    intents=(
        "How many posts in the forum link to {domain}?",
        "Count the posts that are links to pages of {domain}.",
        "I run {domain}. How often has the forum linked to us in a post?",
    ),
    instances=rows("SELECT domain FROM posts WHERE domain IS NOT NULL GROUP BY domain HAVING COUNT(*) > 2"),
    expected=lambda world, domain: says(*column(world, "SELECT COUNT(*) FROM posts WHERE domain = ?", domain)),
    solution=[
        do(steps.search, "{domain}"),
        click("link", "{domain}"),
        answer(lambda page: page.search(r"^(\d+) posts$")[0]),
    ],
    mistake=answer(lambda page: int(page.search(r"^(\d+) posts$")[0]) - 1),
)


def _recent_months(world: World) -> list[Params]:
    """Return boards and months with few later posts."""
    query = """
        SELECT board_name AS board, substr(created, 1, 7) AS month FROM posts p
        WHERE substr(created, 1, 7) BETWEEN '2025-09' AND '2026-02' GROUP BY 1, 2 HAVING
        (SELECT COUNT(*) FROM posts q WHERE q.board = p.board AND q.created >= substr(p.created, 1, 7)) < 60
    """
    return [{**row, "month": _month_words(row["month"])} for row in select(world, query)]


def _month_words(month: str) -> str:
    """Return a stored month ("2026-02") as intents write it."""
    return f"{datetime.datetime.strptime(month, '%Y-%m'):%B %Y}"


def _count_posts(world: World, board: str, month: str) -> Says:
    months = column(world, "SELECT substr(created, 1, 7) FROM posts WHERE board_name = ?", board)
    return says(sum(_month_words(one) == month for one in months))


def _months(page: PageReader, board: str, month: str) -> Steps[list[str]]:
    """Read the months of a board's posts, the newest first, as far as this month."""
    yield from steps.open_board(page, board)
    return (yield from months_here(page, month))


def months_here(page: PageReader, month: str) -> Steps[list[str]]:
    """Read the months of the posts of the board on the page, the newest first, as far as this month."""
    yield steps.open_tab(page, "New")
    wanted = datetime.datetime.strptime(month, "%B %Y")
    days: list[datetime.datetime] = []
    while True:
        days += [datetime.datetime.strptime(post.day, "%b %d, %Y") for post in steps.listed(page)]
        if days[-1] < wanted or not page.has("link", "Next"):
            return [f"{day:%B %Y}" for day in days]
        yield page.click("link", "Next")


posts_in_month = ForumTemplate(
    "forum-posts-in-month",
    "information",
    "hard",
    intents=(
        "How many posts were made in the board {board} in {month}?",
        "Count the posts of {month} in {board}.",
        "I need a figure for a report: the number of posts in {board} during {month}.",
    ),
    instances=_recent_months,
    expected=_count_posts,
    solution=[do(_months, "{board}", "{month}"), answer(lambda found, month: found.count(month))],
    mistake=answer(lambda found, month: found.count(month) + 1),
)


def _negative_users(world: World) -> Iterator[Params]:
    """Yield users with such comments and few others."""
    for name in queries.others(world):
        number = queries.user(world, name)["id"]
        if world.value(_NEGATIVE_COMMENTS, number) and 4 < world.value(_COMMENTS, number) <= 70:
            yield {"user": name}


negative_comments = ForumTemplate(
    "forum-negative-comments",
    "information",
    "hard",
    intents=(
        "How many comments by the user {user} have a score below zero?",
        "Count the comments of {user} that got more downvotes than upvotes, that is, whose score is negative.",
        "Of everything that {user} has commented, how many comments have a negative score?",
    ),
    instances=_negative_users,
    expected=lambda world, user: says(world.value(_NEGATIVE_COMMENTS, queries.user(world, user)["id"])),
    solution=[
        do(steps.open_user, "{user}"),
        do(steps.all_user_comments),
        answer(lambda found: sum(comment.score < 0 for comment in found)),
    ],
    mistake=answer(lambda found: len(found)),
)


def _latest_posters(world: World) -> list[Params]:
    """Return boards where this is another user, with few comments."""
    last = ((board, queries.newest(world, board)[0]["author"]) for board in queries.boards(world))
    return [{"board": board} for board, number in last if 0 < world.value(_COMMENTS, number) <= 70 and number != 1]


latest_poster_negative = ForumTemplate(
    "forum-latest-poster-negative",
    "information",
    "hard",
    held_out=True,
    intents=(
        "How many comments with a score below zero are by the user who made the latest post in the board {board}?",
        "Take the author of the newest post in {board}. How many of that user's comments have a negative score?",
        "For whoever was the last to post in {board}, count the comments whose score is negative.",
    ),
    instances=_latest_posters,
    expected=lambda world, board: says(world.value(_NEGATIVE_COMMENTS, queries.newest(world, board)[0]["author"])),
    solution=[
        do(steps.open_board, "{board}", "New"),
        click("link", given(lambda page: steps.listed(page)[0].author)),
        do(steps.all_user_comments),
        answer(lambda found: sum(comment.score < 0 for comment in found)),
    ],
    mistake=answer(lambda found: sum(comment.score < 0 for comment in found) + 1),
)


def _pairs(world: World, rng: Random) -> list[Params]:
    """Return pairs of users with different karma."""
    found: list[Params] = []
    names = queries.others(world)
    while len(found) < 30:
        first, second = rng.sample(names, 2)
        kind = rng.choice(("posts", "comments"))
        if _karma(world, first, kind) != _karma(world, second, kind):
            found.append({"first": first, "second": second, "kind": kind})
    return found


def _higher(world: World, first: str, second: str, kind: str) -> Says:
    pair = sorted((first, second), key=lambda name: _karma(world, name, kind))
    return says(pair[1], others=[pair[0]])


def _compare(page: PageReader, first: str, second: str, kind: str) -> Steps[str]:
    karmas = {}
    for name in (first, second):
        yield from steps.open_user(page, name)
        karmas[name] = int(page.value(f"Karma of {kind}"))
    return max(karmas, key=lambda name: karmas[name])


def _karma(world: World, name: str, kind: str) -> int:
    query = f"SELECT COALESCE(SUM(score), 0) FROM forum_{kind} WHERE author = ?"
    return int(world.value(query, queries.user(world, name)["id"]))


higher_karma = ForumTemplate(
    "forum-karma-duel",
    "information",
    "hard",
    intents=(
        "Who has the higher karma of {kind}, {first} or {second}?",
        "Compare the users {first} and {second}: which of them has more karma of {kind}?",
        "My friends {first} and {second} quarrel about who has more karma of {kind}. Who has?",
    ),
    instances=_pairs,
    expected=_higher,
    solution=_compare,
    mistake=[answer("{first} and {second}")],
)

own_score = ForumTemplate(
    "forum-own-score",
    "information",
    "easy",
    intents=(
        'What is the score of my post "{title}"?',
        'How many points does my post "{title}" have now?',
        'Check my post "{title}" and tell me its score.',
    ),
    instances=rows("SELECT title FROM posts WHERE author = 1 AND score <> comments AND comments > 0"),
    expected=lambda world, title: says(queries.post(world, title)["score"]),
    solution=[do(steps.find_own_post, "{title}"), answer(lambda found: found.score)],
    mistake=answer(lambda found: found.comments),
)


def _different_authors(world: World) -> Iterator[Params]:
    """Yield boards and counts with different authors."""
    for board in queries.boards(world):
        authors = [row["author"] for row in queries.by_score(world, board)[:4]]
        yield from ({"board": board, "count": count} for count in (2, 3, 4) if len({*authors[:count]}) == count)


best_authors = ForumTemplate(
    "forum-best-authors",
    "information",
    "medium",
    intents=(
        "Who wrote the {count} posts with the highest scores in the board {board}? Name all {count} authors.",
        "List the authors of the top {count} posts of all time in {board}, by score.",
        "Which {count} users wrote the {count} posts of {board} with the highest scores?",
    ),
    instances=_different_authors,
    expected=lambda world, params, board, count: queries.says_users(
        world, params, *(row["author_name"] for row in queries.by_score(world, board)[:count])
    ),
    solution=[
        do(steps.open_board, "{board}", "Top"),
        answer(lambda page, count: ", ".join(post.author for post in steps.listed(page)[:count])),
    ],
    mistake=answer(lambda page, count: ", ".join(post.author for post in steps.listed(page)[: count - 1])),
)

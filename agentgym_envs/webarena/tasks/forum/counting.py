"""Questions that need several pages or a comparison of figures."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ForumTemplate, column, select
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.template import Params

_NEGATIVE_COMMENTS = "SELECT COUNT(*) FROM forum_comments WHERE author = ? AND score < 0"
_COMMENTS = "SELECT COUNT(*) FROM forum_comments WHERE author = ?"

_FIGURES = {"posts": "forum_posts", "subscribers": "forum_subscriptions"}


def _count(world: World, board: str, figure: str) -> int:
    """Return the number of subscribers or posts of a board."""
    return int(world.value(f"SELECT COUNT(*) FROM {_FIGURES[figure]} WHERE board = ?", queries.board(world, board)))


class BoardFigure(ForumTemplate):
    """Name the number of subscribers or posts of a board."""

    name, kind, difficulty = "forum-board-figure", "information", "easy"
    intents = (
        "How many {figure} does the board {board} have?",
        "Tell me the number of {figure} of the forum's board {board}.",
        "Look up how many {figure} there are in {board}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards in which the two numbers differ."""
        found = []
        for board in queries.boards(world):
            if _count(world, board, "posts") != _count(world, board, "subscribers"):
                found += [{"board": board, "figure": figure} for figure in ("posts", "subscribers")]
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(_count(world, params["board"], params["figure"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Boards")
        yield page.stop(_figures(page)[params["board"]][params["figure"]])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the other number."""
        yield page.click("link", "Boards")
        other = "posts" if params["figure"] == "subscribers" else "subscribers"
        yield page.stop(_figures(page)[params["board"]][other])


def _figures(page: PageReader) -> dict[str, dict[str, int]]:
    """Return the figures in the list of boards."""
    rows = {row["Board"]: row for row in page.table()}
    return {name: {"posts": int(row["Posts"]), "subscribers": int(row["Subscribers"])} for name, row in rows.items()}


class LargerBoard(ForumTemplate):
    """Name the board of three with the most subscribers or posts."""

    name, kind, difficulty = "forum-larger-board", "information", "easy"
    intents = (
        "Which of the boards {first}, {second} and {third} has the most {figure}?",
        "Compare the boards {first}, {second} and {third}: which one has the largest number of {figure}?",
        "Of {first}, {second} and {third}, name the board with the most {figure}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Sets of three boards with a single leader."""
        found: list[Params] = []
        while len(found) < 30:
            names = rng.sample(queries.boards(world), 3)
            figure = rng.choice(list(_FIGURES))
            counts = sorted((_count(world, name, figure) for name in names), reverse=True)
            if counts[0] > counts[1]:
                found.append(dict(zip(("first", "second", "third", "figure"), [*names, figure], strict=True)))
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        names = [params["first"], params["second"], params["third"]]
        best = max(names, key=lambda name: _count(world, name, params["figure"]))
        return [says(best, others=[name for name in names if name != best])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield page.click("link", "Boards")
        figures = _figures(page)
        names = [params["first"], params["second"], params["third"]]
        yield page.stop(max(names, key=lambda name: figures[name][params["figure"]]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the smallest board."""
        yield page.click("link", "Boards")
        figures = _figures(page)
        names = [params["first"], params["second"], params["third"]]
        yield page.stop(min(names, key=lambda name: figures[name][params["figure"]]))


class LinksToDomain(ForumTemplate):
    """Count the posts that link to a domain."""

    name, kind, difficulty, held_out = "forum-links-to-domain", "information", "easy", True
    intents = (
        "How many posts in the forum link to {domain}?",
        "Count the posts that are links to pages of {domain}.",
        "I run {domain}. How often has the forum linked to us in a post?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Domains with several links."""
        query = "SELECT domain FROM posts WHERE domain IS NOT NULL GROUP BY domain HAVING COUNT(*) > 2"
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(*column(world, "SELECT COUNT(*) FROM posts WHERE domain = ?", params["domain"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.search(page, params["domain"])
        yield page.click("link", params["domain"])
        yield page.stop(page.search(r"^(\d+) posts$")[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with one less."""
        yield from steps.search(page, params["domain"])
        yield page.click("link", params["domain"])
        yield page.stop(int(page.search(r"^(\d+) posts$")[0]) - 1)


class PostsInMonth(ForumTemplate):
    """Count the posts of a board in a month."""

    name, kind, difficulty = "forum-posts-in-month", "information", "hard"
    intents = (
        "How many posts were made in the board {board} in {month}?",
        "Count the posts of {month} in {board}.",
        "I need a figure for a report: the number of posts in {board} during {month}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Recent months with some posts."""
        query = """
            SELECT board_name AS board, substr(created, 1, 7) AS month FROM posts p
            WHERE substr(created, 1, 7) BETWEEN '2025-09' AND '2026-02' GROUP BY 1, 2 HAVING
            (SELECT COUNT(*) FROM posts q WHERE q.board = p.board AND q.created >= substr(p.created, 1, 7)) < 60
        """
        return [{**row, "month": _month_words(row["month"])} for row in select(world, query)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        months = column(world, "SELECT substr(created, 1, 7) FROM posts WHERE board_name = ?", params["board"])
        return [says(sum(_month_words(month) == params["month"] for month in months))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        found = yield from self._months(page, params)
        yield page.stop(found.count(params["month"]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with one more."""
        found = yield from self._months(page, params)
        yield page.stop(found.count(params["month"]) + 1)

    def _months(self, page: PageReader, params: Params) -> Steps[list[str]]:
        yield from steps.open_board(page, params["board"], "New")
        wanted = datetime.datetime.strptime(params["month"], "%B %Y")
        days: list[datetime.datetime] = []
        while True:
            days += [datetime.datetime.strptime(post.day, "%b %d, %Y") for post in steps.listed(page)]
            if days[-1] < wanted or not page.has("link", "Next"):
                return [f"{day:%B %Y}" for day in days]
            yield page.click("link", "Next")


def _month_words(month: str) -> str:
    """Return a stored month ("2026-02") as intents write it."""
    return f"{datetime.datetime.strptime(month, '%Y-%m'):%B %Y}"


class NegativeComments(ForumTemplate):
    """Count a user's comments with a score below zero."""

    name, kind, difficulty = "forum-negative-comments", "information", "hard"
    intents = (
        "How many comments by the user {user} have a score below zero?",
        "Count the comments of {user} that got more downvotes than upvotes, that is, whose score is negative.",
        "Of everything that {user} has commented, how many comments have a negative score?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Users with such comments and few others."""
        names = []
        for name in queries.others(world):
            number = queries.user(world, name)["id"]
            if world.value(_NEGATIVE_COMMENTS, number) and 4 < world.value(_COMMENTS, number) <= 70:
                names.append({"user": name})
        return names

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(world.value(_NEGATIVE_COMMENTS, queries.user(world, params["user"])["id"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_user(page, params["user"])
        found = yield from steps.all_user_comments(page)
        yield page.stop(sum(comment.score < 0 for comment in found))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Count all comments."""
        yield from steps.open_user(page, params["user"])
        found = yield from steps.all_user_comments(page)
        yield page.stop(len(found))


class LatestPosterNegative(ForumTemplate):
    """Count the negative comments of the author of a board's newest post."""

    name, kind, difficulty, held_out = "forum-latest-poster-negative", "information", "hard", True
    intents = (
        "How many comments with a score below zero are by the user who made the latest post in the board {board}?",
        "Take the author of the newest post in {board}. How many of that user's comments have a negative score?",
        "For whoever was the last to post in {board}, count the comments whose score is negative.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards where this is another user, with few comments."""
        last = ((board, queries.newest(world, board)[0]["author"]) for board in queries.boards(world))
        return [{"board": board} for board, number in last if 0 < world.value(_COMMENTS, number) <= 70 and number != 1]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(world.value(_NEGATIVE_COMMENTS, queries.newest(world, params["board"])[0]["author"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], "New")
        yield page.click("link", steps.listed(page)[0].author)
        found = yield from steps.all_user_comments(page)
        yield page.stop(sum(comment.score < 0 for comment in found))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with one more."""
        yield from steps.open_board(page, params["board"], "New")
        yield page.click("link", steps.listed(page)[0].author)
        found = yield from steps.all_user_comments(page)
        yield page.stop(sum(comment.score < 0 for comment in found) + 1)


class HigherKarma(ForumTemplate):
    """Name the user of two with more karma."""

    name, kind, difficulty = "forum-karma-duel", "information", "hard"
    intents = (
        "Who has the higher karma of {kind}, {first} or {second}?",
        "Compare the users {first} and {second}: which of them has more karma of {kind}?",
        "My friends {first} and {second} quarrel about who has more karma of {kind}. Who has?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        found: list[Params] = []
        names = queries.others(world)
        while len(found) < 30:
            first, second = rng.sample(names, 2)
            kind = rng.choice(("posts", "comments"))
            if self._karma(world, first, kind) != self._karma(world, second, kind):
                found.append({"first": first, "second": second, "kind": kind})
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        pair = sorted((params["first"], params["second"]), key=lambda name: self._karma(world, name, params["kind"]))
        return [says(pair[1], others=[pair[0]])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        karmas = {}
        for name in (params["first"], params["second"]):
            yield from steps.open_user(page, name)
            karmas[name] = int(page.value(f"Karma of {params['kind']}"))
        yield page.stop(max(karmas, key=lambda name: karmas[name]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with both names."""
        yield page.stop(f"{params['first']} and {params['second']}")

    def _karma(self, world: World, name: str, kind: str) -> int:
        query = f"SELECT COALESCE(SUM(score), 0) FROM forum_{kind} WHERE author = ?"
        return int(world.value(query, queries.user(world, name)["id"]))


class OwnScore(ForumTemplate):
    """Name the score of the agent's post."""

    name, kind, difficulty = "forum-own-score", "information", "easy"
    intents = (
        'What is the score of my post "{title}"?',
        'How many points does my post "{title}" have now?',
        'Check my post "{title}" and tell me its score.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return select(world, "SELECT title FROM posts WHERE author = 1 AND score <> comments AND comments > 0")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(queries.post(world, params["title"])["score"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        found = yield from steps.find_own_post(page, params["title"])
        yield page.stop(found.score)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the number of comments."""
        found = yield from steps.find_own_post(page, params["title"])
        yield page.stop(found.comments)


class BestAuthors(ForumTemplate):
    """Name the authors of a board's best posts."""

    name, kind, difficulty = "forum-best-authors", "information", "medium"
    intents = (
        "Who wrote the {count} posts with the highest scores in the board {board}? Name all {count} authors.",
        "List the authors of the top {count} posts of all time in {board}, by score.",
        "Which {count} users wrote the {count} posts of {board} with the highest scores?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards and counts with different authors."""
        found = []
        for board in queries.boards(world):
            authors = [row["author"] for row in queries.by_score(world, board)[:4]]
            found += [{"board": board, "count": count} for count in (2, 3, 4) if len({*authors[:count]}) == count]
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        best = [row["author_name"] for row in queries.by_score(world, params["board"])[: params["count"]]]
        return [says(*best, others=queries.users_except(world, params, *best))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], "Top")
        yield page.stop(", ".join(post.author for post in steps.listed(page)[: params["count"]]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Leave out the last author."""
        yield from steps.open_board(page, params["board"], "Top")
        yield page.stop(", ".join(post.author for post in steps.listed(page)[: params["count"] - 1]))


TEMPLATES = (
    BoardFigure(),
    LargerBoard(),
    LinksToDomain(),
    PostsInMonth(),
    NegativeComments(),
    LatestPosterNegative(),
    HigherKarma(),
    OwnScore(),
    BestAuthors(),
)

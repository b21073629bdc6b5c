"""Questions that one or two pages answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.sites.clock import day
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ForumTemplate, column, select
from agentgym_envs.webarena.tasks.page_reader import PageReader, texts_of
from agentgym_envs.webarena.tasks.template import Params

_FACTS = {
    "joining date": "Joined",
    "karma of posts": "Karma of posts",
    "karma of comments": "Karma of comments",
}
"""Facts of a profile, with their labels."""


class PostAuthor(ForumTemplate):
    """Name the author of a post."""

    name, kind, difficulty = "forum-post-author", "information", "easy"
    intents = (
        'Who wrote the post "{title}"?',
        'Tell me the name of the user who posted "{title}" in the forum.',
        'By whom was the post "{title}" written? Give the user name.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts with comments by other users."""
        query = "SELECT DISTINCT title FROM comments WHERE author <> poster AND poster <> 1 AND title NOT LIKE '%''%'"
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        author = queries.post(world, params["title"])["author_name"]
        return [says(author, others=queries.users_except(world, params, author))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield page.stop(steps.author(page))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the author of a comment."""
        yield from steps.open_post(page, params["title"])
        author = steps.author(page)
        yield page.stop(next(comment.author for comment in steps.comments(page) if comment.author != author))


class CommentCount(ForumTemplate):
    """Count the comments on a post."""

    name, kind, difficulty = "forum-comment-count", "information", "easy"
    intents = (
        'How many comments does the post "{title}" have?',
        'Count the comments on "{title}".',
        'I want to know how much was written about the post "{title}": how many comments are there?',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts whose score differs from their number of comments."""
        return select(world, "SELECT title FROM posts WHERE comments <> score AND comments > 2")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(queries.post(world, params["title"])["comments"])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield page.stop(page.search(r"^(\d+) comments$")[0])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the score."""
        yield from steps.open_post(page, params["title"])
        yield page.stop(steps.score(page))


class TopPost(ForumTemplate):
    """Name the post of a board with the highest score of a period."""

    name, kind, difficulty = "forum-top-post", "information", "medium"
    intents = (
        "What is the title of the post with the highest score in the board {board}, over {period}?",
        "Which post of {board} has the highest score ({period})? Tell me its title.",
        "In {board}, find the best rated post of {period} and give me its title.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards and periods with several posts."""
        found: list[Params] = []
        for period, days in (("all time", 9_999), ("the last year", 365), ("the last month", 30)):
            query = f"""
                SELECT board_name AS board, '{period}' AS period FROM posts
                WHERE julianday('2026-03-16 10:30') - julianday(created) < {days} GROUP BY 1 HAVING COUNT(*) > 2
            """
            found += select(world, query)
        return found

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        first = {"all time": "", "the last year": "2025-03-16 10:30", "the last month": "2026-02-14 10:30"}
        posts = queries.by_score(world, params["board"])
        best = next(row["title"] for row in posts if row["created"] >= first[params["period"]])
        return [says(best, others=[row["title"] for row in posts if row["title"] not in best])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._sorted(page, params)
        yield page.stop(steps.listed(page)[0].title)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the second best post."""
        yield from self._sorted(page, params)
        yield page.stop(steps.listed(page)[1].title)

    def _sorted(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], "Top")
        if params["period"] != "all time":
            yield page.choose("Top of", params["period"])


class MostCommented(ForumTemplate):
    """Name the post of a board with the most comments."""

    name, kind, difficulty = "forum-most-commented", "information", "medium"
    intents = (
        "Which post of the board {board} has the most comments? Give me its title.",
        "What is the title of the most discussed post in {board}?",
        "Find the post with the longest discussion in {board} and tell me what it is called.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards with a single leader."""
        return [{"board": board} for board in queries.boards(world) if queries.most_commented(world, board)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        titles = column(world, "SELECT title FROM posts WHERE board_name = ?", params["board"])
        best = queries.most_commented(world, params["board"])
        return [says(best, others=[title for title in titles if title not in best])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], "Most commented")
        yield page.stop(steps.listed(page)[0].title)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the second post."""
        yield from steps.open_board(page, params["board"], "Most commented")
        yield page.stop(steps.listed(page)[1].title)


class NewestAuthor(ForumTemplate):
    """Name the author of a board's newest post."""

    name, kind, difficulty = "forum-newest-author", "information", "easy"
    intents = (
        "Who wrote the newest post in the board {board}?",
        "Which user was the last to post something in {board}?",
        "Tell me the author of the most recent post of {board}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards whose two newest posts have different authors."""
        pairs = ((board, queries.newest(world, board, 2)) for board in queries.boards(world))
        return [{"board": board} for board, (first, second) in pairs if first["author"] != second["author"]]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        author = queries.newest(world, params["board"])[0]["author_name"]
        return [says(author, others=queries.users_except(world, params, author))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], "New")
        yield page.stop(steps.listed(page)[0].author)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the author of the second newest post."""
        yield from steps.open_board(page, params["board"], "New")
        yield page.stop(steps.listed(page)[1].author)


class TopCommenter(ForumTemplate):
    """Name the author of a post's best comment."""

    name, kind, difficulty = "forum-top-commenter", "information", "medium"
    intents = (
        'Who wrote the comment with the highest score on the post "{title}"? Replies count too.',
        'Of all comments on "{title}", replies included, which has the highest score? Name its author.',
        'Whose comment has the highest score in the thread "{title}" (replies included)?',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"title": title} for title in queries.top_comment_authors(world)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT author_name FROM comments WHERE title = ? ORDER BY score DESC LIMIT 1"
        best = column(world, query, params["title"])[0]
        return [says(best, others=queries.users_except(world, params, best))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        found = yield from steps.all_comments(page)
        yield page.stop(max(found, key=lambda comment: comment.score).author)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the author of the worst comment."""
        yield from steps.open_post(page, params["title"])
        found = yield from steps.all_comments(page)
        yield page.stop(min(found, key=lambda comment: comment.score).author)


class CommentText(ForumTemplate):
    """Name the text of a user's comment on a post."""

    name, kind, difficulty = "forum-comment-of", "information", "easy"
    intents = (
        'What did {user} write in their comment on the post "{title}"?',
        'Quote the comment of the user {user} on "{title}".',
        'In the thread "{title}", find the comment by {user} and tell me what it says.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Longer comments in threads with a shorter comment by another user."""
        shorter = "SELECT 1 FROM comments o WHERE o.post = c.post AND length(o.body) < length(c.body)"
        query = f"""
            SELECT author_name AS user, title FROM lone c
            WHERE length(body) > 35 AND author <> 1 AND comments < 15 AND EXISTS ({shorter})
        """
        return rng.sample(select(world, query), 60)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        thread = column(world, "SELECT body FROM comments WHERE title = ? AND LENGTH(body) > 20", params["title"])
        return [says(queries.comment(world, params["title"], params["user"])["body"], others=thread)]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        found = yield from steps.all_comments(page)
        yield page.stop(next(comment.text for comment in found if comment.author == params["user"]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with another user's comment."""
        yield from steps.open_post(page, params["title"])
        found = yield from steps.all_comments(page)
        yield page.stop(min((comment.text for comment in found), key=len))


class BoardModerators(ForumTemplate):
    """Name the moderators of a board."""

    name, kind, difficulty = "forum-moderators", "information", "easy"
    intents = (
        "Who are the moderators of the board {board}? Name all of them.",
        "List the user names of everybody who moderates {board}.",
        "I have trouble with a post in {board}. Which users moderate that board?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards with several moderators, except the account's own."""
        query = "SELECT b.name AS board FROM forum_moderators m JOIN forum_boards b ON b.id = m.board GROUP BY 1"
        return select(world, f"{query} HAVING COUNT(*) > 1 AND SUM(m.user = 1) = 0")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT u.name FROM forum_moderators m JOIN forum_users u ON u.id = m.user WHERE m.board = ?"
        names = column(world, query, queries.board(world, params["board"]))
        return [says(*names, others=queries.users_except(world, params, *names))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield page.stop(", ".join(self._names(page)))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the first moderator only."""
        yield from steps.open_board(page, params["board"])
        yield page.stop(self._names(page)[0])

    def _names(self, page: PageReader) -> list[str]:
        below = takewhile(lambda element: element.role != "contentinfo", page.elements_after("Moderators"))
        return [element.name for element in below if element.role == "link"]


class RuleReason(ForumTemplate):
    """Name the explanation of a board's rule."""

    name, kind, difficulty = "forum-rule-reason", "information", "medium"
    intents = (
        'The board {board} has the rule "{rule}". What is given as the reason or explanation?',
        'Look up the rule "{rule}" of the board {board} and quote its explanation.',
        'What do the moderators of {board} say about why there is the rule "{rule}"?',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = "SELECT b.name AS board, r.title AS rule FROM forum_rules r JOIN forum_boards b ON b.id = r.board"
        return select(world, query)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT text FROM forum_rules WHERE board = ? AND title {} ?"
        given = (queries.board(world, params["board"]), params["rule"])
        return [says(*column(world, query.format("="), *given), others=column(world, query.format("<>"), *given))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"])
        yield from page.expand("Why", after=params["rule"])
        yield page.stop(texts_of(page.elements_after(params["rule"]))[1])


class UserFact(ForumTemplate):
    """Name a fact of a user's profile."""

    name, kind, difficulty = "forum-user-fact", "information", "medium"
    intents = (
        "What is the {fact} of the user {user}?",
        "Look at the profile of {user} and tell me the {fact}.",
        "Find the user {user}. What does the profile give as {fact}?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Users whose two karma figures differ."""
        names = [name for name in queries.others(world) if len(set(self._facts(world, name))) == 3]
        return [{"user": name, "fact": rng.choice(list(_FACTS))} for name in names]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        index = list(_FACTS).index(params["fact"])
        return [says(self._facts(world, params["user"])[index])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_user(page, params["user"])
        yield page.stop(page.value(_FACTS[params["fact"]]))

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the next line of the profile."""
        yield from steps.open_user(page, params["user"])
        labels = list(_FACTS.values())
        yield page.stop(page.value(labels[labels.index(_FACTS[params["fact"]]) - 1]))

    def _facts(self, world: World, name: str) -> list[str]:
        found = queries.user(world, name)
        karmas = (
            f"SELECT COALESCE(SUM(score), 0) FROM forum_{kind} WHERE author = ?" for kind in ("posts", "comments")
        )
        return [day(found["joined"]), *(str(world.value(query, found["id"])) for query in karmas)]


class LastMessage(ForumTemplate):
    """Name the last message of a user in a private conversation."""

    name, kind, difficulty = "forum-last-message", "information", "easy"
    intents = (
        "What was the last thing that {user} wrote to me in our private messages?",
        "Read me the latest message that I got from {user}.",
        "Look at my conversation with {user}. What does the last message from them say?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Conversations with messages in both directions."""
        return queries.conversations(world)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = "SELECT body FROM forum_messages WHERE author = ? ORDER BY id DESC"
        near = "SELECT conversation FROM forum_messages WHERE author = ?"
        others = f"SELECT body FROM forum_messages WHERE conversation IN ({near}) AND LENGTH(body) > 20"
        user = queries.user(world, params["user"])["id"]
        return [says(world.value(query, user), others=[row[0] for row in world.rows(others, user)])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_conversation(page, params["user"])
        theirs = [line for line in page.lines("article") if texts_of(line)[0].startswith(f"{params['user']} on ")]
        yield page.stop(texts_of(theirs[-1])[-1])

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with a message of the account."""
        yield from steps.open_conversation(page, params["user"])
        mine = [line for line in page.lines("article") if not texts_of(line)[0].startswith(f"{params['user']} on ")]
        yield page.stop(texts_of(mine[0])[-1])


TEMPLATES = (
    PostAuthor(),
    CommentCount(),
    TopPost(),
    MostCommented(),
    NewestAuthor(),
    TopCommenter(),
    CommentText(),
    BoardModerators(),
    RuleReason(),
    UserFact(),
    LastMessage(),
)

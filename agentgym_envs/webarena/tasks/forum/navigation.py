"""Tasks that end on a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from urllib.parse import urlencode

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ORIGIN, ForumTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params

_TABS = {
    "newest first": ("New", "new"),
    "highest score first": ("Top", "top"),
    "most comments first": ("Most commented", "comments"),
}
_PERIODS = {"the last day": "day", "the last week": "week", "the last month": "month", "the last year": "year"}
_LEADERS = {"newest": "New", "highest-scored": "Top", "most commented": "Most commented"}
_OWN_PAGES = {
    "the comments that I have saved": ("Saved", "Comments", "/saved/comments"),
    "the posts that I have saved": ("Saved", "", "/saved"),
    "the posts that I have hidden": ("Hidden posts", "", "/hidden"),
    "the users that I have blocked": ("Blocked users", "", "/blocked"),
    "the list of boards that I subscribe to": ("Subscriptions", "", "/subscriptions"),
    "the settings of my profile": ("Settings", "", "/settings"),
    "the settings of how my front page is sorted": ("Settings", "Preferences", "/settings/preferences"),
    "the posts of all boards that I moderate": ("Moderated boards", "", "/moderated"),
    "the newest posts of the boards that I moderate": ("Moderated boards", "New", "/moderated/new"),
    "my own posts": ("My profile", "", "/u/{me}"),
    "my own comments": ("My profile", "Comments", "/u/{me}/comments"),
}
"""Pages of the account: a menu entry, a link of that page, and the path."""


class OpenSorted(ForumTemplate):
    """Show the posts of a board in an order."""

    name, kind, difficulty = "forum-open-sorted", "navigation", "easy"
    intents = (
        "Show me the posts of the board {board}, {order}.",
        "Open {board} with its posts sorted: {order}.",
        "I want to see the list of posts in {board} ({order}).",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"board": board, "order": order} for board in queries.boards(world) for order in _TABS]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{ORIGIN}/b/{params['board']}/{_TABS[params['order']][1]}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], _TABS[params["order"]][0])
        yield page.stop()


class OpenTopOf(ForumTemplate):
    """Show the top posts of a board in a period."""

    name, kind, difficulty = "forum-open-top-of", "navigation", "medium"
    intents = (
        "Show me the top posts of {period} in the board {board}.",
        "Open the best rated posts of {board}, but only those of {period}.",
        "In {board}, list the posts of {period}, the highest scores first.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"board": board, "period": period} for board in queries.boards(world) for period in _PERIODS]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{ORIGIN}/b/{params['board']}/top?t={_PERIODS[params['period']]}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], "Top")
        yield page.choose("Top of", params["period"])
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Show the top posts of all time."""
        yield from steps.open_board(page, params["board"], "Top")
        yield page.stop()


class OpenLeadingPost(ForumTemplate):
    """Open the leading post of a board by some measure."""

    name, kind, difficulty = "forum-open-extreme", "navigation", "medium"
    intents = (
        "Open the {which} post of the board {board}.",
        "Take me to the page of the {which} post in {board}.",
        "In the board {board}, find the {which} post and show it to me.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Boards with a single leader."""
        every = [{"board": board, "which": which} for board in queries.boards(world) for which in _LEADERS]
        return [row for row in every if row["which"] != "most commented" or queries.most_commented(world, row["board"])]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        board = params["board"]
        match params["which"]:
            case "newest":
                number = queries.newest(world, board)[0]["id"]
            case "highest-scored":
                number = queries.by_score(world, board)[0]["id"]
            case _:
                number = queries.post(world, queries.most_commented(world, board))["id"]
        return [EndsOn(f"{ORIGIN}/b/{board}/{number}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._open(page, params, 0)

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Open the second post."""
        yield from self._open(page, params, 1)

    def _open(self, page: PageReader, params: Params, index: int) -> Iterator[str]:
        yield from steps.open_board(page, params["board"], _LEADERS[params["which"]])
        yield page.click("link", steps.listed(page)[index].title)
        yield page.stop()


class OpenCommentsByScore(ForumTemplate):
    """Show a user's comments by score."""

    name, kind, difficulty = "forum-open-comments-of", "navigation", "medium"
    intents = (
        "Show me the comments of the user {user}, sorted by score.",
        "Open the list of everything that {user} has commented, the highest scores first.",
        "I want to read the best rated comments by {user}. Open the page that lists them.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Users with comments."""
        numbers = "SELECT name FROM forum_users WHERE id IN (SELECT author FROM forum_comments)"
        wrote = {row[0] for row in world.rows(numbers)}
        return [{"user": name} for name in queries.others(world) if name in wrote]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{ORIGIN}/u/{params['user']}/comments?sort=top")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_user(page, params["user"])
        yield page.click("link", "Comments")
        yield page.click("link", "Sort by score")
        yield page.stop()


class OpenOwnPage(ForumTemplate):
    """Show a page of the agent's account."""

    name, kind, difficulty = "forum-open-own", "navigation", "easy"
    intents = (
        "Show me {what}.",
        "Open the page with {what}.",
        "Where do I find {what}? Go there.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"what": what} for what in _OWN_PAGES]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        me = world.value("SELECT name FROM forum_users WHERE id = ?", queries.ME)
        return [EndsOn(ORIGIN + _OWN_PAGES[params["what"]][2].format(me=me))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        entry, tab, _ = _OWN_PAGES[params["what"]]
        yield from steps.open_account_menu(page, entry)
        if tab:
            yield page.click("link", tab)
        yield page.stop()


class OpenConversation(ForumTemplate):
    """Open a private conversation."""

    name, kind, difficulty = "forum-open-conversation", "navigation", "easy"
    intents = (
        "Open my private conversation with {user}.",
        "Show me the messages that {user} and I have exchanged.",
        "I want to read again what {user} and I wrote to each other in private.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"user": row["other"]} for row in world.rows(_CONVERSATIONS)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        numbers = {row["other"]: row["id"] for row in world.rows(_CONVERSATIONS)}
        return [EndsOn(f"{ORIGIN}/messages/{numbers[params['user']]}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_conversation(page, params["user"])
        yield page.stop()


_CONVERSATIONS = """
SELECT c.id, u.name AS other FROM forum_conversations c
JOIN forum_users u ON u.id IN (c.opener, c.partner) AND u.id <> 1
"""


class SearchComments(ForumTemplate):
    """Search the comments of a board."""

    name, kind, difficulty = "forum-search-comments", "navigation", "medium"
    intents = (
        'Search the comments in the board {board} for "{words}".',
        'Show me all comments of {board} in which "{words}" occurs, by the search of the forum.',
        'Use the search to list the comments with the word "{words}" in the board {board}.',
    )
    _words = ("winter", "cheaper", "weekend", "agree", "thank", "years", "train", "careful", "picture", "neighbour")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        names = queries.boards(world)
        return [{"board": name, "words": words} for name in names for words in rng.sample(self._words, 2)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = urlencode({"q": params["words"], "in": "comments", "board": params["board"]})
        return [EndsOn(f"{ORIGIN}/search?{query}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from self._search(page, params, "Comments")

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Search the posts instead."""
        yield from self._search(page, params, "Posts")

    def _search(self, page: PageReader, params: Params, kind: str) -> Iterator[str]:
        yield from steps.search(page, params["words"])
        yield page.choose("Search in", kind)
        yield page.choose("Board", params["board"])
        yield page.click("button", "Go")
        yield page.stop()


TEMPLATES = (
    OpenSorted(),
    OpenTopOf(),
    OpenLeadingPost(),
    OpenCommentsByScore(),
    OpenOwnPage(),
    OpenConversation(),
    SearchComments(),
)

"""Tasks that end on a page."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ORIGIN, ForumTemplate, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import choose_option, click, do, given
from agentgym_envs.webarena.tasks.template import Params

_TABS = {
    "newest first": ("New", "new"),
    "highest score first": ("Top", "top"),
    "most comments first": ("Most commented", "comments"),
}
_PERIODS = {"the last day": "day", "the last week": "week", "the last month": "month", "the last year": "year"}
_LEADERS = {"newest": "New", "highest-scored": "Top", "most commented": "Most commented"}
TAB = given(lambda order: _TABS[order][0])
"""An argument of a step: the tab of a board for the parameter `order`."""
LEADING_TAB = given(lambda which: _LEADERS[which])
"""An argument of a step: the tab of a board for the parameter `which`."""
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

open_sorted = ForumTemplate(
    "forum-open-sorted",
    "navigation",
    "easy",
    intents=(
        "Show me the posts of the board {board}, {order}.",
        "Open {board} with its posts sorted: {order}.",
        "I want to see the list of posts in {board} ({order}).",
    ),
    instances=lambda world: [{"board": board, "order": order} for board in queries.boards(world) for order in _TABS],
    expected=lambda board, order: EndsOn(f"{ORIGIN}/b/{board}/{_TABS[order][1]}"),
    solution=[do(steps.open_board, "{board}", TAB)],
)

open_top_of = ForumTemplate(
    "forum-open-top-of",
    "navigation",
    "medium",
    intents=(
        "Show me the top posts of {period} in the board {board}.",
        "Open the best rated posts of {board}, but only those of {period}.",
        "In {board}, list the posts of {period}, the highest scores first.",
    ),
    instances=lambda world: [
        {"board": board, "period": period} for board in queries.boards(world) for period in _PERIODS
    ],
    expected=lambda board, period: EndsOn(f"{ORIGIN}/b/{board}/top?t={_PERIODS[period]}"),
    solution=[do(steps.open_board, "{board}", "Top"), choose_option("Top of", "{period}")],
    mistake=[do(steps.open_board, "{board}", "Top")],
)


def _leaders(world: World) -> list[Params]:
    """Return boards with a single leader."""
    every = [{"board": board, "which": which} for board in queries.boards(world) for which in _LEADERS]
    return [row for row in every if row["which"] != "most commented" or queries.most_commented(world, row["board"])]


def _leading_title(world: World, board: str, which: str) -> str:
    if which == "most commented":
        return queries.most_commented(world, board)
    row = queries.newest(world, board)[0] if which == "newest" else queries.by_score(world, board)[0]
    return str(row["title"])


open_leading_post = ForumTemplate(
    "forum-open-extreme",
    "navigation",
    "medium",
    intents=(
        "Open the {which} post of the board {board}.",
        "Take me to the page of the {which} post in {board}.",
        "In the board {board}, find the {which} post and show it to me.",
    ),
    instances=_leaders,
    expected=lambda world, board, which: EndsOn(queries.post_url(world, _leading_title(world, board, which))),
    solution=[do(steps.open_board, "{board}", LEADING_TAB), click("link", steps.nth_title(0))],
    mistake=click("link", steps.nth_title(1)),
)


def _commenters(world: World) -> list[Params]:
    """Return users with comments."""
    rows = world.rows("SELECT name FROM forum_users WHERE id IN (SELECT author FROM forum_comments)")
    wrote = {row[0] for row in rows}
    return [{"user": name} for name in queries.others(world) if name in wrote]


open_comments_by_score = ForumTemplate(
    "forum-open-comments-of",
    "navigation",
    "medium",
    intents=(
        "Show me the comments of the user {user}, sorted by score.",
        "Open the list of everything that {user} has commented, the highest scores first.",
        "I want to read the best rated comments by {user}. Open the page that lists them.",
    ),
    instances=_commenters,
    expected=lambda user: EndsOn(f"{ORIGIN}/u/{user}/comments?sort=top"),
    solution=[do(steps.open_user, "{user}"), click("link", "Comments"), click("link", "Sort by score")],
)


def _open_own_page(page: PageReader, what: str) -> Steps[None]:
    entry, tab, _ = _OWN_PAGES[what]
    yield from steps.open_account_menu(page, entry)
    if tab:
        yield page.click("link", tab)


open_own_page = ForumTemplate(
    "forum-open-own",
    "navigation",
    "easy",
    intents=("Show me {what}.", "Open the page with {what}.", "Where do I find {what}? Go there."),
    instances=lambda: [{"what": what} for what in _OWN_PAGES],
    expected=lambda world, what: EndsOn(ORIGIN + _OWN_PAGES[what][2].format(me=queries.my_name(world))),
    solution=_open_own_page,
)

_CONVERSATIONS = "FROM forum_conversations c JOIN forum_users u ON u.id IN (c.opener, c.partner) AND u.id <> 1"

open_conversation = ForumTemplate(
    "forum-open-conversation",
    "navigation",
    "easy",
    intents=(
        "Open my private conversation with {user}.",
        "Show me the messages that {user} and I have exchanged.",
        "I want to read again what {user} and I wrote to each other in private.",
    ),
    instances=rows(f"SELECT u.name AS user {_CONVERSATIONS}"),
    expected=lambda world, user: EndsOn(
        f"{ORIGIN}/messages/{world.value(f'SELECT c.id {_CONVERSATIONS} WHERE u.name = ?', user)}"
    ),
    solution=[do(steps.open_conversation, "{user}")],
)

_WORDS = ("winter", "cheaper", "weekend", "agree", "thank", "years", "train", "careful", "picture", "neighbour")


def _search(page: PageReader, board: str, words: str, kind: str) -> Iterator[str]:
    yield from steps.search(page, words)
    yield page.choose("Search in", kind)
    yield page.choose("Board", board)
    yield page.click("button", "Go")


search_comments = ForumTemplate(
    "forum-search-comments",
    "navigation",
    "medium",
    intents=(
        'Search the comments in the board {board} for "{words}".',
        'Show me all comments of {board} in which "{words}" occurs, by the search of the forum.',
        'Use the search to list the comments with the word "{words}" in the board {board}.',
    ),
    instances=lambda world, rng: [
        {"board": board, "words": words} for board in queries.boards(world) for words in rng.sample(_WORDS, 2)
    ],
    expected=lambda board, words: EndsOn(
        f"{ORIGIN}/search?{urlencode({'q': words, 'in': 'comments', 'board': board})}"
    ),
    solution=[do(_search, "{board}", "{words}", "Comments")],
    mistake=do(_search, "{board}", "{words}", "Posts"),
)

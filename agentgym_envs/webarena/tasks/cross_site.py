"""More tasks on several sites: between the forum, code hosting, the shop and its administration."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.webarena.evaluators.state import Added, Expected
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.cms import steps as cms_steps
from agentgym_envs.webarena.tasks.code import queries as code_queries
from agentgym_envs.webarena.tasks.code import steps as code_steps
from agentgym_envs.webarena.tasks.code.parsing import titles
from agentgym_envs.webarena.tasks.encyclopedia.steps import post_added, post_in_forum
from agentgym_envs.webarena.tasks.forum import queries as forum_queries
from agentgym_envs.webarena.tasks.forum import steps as forum_steps
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import steps as shop_steps
from agentgym_envs.webarena.tasks.template import Params, Template

_FILES = ("FORUM.md", "docs/from-the-forum.md", "quotes.txt", "docs/voices.md", "THANKS.md")
_POST_TITLES = ("What is being worked on", "News from my project", "Have you met this, too?", "Newest issue")
COMMENT = "Kept in my repository."


def own_projects(world: World) -> list[str]:
    """Return the paths of the projects in which the agent may write to the default branch."""
    query = f"SELECT path FROM projects WHERE level >= {code_queries.MAINTAINER} AND NOT archived ORDER BY id"
    return code_queries.column(world, query)


def create_file(page: PageReader, project: str, file: str, text: str) -> Iterator[str]:
    """Commit a new file to a project's default branch, from any site."""
    yield page.goto(f"{ORIGINS['code']}/")
    yield from code_steps.open_project(page, project)
    yield page.click("link", "New file")
    yield page.type("File name", file)
    yield page.type("Content of the file", text)
    yield page.click("button", "Commit changes")


def file_added(world: World, project: str, file: str, text: str) -> list[Expected]:
    """Return the changes by a commit of a new file to a project's default branch."""
    head = code_queries.project(world, project)["head"]
    blob = world.value("SELECT MAX(id) + 1 FROM code_blobs")
    return [
        Added("code_blobs", {"id": blob, "content": text}),
        Added("code_files", {"branch": head, "path": file, "blob": blob}),
        Added("code_commits", {"branch": head, "author": 1}),
    ]


def _keep_top_title(page: PageReader, board: str, project: str, file: str, place: int = 0) -> Steps[None]:
    yield from forum_steps.open_board(page, board)
    yield from keep_top_title_here(page, project, file, place)


def keep_top_title_here(page: PageReader, project: str, file: str, place: int = 0) -> Steps[None]:
    """Keep the title of one of the top posts of the board on the page in a new file."""
    yield forum_steps.open_tab(page, "Top")
    yield from create_file(page, project, file, forum_steps.listed(page)[place].title)


top_post_to_file = Template(
    "code-and-forum",
    ("forum", "code"),
    "across-top-post-to-file",
    "change",
    "hard",
    since=2,
    intents=(
        "Add the file {file} to the default branch of {project}. It holds one line: the title of the post with the "
        "highest score on the forum board {board}.",
        "Which post on the board {board} of the forum has the highest score of all? Commit a new file {file} to "
        "{project}, on its default branch, with just the title of that post in it.",
        "In {project}, create {file} on the default branch. Its only content is the title of the best rated post of "
        "{board} in the forum.",
    ),
    instances=choose(forum_queries.each_board, times=3, project=own_projects, file=_FILES),
    expected=lambda world, board, project, file: file_added(
        world, project, file, forum_queries.by_score(world, board)[0]["title"]
    ),
    solution=_keep_top_title,
    mistake=lambda page, board, project, file: _keep_top_title(page, board, project, file, 1),
)


def _author_kept(world: World, title: str, project: str, file: str) -> list[Expected]:
    post = forum_queries.post(world, title)
    comment = {"post": post["id"], "parent": None, "author": forum_queries.ME, "body": COMMENT}
    return [*file_added(world, project, file, post["author_name"]), Added("forum_comments", comment)]


def _keep_author(page: PageReader, title: str, project: str, file: str, comment: str = COMMENT) -> Steps[None]:
    yield from forum_steps.open_post(page, title)
    yield from keep_author_here(page, project, file, comment)


def keep_author_here(page: PageReader, project: str, file: str, comment: str = COMMENT) -> Steps[None]:
    """Keep the author of the post on the page in a new file, and comment on the post."""
    address, author = page.url, forum_steps.author(page)
    yield from create_file(page, project, file, author)
    yield page.goto(address)
    yield from forum_steps.add_comment(page, comment)


author_to_file = Template(
    "code-and-forum",
    ("forum", "code"),
    "across-author-to-file",
    "change",
    "hard",
    since=2,
    intents=(
        'Thank the author of the forum post "{title}": add the file {file} to the default branch of {project} with '
        f'only the author\'s user name in it. Then write the comment "{COMMENT}" below the post.',
        "Commit a new file {file} to the default branch of {project} whose only content is the name of the user who "
        f'posted "{{title}}" in the forum. After that, comment on the post with "{COMMENT}"',
        f'Below the forum post "{{title}}", comment "{COMMENT}" But first make that true: {{file}}, a new file on the '
        "default branch of {project}, is to hold just the user name of the post's author.",
    ),
    instances=forum_queries.rows(
        "SELECT title FROM posts WHERE NOT locked AND author > 1 AND title NOT LIKE '%\"%' GROUP BY title "
        "HAVING COUNT(*) = 1",
        sample=60,
        project=own_projects,
        file=_FILES,
    ),
    expected=_author_kept,
    free=("forum_notifications",),
    solution=_keep_author,
    mistake=lambda page, title, project, file: _keep_author(page, title, project, file, "Kept."),
)


def _newest_issue(world: World, project: str) -> str:
    """Return the title of the open issue of a project that was opened last."""
    query = "SELECT title FROM code_issues WHERE project = ? AND state = 'open' ORDER BY created DESC, id DESC"
    return str(world.value(query, code_queries.project(world, project)["id"]))


def _busy_projects(world: World) -> list[Params]:
    """Return projects with several open issues whose newest one has a plain title and is visible to all."""
    found: list[Params] = []
    for path in code_queries.column(world, "SELECT path FROM projects WHERE NOT archived ORDER BY id"):
        visible = code_queries.column(world, "SELECT title FROM issues WHERE path = ? AND state = 'open'", path)
        if len(visible) > 1 and _newest_issue(world, path) in visible:
            found.append({"project": path})
    return found


def _issue_titles(page: PageReader) -> Steps[list[str]]:
    """Read the titles on the first page of the open issues of the project on the page, the newest first."""
    yield from code_steps.open_section(page, "Issues")
    return titles(page)


def _post_newest_issue(page: PageReader, project: str, board: str, title: str, place: int = 0) -> Steps[None]:
    yield from code_steps.open_project(page, project)
    yield from post_newest_issue_here(page, board, title, place)


def post_newest_issue_here(page: PageReader, board: str, title: str, place: int = 0) -> Steps[None]:
    """Post the title of one of the newest open issues of the project on the page in the forum."""
    found = yield from _issue_titles(page)
    yield from post_in_forum(page, board, title, found[place])


issue_to_post = Template(
    "code-and-forum",
    ("code", "forum"),
    "across-issue-to-post",
    "change",
    "hard",
    since=2,
    intents=(
        'Write a post on the forum board {board} with the title "{title}". Its text is just the title of the open '
        "issue of {project} that was opened last.",
        "Which of the open issues of {project} is the newest? Post its title, and nothing else, on {board} in the "
        'forum, under "{title}".',
        'On the board {board} of the forum, publish "{title}": as text only the title of the most recently opened of '
        "the open issues in {project}.",
    ),
    instances=choose(_busy_projects, times=2, board=forum_queries.boards, title=_POST_TITLES),
    expected=lambda world, project, board, title: post_added(world, board, title, _newest_issue(world, project)),
    solution=_post_newest_issue,
    mistake=lambda page, project, board, title: _post_newest_issue(page, project, board, title, 1),
)


def _worst_reviews(world: World) -> list[Params]:
    """Return products with a single review of the lowest rating."""
    query = (
        "SELECT p.name AS product, r.rating FROM shop_reviews r JOIN shop_products p ON p.id = r.product "
        "JOIN shop_categories c ON c.id = p.category WHERE r.status = 'approved' AND p.enabled AND c.enabled "
        "AND p.name IN (SELECT name FROM shop_products GROUP BY name HAVING COUNT(*) = 1) ORDER BY r.id"
    )
    ratings: dict[str, list[int]] = {}
    for row in world.rows(query):
        ratings.setdefault(row["product"], []).append(row["rating"])
    return [
        {"product": name} for name, every in ratings.items() if 3 <= len(every) <= 10 and every.count(min(every)) == 1
    ]


def _worst_posted(world: World, product: str, board: str) -> Added:
    query = (
        "SELECT r.title FROM shop_reviews r JOIN shop_products p ON p.id = r.product WHERE p.name = ? "
        "AND r.status = 'approved' ORDER BY r.rating"
    )
    return post_added(world, board, product, world.value(query, product))


def _post_worst(page: PageReader, product: str, board: str, place: int = 0) -> Steps[None]:
    yield from shop_steps.open_product(page, product)
    yield from post_worst_here(page, product, board, place)


def post_worst_here(page: PageReader, product: str, board: str, place: int = 0) -> Steps[None]:
    """Post the summary of a review of the product on the page in the forum, by rank from the worst."""
    reviews = yield from shop_steps.read_reviews(page)
    chosen = sorted(reviews, key=lambda review: review.stars)[place]
    yield from post_in_forum(page, board, product, chosen.title)


review_to_post = Template(
    "shopping",
    ("shop", "forum"),
    "across-review-to-post",
    "change",
    "hard",
    since=2,
    intents=(
        "Warn the people on the forum board {board} of the {product}: write a post with the name of the product as its "
        "title, and as text only the summary (the headline) of its worst review in the shop.",
        "What does the headline of the review with the fewest stars say about the {product}? Post just that on {board} "
        "in the forum. The title of the post is the name of the product.",
        "Copy the summary of the lowest rated review of the {product} from the shop into a post on the board {board} "
        "of the forum, and nothing else. Give the post the name of the product as its title.",
    ),
    instances=choose(_worst_reviews, sample=40, board=forum_queries.boards),
    expected=_worst_posted,
    solution=_post_worst,
    mistake=lambda page, product, board: _post_worst(page, product, board, -1),
)


def _orders(world: World) -> list[str]:
    return [row["number"] for row in world.rows("SELECT number FROM shop_orders WHERE status = 'processing'")]


def _order_commented(world: World, number: str, project: str) -> Added:
    (order,) = world.rows("SELECT id, status FROM shop_orders WHERE number = ?", number)
    values = {"order_id": order["id"], "status": order["status"], "text": _newest_issue(world, project), "notified": 1}
    return Added("shop_order_comments", values)


def _explain_delay(page: PageReader, project: str, number: str, place: int = 0) -> Steps[None]:
    yield from code_steps.open_project(page, project)
    yield from explain_delay_here(page, number, place)


def explain_delay_here(page: PageReader, number: str, place: int = 0) -> Steps[None]:
    """Comment on an order with the title of one of the newest open issues of the project on the page."""
    found = yield from _issue_titles(page)
    yield page.goto(f"{ORIGINS['admin']}/")
    yield from cms_steps.open_order(page, number)
    yield from cms_steps.add_comment(page, found[place])


issue_to_order = Template(
    "cms",
    ("code", "admin"),
    "across-issue-to-order",
    "change",
    "hard",
    since=2,
    intents=(
        "Order {number} is late because of the open issue of {project} that was opened last. Comment on the order in "
        "the administration with just the title of that issue, and notify the customer.",
        "Tell the customer of order {number} what holds it up: add the title of the newest open issue of {project}, "
        "and nothing else, as a comment on the order, and have the customer notified by e-mail.",
        "Look up which of the open issues in {project} is the most recent. In the administration, comment on order "
        "{number} with its title alone, notifying the customer.",
    ),
    instances=choose(_busy_projects, times=2, number=_orders),
    expected=_order_commented,
    solution=_explain_delay,
    mistake=lambda page, project, number: _explain_delay(page, project, number, 1),
)

TEMPLATES = (top_post_to_file, author_to_file, issue_to_post, review_to_post, issue_to_order)

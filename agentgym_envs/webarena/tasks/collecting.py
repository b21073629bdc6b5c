"""Tasks on several sites that collect facts on one of them and write them down on another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Expected, QueryReturns
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.encyclopedia.lore import lore
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says
from agentgym_envs.webarena.tasks.code import phrases
from agentgym_envs.webarena.tasks.code import queries as code_queries
from agentgym_envs.webarena.tasks.code import steps as code_steps
from agentgym_envs.webarena.tasks.code.building import next_id, project_added
from agentgym_envs.webarena.tasks.cross_site import create_file, file_added, own_projects
from agentgym_envs.webarena.tasks.encyclopedia.mapping import museum, museum_on_page
from agentgym_envs.webarena.tasks.encyclopedia.steps import open_article, post_in_forum
from agentgym_envs.webarena.tasks.forum import queries as forum_queries
from agentgym_envs.webarena.tasks.forum import steps as forum_steps
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.maps import queries as map_queries
from agentgym_envs.webarena.tasks.maps import steps as map_steps
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import steps as shop_steps
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params, Template

_FOLDERS = ("links", "reading", "moon", "news", "garden", "archive")


def _listed(texts: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for these texts, in any order and with anything between them."""
    return re.compile("".join(rf"(?=.*{re.escape(text)}(?!\d))" for text in texts) + ".*", re.DOTALL)


def _post_urls(world: World, titles: Sequence[str]) -> list[str]:
    return [forum_queries.post_url(world, title) for title in titles]


def _visit(page: PageReader, count: int) -> Steps[list[str]]:
    """Open the first posts of the list on the page, and return their addresses."""
    listing, found = page.url, []
    for title in [post.title for post in forum_steps.listed(page)][:count]:
        yield page.click("link", title)
        found.append(page.url)
        yield page.goto(listing)
    return found


def _urls_kept(world: World, board: str, count: int, project: str, folder: str) -> list[Expected]:
    titles = [row["title"] for row in forum_queries.newest(world, board, count)]
    found = file_added(world, project, f"{folder}/urls.txt", "")
    number = world.value("SELECT MAX(id) + 1 FROM code_blobs")
    return [Added("code_blobs", {"id": number, "content": _listed(_post_urls(world, titles))}), *found[1:]]


def _keep_urls(page: PageReader, board: str, count: int, project: str, folder: str) -> Steps[None]:
    yield from forum_steps.open_board(page, board, "New")
    urls = yield from _visit(page, count)
    yield from create_file(page, project, f"{folder}/urls.txt", "\n".join(urls))


newest_urls_to_file = Template(
    "code-and-forum",
    ("forum", "code"),
    "across-newest-urls-to-file",
    "change",
    "hard",
    since=2,
    intents=(
        "In {project}, create the folder {folder} with a file urls.txt in it, on the default branch. The file holds "
        "the URLs of the {count} newest posts of the forum board {board}.",
        "Collect the addresses of the {count} most recent posts on the board {board} of the forum, and commit them to "
        "the default branch of {project} as {folder}/urls.txt, one per line.",
        "Add the file urls.txt in a new folder {folder} to {project} (default branch): the links to the {count} posts "
        "that came last on {board} in the forum.",
    ),
    instances=choose(forum_queries.each_board, times=3, count=(3, 4, 5), project=own_projects, folder=_FOLDERS),
    expected=_urls_kept,
    solution=_keep_urls,
    mistake=lambda page, board, count, project, folder: _keep_urls(page, board, count - 1, project, folder),
)


def _project_with_file(world: World, name: str) -> list[Expected]:
    """Return the rows of a new private project with a README."""
    branch = next_id(world, "code_branches")
    values = {"forked_from": None, "name": name, "visibility": "private"}
    return [
        *project_added(world, values, {"name": "main", "origin": None}),
        Added("code_files", {"branch": branch, "path": "README.md"}),
    ]


def _readme_holds(world: World, texts: Sequence[str]) -> QueryReturns:
    """Return an evaluator for a README of the new project that includes these texts."""
    branch = next_id(world, "code_branches")
    where = " AND ".join(["instr(b.content, ?)"] * len(texts))
    query = (
        f"SELECT COUNT(*) FROM code_files f JOIN code_blobs b ON b.id = f.blob WHERE f.branch = {branch} AND {where}"
    )
    return QueryReturns(query, [[1]], list(texts))


def _project_with(world: World, name: str, texts: Sequence[str]) -> ExpectedResult:
    return [*_project_with_file(world, name), _readme_holds(world, texts)]


def _create_with_readme(page: PageReader, name: str, texts: Sequence[str]) -> Iterator[str]:
    """Create a private project with a README, and replace the text of that file."""
    yield page.goto(f"{ORIGINS['code']}/")
    yield from code_steps.create_project(page, name, "private")
    yield from code_steps.open_file(page, "README.md")
    yield page.click("link", "Edit")
    yield page.type("Content of the file", "\n".join([f"# {name}", "", *(f"- {text}" for text in texts)]))
    yield page.click("button", "Commit changes")


_FREE = ("code_blobs", "code_commits")


def _clear_discussed(world: World) -> Iterator[Params]:
    """Yield boards with a gap in the numbers of comments after the two or three most discussed posts."""
    for board in forum_queries.boards(world):
        query = "SELECT comments FROM posts WHERE board_name = ? ORDER BY comments DESC"
        counts = forum_queries.column(world, query, board)
        yield from ({"board": board, "count": n} for n in (2, 3) if counts[n - 1] > counts[n])


def _discussed(world: World, board: str, count: int) -> list[str]:
    query = "SELECT title FROM posts WHERE board_name = ? ORDER BY comments DESC LIMIT ?"
    return _post_urls(world, forum_queries.column(world, query, board, count))


def _collect_discussed(page: PageReader, board: str, count: int, name: str, tab: str = "Most commented") -> Steps[None]:
    yield from forum_steps.open_board(page, board, tab)
    urls = yield from _visit(page, count)
    yield from _create_with_readme(page, name, urls)


discussed_to_readme = Template(
    "code-and-forum",
    ("forum", "code"),
    "across-discussed-to-readme",
    "change",
    "hard",
    since=2,
    intents=(
        'Create a private project "{name}" under my own name. Its README.md includes the links to the {count} posts '
        "with the most comments on the forum board {board}.",
        "Which {count} posts on the board {board} of the forum have the most comments? Put their URLs into the "
        'README.md of a new private project of mine, "{name}".',
        'Start the private project "{name}" in my namespace, with a README.md that lists the addresses of the {count} '
        "most commented posts of {board} in the forum.",
    ),
    instances=choose(_clear_discussed, name=phrases.PROJECTS),
    expected=lambda world, board, count, name: _project_with(world, name, _discussed(world, board, count)),
    free=_FREE,
    solution=_collect_discussed,
    mistake=lambda page, board, count, name: _collect_discussed(page, board, count - 1, name),
)


def _creators(world: World) -> list[Params]:
    return [{"person": one.name} for one in lore(world).people if len(one.works) > 2]


def _works(world: World, person: str) -> list[str]:
    return [title for title, _ in next(one for one in lore(world).people if one.name == person).works]


def _collect_works(page: PageReader, person: str, name: str, most: int = 9) -> Steps[None]:
    yield from open_article(page, person)
    texts = page.texts(after="Career")
    listed = texts[texts.index("Works") + 1 :]
    titles = [title for title, year in pairwise(listed) if re.fullmatch(r"\d{4}", year)]
    yield from _create_with_readme(page, name, titles[:most])


works_to_readme = Template(
    "code-and-forum",
    ("encyclopedia", "code"),
    "encyclopedia-works-to-readme",
    "change",
    "hard",
    since=2,
    intents=(
        'Create a private project "{name}" under my own name whose README.md lists the titles of all works of {person} '
        "that the encyclopedia names.",
        'Start the private project "{name}" of mine for the admirers of {person}: in its README.md, write the titles '
        "of all works from the article in the encyclopedia.",
        'Which works of {person} does the encyclopedia list? Put all the titles into the README.md of "{name}", a new '
        "private project in my namespace.",
    ),
    instances=choose(_creators, sample=40, name=phrases.PROJECTS),
    expected=lambda world, person, name: _project_with(world, name, _works(world, person)),
    free=_FREE,
    solution=_collect_works,
    mistake=lambda page, person, name: _collect_works(page, person, name, 1),
)


def _architects(world: World, rng: Random) -> Iterator[Params]:
    """Yield architects of museums, with places from which to go there."""
    known = map_queries.unique_names(world)
    places = [row["name"] for row in map_queries.places(world, "p.house IS NOT NULL")]
    for one in lore(world).landmarks:
        if one.category == "museum" and one.name in known:
            yield {"architect": one.architect.name, "start": rng.choice(places)}


def _directions(world: World, architect: str, start: str) -> EndsOn:
    params = {"start": start, "end": museum(world, architect).name, "mode": "by car"}
    return EndsOn(map_queries.directions(world, params))


def _show_way(page: PageReader, architect: str, start: str, mode: str = "by car") -> Steps[str]:
    yield from open_article(page, architect)
    name = museum_on_page(page)
    yield page.goto(f"{ORIGINS['maps']}/")
    yield from map_steps.request_directions(page, start, name, mode)
    return map_steps.read_summary(page).time


def _leave_on_page(page: PageReader, architect: str, start: str, mode: str = "by car") -> Steps[None]:
    yield from _show_way(page, architect, start, mode)


way_to_museum = Template(
    "maps",
    ("encyclopedia", "maps"),
    "encyclopedia-way-to-museum",
    "navigation",
    "medium",
    since=2,
    intents=(
        "Show me the way by car from {start} to the museum that {architect} designed.",
        "Which museum is by {architect}, according to the encyclopedia? Bring up the directions from {start} to it, by "
        "car.",
        "I want to drive from {start} to the museum by the architect {architect}. Leave the directions on the map's "
        "page.",
    ),
    instances=_architects,
    expected=_directions,
    solution=_leave_on_page,
    mistake=lambda page, architect, start: _leave_on_page(page, architect, start, "by bicycle"),
)


def _time_to_museum(world: World, architect: str, start: str) -> Says:
    return map_queries.travel_time(world, "car", start, museum(world, architect).name)


time_to_museum = Template(
    "maps",
    ("encyclopedia", "maps"),
    "encyclopedia-time-to-museum",
    "information",
    "medium",
    since=2,
    intents=(
        "How long does it take to drive from {start} to the museum that {architect} designed?",
        "{architect} designed a museum. What is the travel time by car from {start} to it, according to the map?",
        "Find out which museum is by {architect}, and tell me how long the drive there from {start} takes.",
    ),
    instances=_architects,
    expected=_time_to_museum,
    solution=_show_way,
    mistake=lambda page, architect, start: _show_way(page, architect, start, "by bicycle"),
)

_REVIEWS = (
    "SELECT r.title FROM shop_reviews r JOIN shop_products p ON p.id = r.product WHERE p.name = ? "
    "AND r.status = 'approved' AND r.rating <= 2 ORDER BY r.id"
)


def _disliked(world: World) -> list[Params]:
    """Return products with two to six bad reviews among others."""
    query = (
        "SELECT p.name AS product FROM shop_reviews r JOIN shop_products p ON p.id = r.product "
        "WHERE r.status = 'approved' AND p.enabled GROUP BY p.id HAVING SUM(r.rating <= 2) BETWEEN 2 AND 6 "
        "AND COUNT(*) <= 24 AND SUM(r.rating > 2) > 0 ORDER BY p.id"
    )
    return [dict(row) for row in world.rows(query)]


def _feedback(world: World, product: str, board: str) -> Added:
    titles = [row["title"] for row in world.rows(_REVIEWS, product)]
    values = {"author": forum_queries.ME, "board": forum_queries.board(world, board), "url": None}
    return Added("forum_posts", {**values, "title": f"Real feedback on {product}", "body": _listed(titles)})


def _gather(page: PageReader, product: str, board: str, most: int = 2) -> Steps[None]:
    reviews = yield from shop_steps.all_reviews(page, product)
    titles = [review.title for review in reviews if review.stars <= most]
    yield from post_in_forum(page, board, f"Real feedback on {product}", "\n\n".join(titles) or "none")


feedback_to_post = Template(
    "shopping",
    ("shop", "forum"),
    "across-feedback-to-post",
    "change",
    "hard",
    since=2,
    intents=(
        "Gather the titles of all reviews of the {product} with two stars or fewer in the shop, and post them on the "
        'forum board {board} under the title "Real feedback on {product}".',
        'Write a post on {board} in the forum, titled "Real feedback on {product}". Its text has the headlines of '
        "every review in the shop that gives this product one or two stars.",
        "Collect the headlines of the one-star and two-star reviews that the {product} has in the shop. Post all of "
        'them on the board {board} of the forum; the title is "Real feedback on {product}".',
    ),
    instances=choose(_disliked, board=forum_queries.boards),
    expected=_feedback,
    solution=_gather,
    mistake=lambda page, product, board: _gather(page, product, board, 0),
)


def _promoted(world: World, project: str, board: str) -> Added:
    found = code_queries.project(world, project)
    values = {"author": forum_queries.ME, "board": forum_queries.board(world, board)}
    url = code_queries.address(world, project)
    return Added("forum_posts", {**values, "title": found["description"], "url": re.compile(rf"{re.escape(url)}/?")})


def _promote(page: PageReader, project: str, board: str, title: str = "") -> Steps[None]:
    yield from code_steps.open_project(page, project)
    address, texts = page.url, page.texts(after="Project")
    about = next(text for text in texts if len(text) > 25 and text.endswith("."))
    yield page.goto(f"{ORIGINS['forum']}/")
    yield page.click("link", "Submit")
    yield page.choose("Board", board)
    yield page.type("Title", title or about)
    yield page.type("URL", address)
    yield page.click("button", "Post")


promote_project = Template(
    "code-and-forum",
    ("code", "forum"),
    "across-promote-project",
    "change",
    "hard",
    since=2,
    intents=(
        "Promote the project {project} on the forum board {board}: a link to its page, with the description from the "
        "project itself as the title.",
        "Post a link to the page of {project} on {board} in the forum. The title of the post is how the project "
        "describes itself, word for word.",
        "On the board {board} of the forum, submit the address of the project {project}. Take its own description as "
        "the title.",
    ),
    instances=choose(
        lambda world: code_queries.select(
            world, "SELECT path AS project FROM projects WHERE visibility = 'public' AND NOT archived"
        ),
        times=2,
        board=forum_queries.boards,
    ),
    expected=_promoted,
    solution=_promote,
    mistake=lambda page, project, board: _promote(page, project, board, "A project that I like"),
)

_SUBJECTS = {
    "cooking": "cooking", "gardening": "gardening", "photography": "photography", "railway": "railways",
    "games": "boardgames", "chess": "boardgames", "music": "guitar", "library": "books", "citations": "books",
    "compiler": "coding", "scripting": "coding", "recipes": "cooking", "astronomy": "astronomy", "finance": "frugal",
    "heating": "homerepair", "cycling": "cycling", "images": "photography", "words": "books",
}  # fmt: skip
"""Boards on the subjects of topics."""


def _with_topic(world: World, topic: str) -> list[str]:
    """Return the projects that the list of projects shows for a topic."""
    query = "SELECT path FROM projects WHERE ', ' || topics || ',' LIKE '%, ' || ? || ',%'"
    return [str(path) for path in code_queries.column(world, query, topic)]


def _topics(world: World) -> Iterator[Params]:
    """Yield topics of a single project whose subject has a board in this world."""
    known = set(forum_queries.boards(world))
    for topic, board in _SUBJECTS.items():
        if board in known and len(_with_topic(world, topic)) == 1:
            yield {"topic": topic}


def _linked(world: World, topic: str) -> Added:
    (project,) = _with_topic(world, topic)
    values = {"author": forum_queries.ME, "board": forum_queries.board(world, _SUBJECTS[topic])}
    url = code_queries.address(world, project)
    return Added("forum_posts", {**values, "url": re.compile(rf"{re.escape(url)}/?")})


def _link(page: PageReader, topic: str, board: str = "") -> Steps[None]:
    yield page.click("link", "Explore")
    yield page.type("Topic", topic, enter=True)
    yield page.click("link", re.compile(r".+ / .+"))
    address = page.url
    yield page.goto(f"{ORIGINS['forum']}/")
    yield page.click("link", "Submit")
    yield page.choose("Board", board or _SUBJECTS[topic])
    yield page.type("Title", f"A project about {topic}")
    yield page.type("URL", address)
    yield page.click("button", "Post")


link_project = Template(
    "code-and-forum",
    ("code", "forum"),
    "across-link-project",
    "change",
    "hard",
    since=2,
    intents=(
        'Find the project with the topic "{topic}", and post a link to it on the board of '
        "the forum whose subject fits best.",
        'Which project has the topic "{topic}"? Make a post in the forum that links to its page, '
        "on the most relevant board (not a board for questions or news of all kinds).",
        'People in the forum might like the project with the topic "{topic}". Submit its address to the board that is '
        "about this, and choose the title yourself.",
    ),
    instances=_topics,
    expected=_linked,
    solution=_link,
    mistake=lambda page, topic: _link(page, topic, "news"),
)

TEMPLATES = (
    newest_urls_to_file,
    discussed_to_readme,
    works_to_readme,
    way_to_museum,
    time_to_museum,
    feedback_to_post,
    promote_project,
    link_project,
)

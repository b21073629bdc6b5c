"""Pages of a board, of a new post and of a new board."""

from __future__ import annotations

import re

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import flairs, load_board, require_may_write, sidebar
from agentgym_envs.webarena.sites.forum.listing import LISTED, SORTS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
MOST_TITLE, MOST_BODY = 150, 8_000
_BOARD_FIELDS = ("name", "title", "description", "sidebar")
_POST_FIELDS = ("title", "url", "body", "flair", "board")
_NAME = re.compile(r"[A-Za-z0-9_]{3,24}")
_URL = re.compile(r"https?://[^\s<>\"']{1,500}")


@routes.get("/boards/new")
def new_board(context: RequestContext) -> Response:
    """Show the form for a new board."""
    context.require_login()
    return context.page("board_new.html", values=dict.fromkeys(_BOARD_FIELDS, ""), error="")


@routes.post("/boards/new")
def open_board(context: RequestContext) -> Response:
    """Create a board. Its creator becomes a moderator and a subscriber."""
    context.require_login()
    values = {key: context.form.text(key, most=2_000) for key in _BOARD_FIELDS}
    error = _board_error(context, values)
    if error:
        return context.page("board_new.html", values=values, error=error, status=422)
    board = context.write(
        "INSERT INTO forum_boards (name, title, description, sidebar, created) VALUES (?, ?, ?, ?, ?)",
        *values.values(),
        stamp(),
    )
    context.write("INSERT INTO forum_moderators (board, user, since) VALUES (?, ?, ?)", board, context.account, stamp())
    context.write("INSERT INTO forum_subscriptions (account, board) VALUES (?, ?)", context.account, board)
    context.flash(f"The board {values['name']} is open.")
    return Redirect(f"/b/{values['name']}")


def _board_error(context: RequestContext, values: dict[str, str]) -> str:
    if not _NAME.fullmatch(values["name"]):
        return "A name has 3 to 24 letters, digits or underscores."
    if context.row("SELECT 1 FROM forum_boards WHERE name = ?", values["name"]):
        return "There is a board of that name already."
    if not values["title"] or len(values["title"]) > 80:
        return "A title has 1 to 80 characters."
    if not values["description"] or len(values["description"]) > 300:
        return "A description has 1 to 300 characters."
    return ""


@routes.get("/submit")
def submit_anywhere(context: RequestContext) -> Response:
    """Show the form for a post, with a choice of boards."""
    context.require_login()
    return _form(context, "", dict.fromkeys(_POST_FIELDS, ""), "")


@routes.post("/submit")
def create_anywhere(context: RequestContext) -> Response:
    """Create a post in the board that the form names."""
    return _create(context, "", context.form.text("board", most=50))


@routes.get("/b/{name}/submit")
def submit(context: RequestContext, name: str) -> Response:
    """Show the form for a post in this board."""
    context.require_login()
    return _form(context, load_board(context, name)["name"], dict.fromkeys(_POST_FIELDS, ""), "")


@routes.post("/b/{name}/submit")
def create(context: RequestContext, name: str) -> Response:
    """Create a post in this board."""
    return _create(context, name, name)


@routes.get("/b/{name}")
@routes.get("/b/{name}/{sort}")
def board(context: RequestContext, name: str, sort: str = "hot") -> Response:
    """List the posts of a board. Pinned posts come first in the order "hot"."""
    if sort not in SORTS:
        raise NotFound
    shown = load_board(context, name)
    result = listing.posts(context, f"{LISTED} AND p.board = ?2", shown["id"], sort=sort, pinned_first=sort == "hot")
    return context.page("board.html", result=result, **sidebar(context, shown))


def _form(context: RequestContext, fixed: str, values: dict[str, str], error: str) -> Response:
    """Return the form for a post. `fixed` is the board of the post; if it is empty, the form has a choice of boards."""
    names = [row["name"] for row in context.rows("SELECT name FROM forum_boards ORDER BY name")]
    choices = flairs(context, load_board(context, fixed)["id"]) if fixed else []
    return context.page(
        "submit.html",
        fixed=fixed,
        names=[("", "Choose a board"), *((name, name) for name in names)],
        flairs=[(str(number), name) for number, name in choices],
        values=values,
        error=error,
        status=422 if error else 200,
    )


def _create(context: RequestContext, fixed: str, name: str) -> Response:
    context.require_login()
    values = {key: context.form.text(key) for key in _POST_FIELDS} | {"board": name}
    row = context.row("SELECT id, name FROM forum_boards WHERE name = ?", name)
    if row is None and fixed:
        raise NotFound
    error = post_error(values) if row else "Choose a board."
    if row is None or error:
        return _form(context, fixed, values, error)
    require_may_write(context, row["id"])
    flair = context.value(
        "SELECT id FROM forum_flairs WHERE id = ? AND board = ?", context.form.number("flair"), row["id"]
    )
    url = values["url"] or None
    post = context.write(
        "INSERT INTO forum_posts (board, author, flair, title, body, url, domain, created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        *(row["id"], context.account, flair, values["title"], values["body"], url),
        url and url.split("/")[2],
        stamp(),
    )
    context.flash("Your post is up.")
    return Redirect(f"/b/{row['name']}/{post}")


def post_error(values: dict[str, str]) -> str:
    """Return the reason why a post is invalid, or ""."""
    if not values["title"]:
        return "A post needs a title."
    if len(values["title"]) > MOST_TITLE:
        return f"A title has at most {MOST_TITLE} characters."
    if len(values["body"]) > MOST_BODY:
        return f"A text has at most {MOST_BODY} characters."
    if values.get("url") and not _URL.fullmatch(values["url"]):
        return "That is no address of a page. It begins with http:// or https://."
    return ""

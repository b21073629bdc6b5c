"""A board's own page, writing a post in it, and opening a board."""

from __future__ import annotations

import re

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import aside, board_of, flairs, may_write
from agentgym_envs.webarena.sites.forum.listing import SHOWN, SORTS
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
    """The form that opens a board."""
    context.require_login()
    return context.page("board_new.html", values=dict.fromkeys(_BOARD_FIELDS, ""), error="")


@routes.post("/boards/new")
def open_board(context: RequestContext) -> Response:
    """Open a board; who does moderates it and subscribes to it."""
    context.require_login()
    values = {key: context.form.text(key, most=2_000) for key in _BOARD_FIELDS}
    error = _wrong_with_board(context, values)
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


def _wrong_with_board(context: RequestContext, values: dict[str, str]) -> str:
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
    """The form for a post, with a list of boards to choose from."""
    context.require_login()
    return _form(context, "", dict.fromkeys(_POST_FIELDS, ""), "")


@routes.post("/submit")
def submitted_anywhere(context: RequestContext) -> Response:
    """A post in the board that the form names."""
    return _submitted(context, "", context.form.text("board", most=50))


@routes.get("/b/{name}/submit")
def submit(context: RequestContext, name: str) -> Response:
    """The form for a post in this board."""
    context.require_login()
    return _form(context, board_of(context, name)["name"], dict.fromkeys(_POST_FIELDS, ""), "")


@routes.post("/b/{name}/submit")
def submitted(context: RequestContext, name: str) -> Response:
    """A post in this board."""
    return _submitted(context, name, name)


@routes.get("/b/{name}")
@routes.get("/b/{name}/{sort}")
def board(context: RequestContext, name: str, sort: str = "hot") -> Response:
    """The posts of a board, pinned ones first while the liveliest lead."""
    if sort not in SORTS:
        raise NotFound
    shown = board_of(context, name)
    found = listing.posts(context, f"{SHOWN} AND p.board = ?2", shown["id"], sort=sort, pinned_first=sort == "hot")
    return context.page("board.html", found=found, **aside(context, shown))


def _form(context: RequestContext, fixed: str, values: dict[str, str], error: str) -> Response:
    """`fixed` is the board of whose page the form is a part; without one, any may be chosen."""
    names = [row["name"] for row in context.rows("SELECT name FROM forum_boards ORDER BY name")]
    choices = flairs(context, board_of(context, fixed)["id"]) if fixed else []
    return context.page(
        "submit.html",
        fixed=fixed,
        names=[("", "Choose a board"), *((name, name) for name in names)],
        flairs=[(str(number), name) for number, name in choices],
        values=values,
        error=error,
        status=422 if error else 200,
    )


def _submitted(context: RequestContext, fixed: str, name: str) -> Response:
    context.require_login()
    values = {key: context.form.text(key) for key in _POST_FIELDS} | {"board": name}
    found = context.row("SELECT id, name FROM forum_boards WHERE name = ?", name)
    if found is None and fixed:
        raise NotFound
    error = wrong_with_post(values) if found else "Choose a board."
    if found is None or error:
        return _form(context, fixed, values, error)
    may_write(context, found["id"])
    flair = context.value(
        "SELECT id FROM forum_flairs WHERE id = ? AND board = ?", context.form.number("flair"), found["id"]
    )
    url = values["url"] or None
    post = context.write(
        "INSERT INTO forum_posts (board, author, flair, title, body, url, domain, created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        *(found["id"], context.account, flair, values["title"], values["body"], url),
        url and url.split("/")[2],
        stamp(),
    )
    context.flash("Your post is up.")
    return Redirect(f"/b/{found['name']}/{post}")


def wrong_with_post(values: dict[str, str]) -> str:
    """Why a post cannot be like this; nothing if it can."""
    if not values["title"]:
        return "A post needs a title."
    if len(values["title"]) > MOST_TITLE:
        return f"A title has at most {MOST_TITLE} characters."
    if len(values["body"]) > MOST_BODY:
        return f"A text has at most {MOST_BODY} characters."
    if values.get("url") and not _URL.fullmatch(values["url"]):
        return "That is no address of a page. It begins with http:// or https://."
    return ""

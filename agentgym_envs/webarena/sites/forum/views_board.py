"""A board's own page, writing a post in it, and opening a board."""

from __future__ import annotations

import re

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import aside, board_of, flairs, may_write
from agentgym_envs.webarena.sites.forum.listing import SHOWN, SORTS
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
MOST_TITLE, MOST_BODY = 150, 8_000
_BOARD_FIELDS = ("name", "title", "description", "sidebar")
_POST_FIELDS = ("title", "url", "body", "flair", "board")
_NAME = re.compile(r"[A-Za-z0-9_]{3,24}")
_URL = re.compile(r"https?://[^\s<>\"']{1,500}")


@routes.get("/boards/new")
def new_board(visit: RequestContext) -> Response:
    """The form that opens a board."""
    visit.must_be_signed_in()
    return visit.page("board_new.html", values=dict.fromkeys(_BOARD_FIELDS, ""), wrong="")


@routes.post("/boards/new")
def open_board(visit: RequestContext) -> Response:
    """Open a board; who does moderates it and subscribes to it."""
    visit.must_be_signed_in()
    values = {key: visit.form.text(key, most=2_000) for key in _BOARD_FIELDS}
    wrong = _wrong_with_board(visit, values)
    if wrong:
        return visit.page("board_new.html", values=values, wrong=wrong, status=422)
    board = visit.write(
        "INSERT INTO forum_boards (name, title, description, sidebar, created) VALUES (?, ?, ?, ?, ?)",
        *values.values(),
        stamp(),
    )
    visit.write("INSERT INTO forum_moderators (board, user, since) VALUES (?, ?, ?)", board, visit.account, stamp())
    visit.write("INSERT INTO forum_subscriptions (account, board) VALUES (?, ?)", visit.account, board)
    visit.say(f"The board {values['name']} is open.")
    return Redirect(f"/b/{values['name']}")


def _wrong_with_board(visit: RequestContext, values: dict[str, str]) -> str:
    if not _NAME.fullmatch(values["name"]):
        return "A name has 3 to 24 letters, digits or underscores."
    if visit.row("SELECT 1 FROM forum_boards WHERE name = ?", values["name"]):
        return "There is a board of that name already."
    if not values["title"] or len(values["title"]) > 80:
        return "A title has 1 to 80 characters."
    if not values["description"] or len(values["description"]) > 300:
        return "A description has 1 to 300 characters."
    return ""


@routes.get("/submit")
def submit_anywhere(visit: RequestContext) -> Response:
    """The form for a post, with a list of boards to choose from."""
    visit.must_be_signed_in()
    return _form(visit, "", dict.fromkeys(_POST_FIELDS, ""), "")


@routes.post("/submit")
def submitted_anywhere(visit: RequestContext) -> Response:
    """A post in the board that the form names."""
    return _submitted(visit, "", visit.form.text("board", most=50))


@routes.get("/b/{name}/submit")
def submit(visit: RequestContext, name: str) -> Response:
    """The form for a post in this board."""
    visit.must_be_signed_in()
    return _form(visit, board_of(visit, name)["name"], dict.fromkeys(_POST_FIELDS, ""), "")


@routes.post("/b/{name}/submit")
def submitted(visit: RequestContext, name: str) -> Response:
    """A post in this board."""
    return _submitted(visit, name, name)


@routes.get("/b/{name}")
@routes.get("/b/{name}/{sort}")
def board(visit: RequestContext, name: str, sort: str = "hot") -> Response:
    """The posts of a board, pinned ones first while the liveliest lead."""
    if sort not in SORTS:
        raise Missing
    shown = board_of(visit, name)
    found = listing.posts(visit, f"{SHOWN} AND p.board = ?2", shown["id"], sort=sort, pinned_first=sort == "hot")
    return visit.page("board.html", found=found, **aside(visit, shown))


def _form(visit: RequestContext, fixed: str, values: dict[str, str], wrong: str) -> Response:
    """`fixed` is the board of whose page the form is a part; without one, any may be chosen."""
    names = [row["name"] for row in visit.rows("SELECT name FROM forum_boards ORDER BY name")]
    choices = flairs(visit, board_of(visit, fixed)["id"]) if fixed else []
    return visit.page(
        "submit.html",
        fixed=fixed,
        names=[("", "Choose a board"), *((name, name) for name in names)],
        flairs=[(str(number), name) for number, name in choices],
        values=values,
        wrong=wrong,
        status=422 if wrong else 200,
    )


def _submitted(visit: RequestContext, fixed: str, name: str) -> Response:
    visit.must_be_signed_in()
    values = {key: visit.form.text(key) for key in _POST_FIELDS} | {"board": name}
    found = visit.row("SELECT id, name FROM forum_boards WHERE name = ?", name)
    if found is None and fixed:
        raise Missing
    wrong = wrong_with_post(values) if found else "Choose a board."
    if found is None or wrong:
        return _form(visit, fixed, values, wrong)
    may_write(visit, found["id"])
    flair = visit.value(
        "SELECT id FROM forum_flairs WHERE id = ? AND board = ?", visit.form.number("flair"), found["id"]
    )
    url = values["url"] or None
    post = visit.write(
        "INSERT INTO forum_posts (board, author, flair, title, body, url, domain, created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        *(found["id"], visit.account, flair, values["title"], values["body"], url),
        url and url.split("/")[2],
        stamp(),
    )
    visit.say("Your post is up.")
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

"""A post with its comments, and actions of its author."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import flairs, is_moderator, load_board, sidebar
from agentgym_envs.webarena.sites.forum.views_board import post_error
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
SORTS = {
    "best": lambda row: (-row["score"], row["id"]),
    "new": lambda row: (-row["id"],),
    "old": lambda row: (row["id"],),
    "worst": lambda row: (row["score"], row["id"]),
}
_COMMENTS_PER_PAGE = 14


@routes.get("/b/{name}/{post:int}")
def show(context: RequestContext, name: str, post: int) -> Response:
    """Show a post and its comments."""
    shown = listing.load_post(context, name, post)
    sort = context.query.choice("sort", list(SORTS), "best")
    tree = Tree(listing.thread(context, post), sort)
    pages = tree.pages()
    paging = Paging.of(context.query, len(pages), 1)
    rows = pages[paging.page - 1] if pages else []
    return _page(context, shown, rows, tree, paging=paging, sort=sort)


@routes.get("/b/{name}/{post:int}/comment/{comment:int}")
def show_comment(context: RequestContext, name: str, post: int, comment: int) -> Response:
    """Show one comment with its replies."""
    shown = listing.load_post(context, name, post)
    tree = Tree(listing.thread(context, post), "best")
    rows = list(tree.below(comment))
    if not rows:
        raise NotFound
    return _page(context, shown, rows[:_COMMENTS_PER_PAGE], tree, paging=Paging(1, 1, 1), single=comment)


def _page(
    context: RequestContext,
    post: sqlite3.Row,
    rows: Sequence[tuple[int, sqlite3.Row]],
    tree: Tree,
    *,
    paging: Paging,
    sort: str = "best",
    single: int = 0,
) -> Response:
    board = load_board(context, post["board_name"])
    choices = flairs(context, board["id"]) if post["author"] == context.account or board["moderated"] else []
    return context.page(
        "post.html",
        post=post,
        rows=rows,
        authors=tree.authors,
        paging=paging,
        sort=sort,
        single=single,
        may_comment=_open_to(context, post, board),
        flairs=choices,
        **sidebar(context, board),
    )


def _open_to(context: RequestContext, post: sqlite3.Row, board: sqlite3.Row) -> bool:
    """Return True if the page may offer a comment form. The handler of new comments checks the permission itself."""
    gone = post["deleted"] or post["removed"] or board["banned"]
    return bool(context.account and not gone and (not post["locked"] or board["moderated"]))


class Tree:
    """The comments by parent. Siblings are sorted. Deleted comments without replies are left out."""

    def __init__(self, rows: Sequence[sqlite3.Row], sort: str) -> None:
        self._sort = SORTS[sort]
        self._rows = {row["id"]: row for row in rows}
        self.authors = {row["id"]: row["author_name"] for row in rows}
        self._replies: dict[int, list[sqlite3.Row]] = {}
        for row in reversed(rows):
            gone = row["deleted"] or row["removed"]
            if not gone or row["id"] in self._replies:
                self._replies.setdefault(row["parent"] or 0, []).append(row)

    def pages(self) -> list[list[tuple[int, sqlite3.Row]]]:
        """Return pages of (depth, comment). A top-level thread is only split if it is longer than a page."""
        pages: list[list[tuple[int, sqlite3.Row]]] = []
        for row in sorted(self._replies.get(0, ()), key=self._sort):
            thread = list(self.below(row["id"]))
            if pages and len(pages[-1]) + len(thread) <= _COMMENTS_PER_PAGE:
                pages[-1].extend(thread)
            else:
                starts = range(0, len(thread), _COMMENTS_PER_PAGE)
                pages.extend(thread[start : start + _COMMENTS_PER_PAGE] for start in starts)
        return pages

    def below(self, comment: int) -> Iterator[tuple[int, sqlite3.Row]]:
        """Yield a comment and all replies below it with their depths, in depth-first order."""
        waiting = [(0, self._rows[comment])] if comment in self._rows else []
        while waiting:
            depth, row = waiting.pop()
            yield depth, row
            replies = sorted(self._replies.get(row["id"], ()), key=self._sort)
            waiting.extend((depth + 1, reply) for reply in reversed(replies))


@routes.get("/b/{name}/{post:int}/edit")
def edit(context: RequestContext, name: str, post: int) -> Response:
    """Show the form for the author of a post."""
    own = _own(context, name, post)
    return context.page("post_edit.html", post=own, values=dict(own), error="")


@routes.post("/b/{name}/{post:int}/edit")
def save(context: RequestContext, name: str, post: int) -> Response:
    """Save the title and the text."""
    own = _own(context, name, post)
    values = {"title": context.form.text("title"), "body": context.form.text("body")}
    error = post_error(values)
    if error:
        return context.page("post_edit.html", post=own, values=values, error=error, status=422)
    context.write(
        "UPDATE forum_posts SET title = ?, body = ?, edited = ? WHERE id = ?", *values.values(), stamp(), post
    )
    context.flash("Your post has been changed.")
    return Redirect(f"/b/{own['board_name']}/{post}")


@routes.post("/b/{name}/{post:int}/delete")
def delete(context: RequestContext, name: str, post: int) -> Response:
    """Delete a post of the account."""
    own = _own(context, name, post)
    context.write("UPDATE forum_posts SET deleted = 1 WHERE id = ?", post)
    context.flash("Your post has been deleted.")
    return Redirect(f"/b/{own['board_name']}")


@routes.post("/b/{name}/{post:int}/flair")
def set_flair(context: RequestContext, name: str, post: int) -> Response:
    """Set or remove the flair of a post."""
    context.require_login()
    row = listing.load_post(context, name, post)
    context.require(row["author"] == context.account or is_moderator(context, row["board"]))
    query = "SELECT id FROM forum_flairs WHERE id = ? AND board = ?"
    flair = context.value(query, context.form.number("flair"), row["board"])
    context.write("UPDATE forum_posts SET flair = ? WHERE id = ?", flair, post)
    context.flash("The flair has been set." if flair else "The flair has been taken off.")
    return Redirect(f"/b/{row['board_name']}/{post}")


def _own(context: RequestContext, name: str, number: int) -> sqlite3.Row:
    """Return a post of the account that is not deleted. Raises Forbidden if another account wrote it."""
    context.require_login()
    row = listing.load_post(context, name, number)
    context.require(row["author"] == context.account, "Only who wrote a post may change it.")
    if row["deleted"]:
        raise NotFound
    return row

"""A post with its thread, and what its author does to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from agentgym_envs.webarena.sites.clock import stamp
from agentgym_envs.webarena.sites.forum import listing
from agentgym_envs.webarena.sites.forum.boards import aside, board_of, flairs, moderates
from agentgym_envs.webarena.sites.forum.views_board import wrong_with_post
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Missing, Redirect, Response
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
def show(visit: RequestContext, name: str, post: int) -> Response:
    """A post and its comments."""
    shown = listing.post_of(visit, name, post)
    sort = visit.query.choice("sort", list(SORTS), "best")
    tree = Tree(listing.thread(visit, post), sort)
    pages = tree.pages()
    paging = Paging.of(visit.query, len(pages), 1)
    rows = pages[paging.page - 1] if pages else []
    return _page(visit, shown, rows, tree, paging=paging, sort=sort)


@routes.get("/b/{name}/{post:int}/comment/{comment:int}")
def show_comment(visit: RequestContext, name: str, post: int, comment: int) -> Response:
    """One comment of a thread, with the replies to it."""
    shown = listing.post_of(visit, name, post)
    tree = Tree(listing.thread(visit, post), "best")
    rows = list(tree.below(comment))
    if not rows:
        raise Missing
    return _page(visit, shown, rows[:_COMMENTS_PER_PAGE], tree, paging=Paging(1, 1, 1), single=comment)


def _page(
    visit: RequestContext,
    post: sqlite3.Row,
    rows: Sequence[tuple[int, sqlite3.Row]],
    tree: Tree,
    *,
    paging: Paging,
    sort: str = "best",
    single: int = 0,
) -> Response:
    board = board_of(visit, post["board_name"])
    choices = flairs(visit, board["id"]) if post["author"] == visit.account or board["moderated"] else []
    return visit.page(
        "post.html",
        post=post,
        rows=rows,
        authors=tree.authors,
        paging=paging,
        sort=sort,
        single=single,
        may_comment=_open_to(visit, post, board),
        flairs=choices,
        **aside(visit, board),
    )


def _open_to(visit: RequestContext, post: sqlite3.Row, board: sqlite3.Row) -> bool:
    """Whether the account may comment on a post; the handler of comments decides for itself."""
    gone = post["deleted"] or post["removed"] or board["banned"]
    return bool(visit.account and not gone and (not post["locked"] or board["moderated"]))


class Tree:
    """Comments by what they answer. Siblings are sorted; those without words and without replies are left out."""

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
        """The comments with their depths, on as many pages as it takes; only a long thread is cut."""
        found: list[list[tuple[int, sqlite3.Row]]] = []
        for row in sorted(self._replies.get(0, ()), key=self._sort):
            thread = list(self.below(row["id"]))
            if found and len(found[-1]) + len(thread) <= _COMMENTS_PER_PAGE:
                found[-1].extend(thread)
            else:
                starts = range(0, len(thread), _COMMENTS_PER_PAGE)
                found.extend(thread[start : start + _COMMENTS_PER_PAGE] for start in starts)
        return found

    def below(self, comment: int) -> Iterator[tuple[int, sqlite3.Row]]:
        """A comment and all replies to it with their depths, each before its own replies."""
        waiting = [(0, self._rows[comment])] if comment in self._rows else []
        while waiting:
            depth, row = waiting.pop()
            yield depth, row
            replies = sorted(self._replies.get(row["id"], ()), key=self._sort)
            waiting.extend((depth + 1, reply) for reply in reversed(replies))


@routes.get("/b/{name}/{post:int}/edit")
def edit(visit: RequestContext, name: str, post: int) -> Response:
    """The form in which an author changes a post."""
    own = _own(visit, name, post)
    return visit.page("post_edit.html", post=own, values=dict(own), wrong="")


@routes.post("/b/{name}/{post:int}/edit")
def edited(visit: RequestContext, name: str, post: int) -> Response:
    """Change the title and the text."""
    own = _own(visit, name, post)
    values = {"title": visit.form.text("title"), "body": visit.form.text("body")}
    wrong = wrong_with_post(values)
    if wrong:
        return visit.page("post_edit.html", post=own, values=values, wrong=wrong, status=422)
    visit.write("UPDATE forum_posts SET title = ?, body = ?, edited = ? WHERE id = ?", *values.values(), stamp(), post)
    visit.say("Your post has been changed.")
    return Redirect(f"/b/{own['board_name']}/{post}")


@routes.post("/b/{name}/{post:int}/delete")
def delete(visit: RequestContext, name: str, post: int) -> Response:
    """Take one's own post away."""
    own = _own(visit, name, post)
    visit.write("UPDATE forum_posts SET deleted = 1 WHERE id = ?", post)
    visit.say("Your post has been deleted.")
    return Redirect(f"/b/{own['board_name']}")


@routes.post("/b/{name}/{post:int}/flair")
def set_flair(visit: RequestContext, name: str, post: int) -> Response:
    """Give a post one of the board's flairs, or none."""
    visit.must_be_signed_in()
    found = listing.post_of(visit, name, post)
    visit.must(found["author"] == visit.account or moderates(visit, found["board"]))
    query = "SELECT id FROM forum_flairs WHERE id = ? AND board = ?"
    flair = visit.value(query, visit.form.number("flair"), found["board"])
    visit.write("UPDATE forum_posts SET flair = ? WHERE id = ?", flair, post)
    visit.say("The flair has been set." if flair else "The flair has been taken off.")
    return Redirect(f"/b/{found['board_name']}/{post}")


def _own(visit: RequestContext, name: str, number: int) -> sqlite3.Row:
    """A post that the account wrote and that is still there. Raises Forbidden for those of others."""
    visit.must_be_signed_in()
    found = listing.post_of(visit, name, number)
    visit.must(found["author"] == visit.account, "Only who wrote a post may change it.")
    if found["deleted"]:
        raise Missing
    return found

"""The forum: pages, the effects of forms, and the consistency of worlds."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from agentgym_envs.webarena.sites.country import make_country
from agentgym_envs.webarena.sites.forum import seed_data
from agentgym_envs.webarena.sites.forum.listing import LISTED
from agentgym_envs.webarena.sites.framework.site import PASSWORD
from agentgym_envs.webarena.sites.people import make_people
from agentgym_envs.webarena.sites.world import SeedInputs, World, connect
from tests.webarena.embedded import Visitor, printed_by_two_processes, visit

HOSTILE = """<script>alert(1)</script>"><img src=x onerror=alert(1)> {{ 7*7 }} {% raw %} ' " & é"""
MINE = "SELECT board FROM forum_moderators WHERE user = 1"


DIGEST = """
import hashlib, random
from importlib.resources import files
from agentgym_envs.webarena.sites import country, forum, people, world
from agentgym_envs.webarena.sites.forum import seed_data
database = world.connect()
database.executescript(files(forum).joinpath("schema.sql").read_text())
where = country.make_country(random.Random("a"))
seed_data.fill(database, world.SeedInputs(where, people.make_people(random.Random("b"), where), random.Random("c")))
print(hashlib.sha256("".join(database.iterdump()).encode()).hexdigest())
"""
PAGES = """
/ /all /all/new /all/top /all/comments /all/top?t=week /subscribed /moderated /boards /boards?q=book&sort=posts
/boards/new /submit /search /search?q=the /search?q=a&in=users /search?q=oo&in=boards /messages
/messages/1 /messages/new /notifications /settings /settings/preferences /subscriptions /saved /saved/comments /hidden
/blocked /report/post/1 /report/comment/1 /sign-in /all/new?page=99999 /all/new?page=-1 /boards?page=x
/search?q=%25&board=nothing /search?q=the&in=comments&sort=top
"""


class Forum(Visitor):
    def value(self, query: str, *arguments: Any) -> Any:
        """Return a value from the initial state."""
        return self.world.value(query, *arguments)


@pytest.fixture
def forum() -> Iterator[Forum]:
    yield from visit(Forum("forum"))


def a_post(forum: Forum, where: str = "1") -> tuple[int, str]:
    """Return the id and the path of a post."""
    row = forum.world.rows(
        "SELECT p.id, '/b/' || b.name || '/' || p.id FROM forum_posts p JOIN forum_boards b ON b.id = p.board "
        f"WHERE {where} ORDER BY p.id LIMIT 1"
    )[0]
    return row[0], row[1]


def my_board(forum: Forum) -> tuple[int, str]:
    return tuple(forum.world.rows(f"SELECT id, '/b/' || name FROM forum_boards WHERE id IN ({MINE})")[0])


def test_pages_respond(forum: Forum) -> None:
    for path in PAGES.split():
        page = forum.get(path)
        assert "<h1>" in page and "Parley" in page


@pytest.mark.parametrize(
    "path", ["/b/nope", "/b/news/new2", "/u/nope", "/messages/999", "/all/nope", "/domain/no.test", "/b/nope/1"]
)
def test_missing_pages_are_404(forum: Forum, path: str) -> None:
    assert "Page not found" in forum.get(path, 404)


def test_pages_of_a_board_respond(forum: Forum) -> None:
    _, path = my_board(forum)
    for tail in (
        "",
        "/new",
        "/top",
        "/comments",
        "/submit",
        "/reports",
        "/reports?state=settled",
        "/bans",
        "/rules",
        "/edit",
    ):
        assert "<h1>" in forum.get(path + tail)


def test_lists_are_sorted_and_omit_hidden_posts(forum: Forum) -> None:
    for sort, order in (("new", "created DESC, id DESC"), ("top", "score DESC, id DESC")):
        titles: list[str] = []
        for page in (1, 2, 3):
            shown = forum.get(f"/all/{sort}?page={page}")
            titles += re.findall(r"<h2><a href=\"/b/\w+/\d+\">(.*?)</a>", shown)
        query = f"SELECT title FROM forum_posts p WHERE {LISTED} ORDER BY {order} LIMIT 36"
        assert titles == [row[0] for row in forum.world.rows(query, 1)]


def test_all_comments_of_a_thread_are_on_its_pages(forum: Forum) -> None:
    busiest = "p.id = (SELECT post FROM forum_comments GROUP BY post ORDER BY COUNT(*) DESC LIMIT 1)"
    post, path = a_post(forum, busiest)
    seen: list[str] = []
    for page in range(1, 12):
        comments = re.findall(r'id="comment-(\d+)"', forum.get(f"{path}?page={page}"))
        if comments[0] in seen:
            break
        assert len(comments) <= 14
        seen += comments
    ids = [str(row[0]) for row in forum.world.rows("SELECT id FROM forum_comments WHERE post = ?", post)]
    assert sorted(seen) == sorted(ids)


@pytest.mark.slow
def test_votes_count_once(forum: Forum) -> None:
    new = "p.id NOT IN (SELECT post FROM forum_votes WHERE post IS NOT NULL) AND p.author <> 1"
    post, _ = a_post(forum, new)
    score = forum.value("SELECT score FROM forum_posts WHERE id = ?", post)
    forum.post(f"/vote/post/{post}", value=1)
    (_, before, after), (table, none, vote) = forum.changed()
    assert (before, after) == ({"score": score}, {"score": score + 1})
    assert (table, none) == ("forum_votes", None) and vote["value"] == 1 and vote["post"] == post
    forum.post(f"/vote/post/{post}", value=1)
    assert len(forum.changes()) == 2
    response = forum.http.post(f"/vote/post/{post}", data={"value": -1, "quiet": 1})
    assert response.json() == {"score": score - 1, "value": -1}
    forum.post(f"/vote/post/{post}", value=0)
    assert forum.changes() == []
    forum.post("/vote/board/1", 404, value=1)
    forum.post(f"/vote/post/{post}", value="7")
    assert forum.changes() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("/save/post/3", "forum_saved"),
        ("/save/comment/3", "forum_saved"),
        ("/hide/3", "forum_hidden"),
    ],
)
def test_toggles_switch_on_and_off(forum: Forum, path: str, table: str) -> None:
    forum.post(path)
    assert [change.table for change in forum.changes()] == [table]
    forum.post(path)
    assert forum.changes() == []


def test_boards_are_subscribed_and_users_blocked(forum: Forum) -> None:
    name = forum.value(
        "SELECT name FROM forum_boards WHERE id NOT IN (SELECT board FROM forum_subscriptions WHERE account = 1)"
    )
    other = forum.value("SELECT name FROM forum_users WHERE id > 1 AND id NOT IN (SELECT user FROM forum_blocks)")
    forum.post(f"/b/{name}/subscribe")
    forum.post(f"/u/{other}/block", note="why not")
    assert [(c.table, (c.after or {}).get("note")) for c in forum.changes()] == [
        ("forum_blocks", "why not"),
        ("forum_subscriptions", None),
    ]
    forum.post(f"/u/{forum.value('SELECT name FROM forum_users WHERE id = 1')}/block", 403)


@pytest.mark.slow
def test_a_post_is_written_changed_and_deleted(forum: Forum) -> None:
    _, path = my_board(forum)
    page = forum.post(f"{path}/submit", title="On tea", body="Hot.", url="")
    (change,) = forum.changes()
    written = change.after or {}
    assert (written["title"], written["body"], written["url"], written["author"]) == ("On tea", "Hot.", None, 1)
    assert "On tea" in forum.get(page)
    forum.post(f"{page}/edit", title="On tea", body="Hot and sweet.")
    assert (forum.changes()[0].after or {})["body"] == "Hot and sweet."
    forum.post(f"{page}/delete")
    assert (forum.changes()[0].after or {})["deleted"] == 1
    assert "On tea" not in forum.get(f"{path}/new")
    forum.get(f"{page}/edit", 404)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "form",
    [
        {"title": "", "body": "x"},
        {"title": "x" * 151},
        {"title": "x", "url": "javascript:alert(1)"},
        {"title": "x", "url": "http://a b"},
        {"title": "x", "body": "x" * 8_001},
    ],
)
def test_an_invalid_post_is_refused(forum: Forum, form: dict[str, str]) -> None:
    _, path = my_board(forum)
    assert 'role="alert"' in forum.post(f"{path}/submit", 422, **form)
    assert 'role="alert"' in forum.post("/submit", 422, title="x", board="nothing of the kind")
    assert forum.changes() == []


def test_a_link_has_its_domain(forum: Forum) -> None:
    name = my_board(forum)[1].removeprefix("/b/")
    forum.post("/submit", board=name, title="A link", url="https://tea.test/leaf?a=1", body="")
    assert (forum.changes()[0].after or {})["domain"] == "tea.test"
    assert "A link" in forum.get("/domain/tea.test")


def test_authors_are_notified_of_replies(forum: Forum) -> None:
    wants = "u.notify_replies AND p.locked = 0 AND p.author <> 1"
    post, path = a_post(forum, f"EXISTS (SELECT 1 FROM forum_users u WHERE u.id = p.author AND {wants})")
    where = forum.post(f"{path}/comment", body="Well said.")
    tables = {change.table: change.after or {} for change in forum.changes()}
    assert tables.keys() == {"forum_comments", "forum_notifications"}
    comment = tables["forum_comments"]
    assert (comment["body"], comment["post"], comment["parent"], comment["author"]) == ("Well said.", post, None, 1)
    number = comment["id"]
    forum.post(f"{path}/comment", body="And again.", parent=number)
    assert len(forum.changes()) == 3
    forum.post(f"{where}/edit", body="Well put.")
    assert "Well put." in forum.get(where)
    forum.post(f"{where}/delete")
    assert "Deleted by its author" in forum.get(path + "?sort=new") and "Well put." not in forum.get(path + "?sort=new")
    forum.post(f"{path}/comment", 422, body="  ")
    forum.post(f"{path}/comment", 404, body="x", parent=999_999)


def test_locked_posts_and_bans_prevent_comments(forum: Forum) -> None:
    _, path = a_post(forum, f"p.locked AND p.board NOT IN ({MINE})")
    assert "locked" in forum.get(path)
    forum.post(f"{path}/comment", 403, body="But!")
    _, other = a_post(forum, f"p.locked = 0 AND p.board NOT IN ({MINE})")
    board = other.split("/")[2]
    query = (
        "INSERT INTO forum_bans (board, user, reason, created) SELECT id, 1, '', '' FROM forum_boards WHERE name = ?"
    )
    forum.episode.database.execute(query, (board,))
    forum.post(f"{other}/comment", 403, body="But!")
    forum.post(f"/b/{board}/submit", 403, title="But!", body="")
    assert "banned" in forum.get(other)


def test_items_of_other_users_cannot_be_changed(forum: Forum) -> None:
    post, path = a_post(forum, f"p.author <> 1 AND p.board NOT IN ({MINE})")
    comment = forum.world.rows(
        "SELECT '/b/' || b.name || '/' || p.id || '/comment/' || c.id FROM forum_comments c "
        "JOIN forum_posts p ON p.id = c.post JOIN forum_boards b ON b.id = p.board "
        f"WHERE c.author <> 1 AND p.board NOT IN ({MINE})"
    )[0][0]
    flair = forum.value("SELECT id FROM forum_flairs WHERE board = (SELECT board FROM forum_posts WHERE id = ?)", post)
    board = "/".join(path.split("/")[:3])
    for where, form in (
        (f"{path}/edit", {"title": "Mine", "body": "now"}),
        (f"{path}/delete", {}),
        (f"{path}/flair", {"flair": flair}),
        (f"{path}/set/locked", {}),
        (f"{comment}/edit", {"body": "Mine"}),
        (f"{comment}/delete", {}),
        (f"{comment}/remove", {}),
        (f"{board}/edit", {"title": "Mine", "description": "x"}),
        (f"{board}/rules", {"title": "Mine"}),
        (f"{board}/bans", {"user": "x", "reason": "y"}),
        (f"{board}/moderators", {"user": "x"}),
    ):
        forum.post(where, 403, **form)
    theirs = "INSERT INTO forum_conversations (id, opener, partner, subject) VALUES (500, 2, 3, 'Ours')"
    forum.episode.database.execute(theirs.replace("2, 3", "(SELECT MAX(id) FROM forum_users), 99"))
    forum.get("/messages/500", 404)
    forum.post("/messages/500", 404, body="Mine")
    assert [change.table for change in forum.changes()] == ["forum_conversations"]


def test_pages_for_accounts_require_login(forum: Forum) -> None:
    forum.post("/sign-out")
    assert "Sign in" in forum.get("/")
    for path in ("/settings", "/messages", "/submit", "/saved"):
        assert forum.http.get(path).headers["location"].startswith("/sign-in")
    assert forum.post("/vote/post/1", value=1).startswith("/sign-in")
    assert forum.changes() == []
    second = forum.world.rows("SELECT id, name FROM forum_users WHERE id > 1 LIMIT 1")[0]
    forum.post("/sign-in", user=second["name"].upper(), password=PASSWORD)
    assert second["name"] in forum.get("/settings")


@pytest.mark.slow
def test_messages_are_sent_and_read(forum: Forum) -> None:
    other = forum.value("SELECT name FROM forum_users WHERE id > 1 LIMIT 1")
    for wrong in ({"to": "nobody at all"}, {"to": other, "subject": ""}, {"to": other, "body": ""}):
        forum.post("/messages/new", 422, **{"subject": "Tea", "body": "Now?", **wrong})
    page = forum.post("/messages/new", to=other.upper(), subject="Tea", body="Now?")
    assert {change.table for change in forum.changes()} == {"forum_conversations", "forum_messages"}
    assert "Now?" in forum.get(page)
    unread = forum.value("SELECT conversation FROM forum_messages WHERE unread = 1")
    before = len(forum.changes())
    forum.post(f"/messages/{unread}/read")
    assert len(forum.changes()) == before + 1
    assert "Messages (2)" in forum.get("/")


@pytest.mark.slow
def test_notifications_are_read(forum: Forum) -> None:
    assert "Notifications (5)" in forum.get("/")
    number = forum.value("SELECT id FROM forum_notifications WHERE unread = 1")
    forum.post(f"/notifications/{number}/read")
    assert forum.changed() == [("forum_notifications", {"unread": 1}, {"unread": 0})]
    forum.post("/notifications/read")
    assert len(forum.changes()) == 5


@pytest.mark.slow
def test_settings_are_saved(forum: Forum) -> None:
    email = forum.value("SELECT email FROM forum_users WHERE id = 1")
    forum.post("/settings", bio="I like tea.", location="Here", website="", email=email, avatar="teal")
    (change,) = forum.changes()
    assert (change.after or {})["bio"] == "I like tea." and change.columns <= {"bio", "location", "website", "avatar"}
    for wrong in ({"bio": "x" * 501}, {"website": "tea"}, {"email": "x"}, {"location": "x" * 61}):
        forum.post("/settings", 422, **{"bio": "", "location": "", "website": "", "email": email, **wrong})
    forum.post("/settings/preferences", sort="new", front="all", notify_replies="1")
    after = forum.changes()[0].after or {}
    assert (after["sort"], after["front"], after["notify_replies"], after["public"]) == ("new", "all", 1, 0)
    assert "All boards" in forum.get("/")


def test_a_board_is_created(forum: Forum) -> None:
    for wrong in ({"name": "t"}, {"name": "NEWS"}, {"title": ""}, {"description": ""}, {"name": "a b c"}):
        forum.post("/boards/new", 422, **{"name": "tea", "title": "Tea", "description": "Leaves.", **wrong})
    assert forum.post("/boards/new", name="tea", title="Tea", description="Leaves.", sidebar="") == "/b/tea"
    tables = [change.table for change in forum.changes()]
    assert tables == ["forum_boards", "forum_moderators", "forum_subscriptions"]
    assert "Nothing has been posted" in forum.get("/b/tea")


@pytest.mark.slow
def test_moderators_lock_pin_and_remove_posts(forum: Forum) -> None:
    board, _ = my_board(forum)
    post, where = a_post(forum, f"p.board = {board} AND p.locked = 0 AND p.pinned = 0 AND p.author <> 1")
    for flag in ("locked", "pinned", "removed"):
        forum.post(f"{where}/set/{flag}")
    assert forum.changed() == [
        ("forum_posts", {"locked": 0, "pinned": 0, "removed": 0}, {"locked": 1, "pinned": 1, "removed": 1})
    ]
    for flag in ("locked", "pinned", "removed"):
        forum.post(f"{where}/set/{flag}")
    assert forum.changes() == []
    forum.post(f"{where}/set/deleted", 404)
    flair = forum.value(
        "SELECT f.id FROM forum_flairs f JOIN forum_posts p ON p.board = f.board "
        "WHERE p.id = ? AND f.id IS NOT p.flair",
        post,
    )
    forum.post(f"{where}/flair", flair=flair)
    assert forum.changed()[0][2] == {"flair": flair}


@pytest.mark.slow
def test_moderators_settle_reports_and_ban(forum: Forum) -> None:
    board, path = my_board(forum)
    open_ones = [row[0] for row in forum.world.rows("SELECT id FROM forum_reports WHERE resolved = 0 ORDER BY id")]
    forum.post(f"{path}/reports/{open_ones[0]}/dismiss")
    assert forum.changed() == [("forum_reports", {"resolved": 0}, {"resolved": 1})]
    forum.post(f"{path}/reports/{open_ones[1]}/remove")
    assert sum(change.columns == {"removed"} for change in forum.changes()) == 1
    staff = "SELECT user FROM forum_moderators"
    person = forum.value(
        f"SELECT name FROM forum_users WHERE id NOT IN ({staff}) AND id NOT IN (SELECT user FROM forum_bans)"
    )
    before = len(forum.changes())
    assert 'role="alert"' in forum.post(f"{path}/bans", 422, user=person, reason="")
    forum.post(f"{path}/bans", user=person, reason="Rude")
    assert len(forum.changes()) == before + 1
    assert 'role="alert"' in forum.post(f"{path}/bans", 422, user=person, reason="Rude")
    forum.post(f"{path}/bans/{forum.value('SELECT id FROM forum_bans')}/lift")
    forum.post(f"{path}/rules", title="Be brief", text="")
    forum.post(f"{path}/rules/{forum.value('SELECT id FROM forum_rules WHERE board = ?', board)}/delete")
    forum.post(f"{path}/edit", title="Other", description="Than before", sidebar="")
    forum.post(f"{path}/moderators", user=person)
    assert len(forum.changes()) == before + 6


def test_hostile_text_is_escaped(forum: Forum) -> None:
    _, path = my_board(forum)
    page = forum.post(f"{path}/submit", title=HOSTILE[:140], body=HOSTILE, url="")
    comment = forum.post(f"{page}/comment", body=HOSTILE)
    forum.post("/settings", bio=HOSTILE, location="<b>", website="https://x.test/&", email="a@b.test", avatar="teal")
    me = forum.value("SELECT name FROM forum_users WHERE id = 1")
    for shown in (page, comment, f"{path}/new", f"/u/{me}", "/settings", f"/u/{me}/comments", "/search?q=<script>"):
        text = forum.http.get(shown).text
        assert "<script>alert" not in text and "<img src=x" not in text and "onerror=alert(1)>" not in text
    assert "{{ 7*7 }}" in forum.get(page)
    for form in ({"q": HOSTILE, "in": HOSTILE, "sort": HOSTILE, "page": HOSTILE, "board": HOSTILE}, {"q": "a " * 500}):
        assert forum.http.get("/search", params=form).status_code == 200


@pytest.mark.slow
def test_worlds_are_reproducible() -> None:
    printed_by_two_processes(DIGEST)


def forum_of(seed: int) -> sqlite3.Connection:
    """Return the database of a new forum."""
    database = connect()
    database.executescript(files(seed_data.__package__ or "").joinpath("schema.sql").read_text())
    country = make_country(random.Random(seed))
    people = make_people(random.Random(seed), country)
    seed_data.fill(database, SeedInputs(country, people, random.Random(seed)))
    return database


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_worlds_are_consistent(seed: int) -> None:
    initial = World(seed, b"", forum_of(seed))
    for query in (
        "SELECT * FROM forum_comments c JOIN forum_posts p ON p.id = c.post WHERE c.created < p.created",
        "SELECT * FROM forum_comments c JOIN forum_comments d ON d.id = c.parent WHERE c.post <> d.post OR c.id < d.id",
        "SELECT * FROM forum_comments c JOIN forum_users u ON u.id = c.author WHERE c.created < u.joined",
        "SELECT * FROM forum_posts p JOIN forum_users u ON u.id = p.author WHERE p.created < u.joined",
        "SELECT * FROM forum_posts WHERE created >= '2026-03-16 10:30:00' OR edited < created",
        "SELECT * FROM forum_comments WHERE created >= '2026-03-16 10:30:00' OR edited < created OR body LIKE '%{%'",
        "SELECT * FROM forum_posts WHERE title LIKE '%{%' OR body LIKE '%{%' OR url LIKE '%{%'",
        "SELECT title FROM forum_posts GROUP BY title HAVING COUNT(*) > 1",
        "SELECT * FROM forum_posts GROUP BY board, score HAVING COUNT(*) > 1",
        "SELECT * FROM forum_boards WHERE id NOT IN (SELECT board FROM forum_moderators)",
        "SELECT * FROM forum_votes v JOIN forum_posts p ON p.id = v.post WHERE p.author = 1",
        "SELECT * FROM forum_messages WHERE created >= '2026-03-16 10:30:00'",
    ):
        assert initial.rows(query) == [], query
    assert initial.value("SELECT COUNT(*) FROM forum_posts WHERE author = 1") >= 12
    assert initial.value("SELECT COUNT(*) FROM forum_comments") > 2_000
    assert initial.value("SELECT COUNT(DISTINCT body) * 1.0 / COUNT(*) FROM forum_comments") > 0.6


@pytest.mark.slow
def test_worlds_differ() -> None:
    titles = [{row[0] for row in forum_of(seed).execute("SELECT title FROM forum_posts")} for seed in (1, 21)]
    assert len(titles[0] & titles[1]) < 120

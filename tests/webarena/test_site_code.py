"""Code hosting: its pages answer, its forms change what they should and nothing else, its worlds are sound."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html import unescape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import pytest

from agentgym_envs.webarena.evaluators.state import Change, differences
from agentgym_envs.webarena.sites.code import data
from agentgym_envs.webarena.sites.code.markdown import markdown
from agentgym_envs.webarena.sites.country import make_country
from agentgym_envs.webarena.sites.episodes import episodes
from agentgym_envs.webarena.sites.kit.app import make_app
from agentgym_envs.webarena.sites.kit.site import ORIGINS, PASSWORD
from agentgym_envs.webarena.sites.people import make_people
from agentgym_envs.webarena.sites.world import FREE, Seeds, connect
from tests.webarena.embedded import client

HOSTILE = """<script>alert(1)</script>"><img src=x onerror=alert(1)> {{ 7*7 }} {% raw %} ' " & é"""
DIGEST = """
import hashlib, random
from importlib.resources import files
from agentgym_envs.webarena.sites import code, country, people, world
from agentgym_envs.webarena.sites.code import data
database = world.connect()
database.executescript(files(code).joinpath("schema.sql").read_text())
where = country.make_country(random.Random("a"))
data.fill(database, world.Seeds(where, people.make_people(random.Random("b"), where), random.Random("c")))
print(hashlib.sha256("".join(database.iterdump()).encode()).hexdigest())
"""
PAGES = """
/ /starred /explore /explore?sort=name_asc&topic=go /groups /groups/new /projects/new /dashboard/issues /sign-in
/dashboard/issues?scope=created&state=all /dashboard/merge_requests?scope=reviews&state=merged /dashboard/todos?state=done
/search /search?search=add&scope=issues /search?search=add&scope=merge_requests /search?search=fix&scope=commits
/search?search=main&scope=files /search?search=a&scope=users /search?search=v1&scope=milestones /-/profile /-/status
/-/profile/keys
"""
PROJECT_PAGES = """
/edit /-/issues /-/issues/new /-/issues/1 /-/issues/1/edit /-/merge_requests /-/merge_requests/1 /-/merge_requests/new
/-/merge_requests/1/commits /-/merge_requests/1/diffs /-/merge_requests/1/edit /-/tree/BRANCH /-/tree/BRANCH/config
/-/blob/BRANCH/README.md /-/blob/BRANCH/config/default.yaml /-/raw/BRANCH/LICENSE /-/blame/BRANCH/config/default.yaml
/-/edit/BRANCH/README.md /-/new/BRANCH/docs /-/commits/BRANCH /-/commits/BRANCH/README.md /-/graphs/BRANCH /-/branches
/-/branches/new /-/tags /-/tags/new /-/releases /-/releases/new /-/labels /-/labels/new /-/milestones?state=all
/-/milestones/new /-/project_members /-/starrers /-/forks /-/forks/new
"""


@cache
def _app() -> Any:
    return make_app(origins={"code": ORIGINS["code"]})


class Code:
    """The site in an episode of its own."""

    def __init__(self) -> None:
        self.asks, self.episode = client("code", app=_app())
        self.me = self.value("SELECT user FROM code_accounts WHERE id = 1")

    def value(self, query: str, *arguments: Any) -> Any:
        row = self.episode.database.execute(query, arguments).fetchone()
        return None if row is None else row[0]

    def row(self, query: str, *arguments: Any) -> dict[str, Any]:
        return dict(self.episode.database.execute(query, arguments).fetchone())

    def project(self, condition: str, *arguments: Any) -> dict[str, Any]:
        query = f"""SELECT p.*, '/' || n.path || '/' || p.slug AS url FROM code_projects p
        JOIN code_namespaces n ON n.id = p.namespace WHERE NOT p.archived AND {condition} ORDER BY p.id"""
        return self.row(query, *arguments)

    def mine(self) -> dict[str, Any]:
        return self.project("n.account = 1 AND p.visibility = 'public'")

    def as_role(self, role: str) -> dict[str, Any]:
        return self.project("p.id IN (SELECT project FROM code_members WHERE account = 1 AND role = ?)", role)

    def get(self, path: str, status: int = 200) -> str:
        answer = self.asks.get(path)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return unescape(re.sub(r"\s+", " ", answer.text))

    def post(self, path: str, status: int = 303, **form: Any) -> str:
        answer = self.asks.post(path, data=form)
        assert answer.status_code == status, (path, answer.status_code, answer.text)
        return str(answer.headers.get("location", answer.text))

    def changes(self) -> list[Change]:
        return differences(self.episode.world.database, self.episode.database, FREE)

    def added(self, table: str) -> list[dict[str, Any]]:
        changes = [change for change in self.changes() if change.table == table and change.before is None]
        return [dict(change.after or {}) for change in changes]

    def tables(self) -> Counter[str]:
        return Counter(change.table for change in self.changes())

    def leave(self, user: str) -> None:
        """Go on as somebody else."""
        self.post("/sign-in", user=user, password=PASSWORD)


@pytest.fixture
def code() -> Iterator[Code]:
    made = Code()
    yield made
    assert made.episode.failures == []
    episodes().close(made.episode)


@cache
def made(seed: str) -> Any:
    database = connect()
    folder = files("agentgym_envs.webarena.sites.code")
    database.executescript(folder.joinpath("schema.sql").read_text(encoding="utf-8"))
    country = make_country(random.Random(seed))
    data.fill(database, Seeds(country, make_people(random.Random(seed), country), random.Random(seed)))
    return database


def count(database: Any, query: str) -> int:
    return int(database.execute(query).fetchone()[0])


def test_main_pages(code: Code) -> None:
    project = code.mine()
    inner = PROJECT_PAGES.replace("BRANCH", project["default_branch"]).split()
    for path in [*PAGES.split(), f"/{code.me}", *(project["url"] + path for path in ["", *inner])]:
        assert code.get(path), path
    for tab in ("projects", "starred", "followers", "following"):
        code.get(f"/{code.me}?tab={tab}")
    group = code.value("SELECT path FROM code_namespaces WHERE account IS NULL")
    code.get(f"/{group}")
    code.get(f"/groups/{group}/-/group_members")
    sha = code.value(
        "SELECT c.sha FROM code_commits c JOIN code_branches b ON b.id = c.branch WHERE project = ?", project["id"]
    )
    code.get(f"{project['url']}/-/commit/{sha[:8]}")
    assert code.changes() == []


def test_what_is_not_there(code: Code) -> None:
    url = code.mine()["url"]
    for path in (
        "/nobody-at-all",
        "/nobody/nothing",
        f"{url}/-/issues/99999",
        f"{url}/-/tree/no-branch",
        f"{url}/-/commit/zz",
    ):
        code.get(path, 404)
    for path in (
        "/-/blob/main/none",
        "/-/milestones/99999",
        "/-/merge_requests/99999999999999999999",
        "/-/commit/00000000",
    ):
        code.get(url + path, 404)
    code.post(f"{url}/-/nothing/1/comments", 404, text="x")


def test_a_private_project_is_there_for_members_only(code: Code) -> None:
    private = code.project("n.account = 1 AND p.visibility = 'private'")
    assert private["name"] in code.get("/")
    outsider = code.value(
        "SELECT user FROM code_accounts WHERE id NOT IN (SELECT account FROM code_members WHERE project = ?)",
        private["id"],
    )
    code.leave(outsider)
    for path in ("", "/-/issues", "/-/tree/main", "/edit", "/-/issues/1"):
        code.get(private["url"] + path, 404)
    code.post(f"{private['url']}/-/issues/1/comments", 404, text="x")
    assert private["url"] not in code.get(f"/search?search={quote(private['slug'])}")
    assert private["url"] not in code.get(f"/explore?name={quote(private['slug'])}")


def test_nobody_does_anything_without_signing_in(code: Code) -> None:
    url = code.mine()["url"]
    code.post("/sign-out")
    assert "Sign in" in code.get(url)
    for path in ("/-/star", "/-/issues", "/-/issues/1/comments", "/edit", "/-/branches", "/-/forks", "/-/delete"):
        assert code.post(url + path, text="x", title="x", path=url[1:]).startswith("/sign-in")
    assert code.post("/projects", name="x").startswith("/sign-in")
    assert code.get("/", 303) is not None
    assert code.changes() == []


@pytest.mark.parametrize("role", ["Guest", "Reporter", "Developer", "Maintainer"])
def test_what_a_role_may_not_do(code: Code, role: str) -> None:
    project = code.as_role(role)
    url, branch = project["url"], project["default_branch"]
    other = code.value("SELECT number FROM code_issues WHERE project = ? AND author <> 1", project["id"])
    group_role = code.value(
        "SELECT role FROM code_group_members WHERE namespace = ? AND account = 1", project["namespace"]
    )
    if group_role:
        pytest.skip("a stronger role by the group")
    refused = {
        "Guest": [(f"/-/issues/{other}/set", {"what": "weight"}), (f"/-/issues/{other}/state", {"to": "closed"}),
                  ("/-/labels", {"name": "x"}), ("/-/milestones", {"title": "x"})],
        "Reporter": [("/-/branches", {"name": "x", "origin": branch}), ("/-/tags", {"name": "x", "origin": branch}),
                     ("/-/merge_requests", {"title": "x"})],
        "Developer": [(f"/-/edit/{branch}/README.md", {"content": "x"}), (f"/-/new/{branch}", {"file": "x"}),
                      ("/-/project_members", {"user": "x"}), ("/edit", {"name": "x"})],
        "Maintainer": [("/-/archive", {"archived": "1"}), ("/-/delete", {"path": url[1:]}), ("/-/rename", {"slug": "x"})],
    }  # fmt: skip
    roles = list(refused)
    for name in roles[roles.index(role) :]:
        for path, form in refused[name]:
            code.post(url + path, 403, **form)
    assert code.changes() == []


def test_an_issue(code: Code) -> None:
    project = code.mine()
    label = code.row("SELECT * FROM code_labels WHERE project = ?", project["id"])
    milestone = code.value("SELECT id FROM code_milestones WHERE project = ? AND state = 'open'", project["id"])
    form = {
        "title": "Tides are late",
        "body": "By an hour.",
        "assignee": 1,
        "milestone": milestone,
        "due": "2026-04-01",
    }
    where = code.post(f"{project['url']}/-/issues", **form, weight=3, label=label["id"])
    (issue,) = code.added("code_issues")
    assert {name: issue[name] for name in form} == form
    assert (issue["weight"], issue["author"], issue["state"], issue["confidential"]) == (3, 1, "open", 0)
    assert code.tables() == {"code_issues": 1, "code_issue_labels": 1}
    page = code.get(where)
    assert "Tides are late" in page and label["name"] in page and "Apr 1, 2026" in page
    code.post(f"{where}/comments", text="And **loud**.", then="closed")
    assert code.row("SELECT * FROM code_issues WHERE id = ?", issue["id"])["state"] == "closed"
    assert "<strong>loud</strong>" in code.get(where)
    code.post(f"{where}/state", to="open")
    code.post(f"{where}/edit", title="Tides are early", body="")
    for what, form in {"weight": {"weight": ""}, "due": {"due": ""}, "labels": {}, "assignee": {"assignee": 0}}.items():
        code.post(f"{where}/set", what=what, **form)
    after = code.row("SELECT * FROM code_issues WHERE id = ?", issue["id"])
    assert (after["title"], after["weight"], after["due"], after["closed"], after["assignee"]) == (
        "Tides are early",
        *[None] * 4,
    )
    assert code.tables() == {"code_issues": 1, "code_comments": 1}
    code.post(f"{where}/delete")
    assert code.changes() == []


def test_what_is_wrong_with_an_issue(code: Code) -> None:
    url = code.mine()["url"]
    assert "A title is needed" in code.post(f"{url}/-/issues", 422, title=" ")
    assert "due date" in code.post(f"{url}/-/issues", 422, title="x", due="2026-02-31")
    assert "A title is needed" in code.post(f"{url}/-/issues/1/edit", 422, title="")
    code.post(f"{url}/-/issues/1/comments", text="  ")
    code.post(f"{url}/-/issues/1/set", what="due", due="soon")
    code.post(f"{url}/-/issues/1/set", what="everything")
    assert code.changes() == []


def test_strangers_to_a_project_open_issues_but_do_not_plan(code: Code) -> None:
    project = code.project("p.visibility = 'public' AND p.forked_from IS NULL AND NOT EXISTS (SELECT 1 FROM code_members "
                           "WHERE project = p.id AND account = 1) AND NOT EXISTS (SELECT 1 FROM code_group_members "
                           "WHERE namespace = p.namespace AND account = 1)")  # fmt: skip
    label = code.value("SELECT id FROM code_labels WHERE project = ?", project["id"])
    code.post(f"{project['url']}/-/issues", title="Hello", weight=5, label=label, due="2026-04-01", confidential="1")
    (change,) = code.changes()
    assert change.after and (change.after["weight"], change.after["due"], change.after["confidential"]) == (
        None,
        None,
        1,
    )
    code.get(f"{project['url']}/edit", 403)


def test_comments_belong_to_who_wrote_them(code: Code) -> None:
    project = code.mine()
    find = """SELECT c.id FROM code_comments c JOIN code_issues i ON i.id = c.issue
    WHERE i.project = ? AND c.author {} 1 LIMIT 1"""
    code.post(f"{project['url']}/-/issues/1/comments", text="Mine")
    mine = code.added("code_comments")[0]["id"]
    theirs = code.value(find.format("<>"), project["id"])
    code.get(f"{project['url']}/-/notes/{theirs}/edit", 403)
    code.post(f"{project['url']}/-/notes/{theirs}", 403, text="x")
    code.post(f"{project['url']}/-/notes/{mine}", text="Still mine")
    assert code.added("code_comments")[0]["text"] == "Still mine"
    code.post(f"{project['url']}/-/notes/{mine}", delete="1")
    assert code.changes() == []


def test_lists_are_filtered_and_ordered(code: Code) -> None:
    project = code.mine()
    label = code.row(
        """SELECT l.name, COUNT(*) AS many FROM code_labels l JOIN code_issue_labels x ON x.label = l.id
        WHERE l.project = ? GROUP BY l.id ORDER BY many DESC""",
        project["id"],
    )
    page = code.get(f"{project['url']}/-/issues?state=all&label={quote(label['name'])}")
    assert f"All ({label['many']})" in page
    shown = [int(number) for number in re.findall(r'/-/issues/(\d+)">', page)]
    assert shown == sorted(shown, reverse=True) and len(shown) == min(label["many"], 15)
    total = code.value("SELECT COUNT(*) FROM code_issues WHERE project = ? AND assignee IS NULL", project["id"])
    assert f"All ({total})" in code.get(f"{project['url']}/-/issues?state=all&assignee=none")
    titles = [
        row[0]
        for row in code.episode.database.execute("SELECT title FROM code_issues WHERE project = ?", (project["id"],))
    ]
    found = re.findall(r'/-/issues/\d+">([^<]+)</a>', code.get(f"{project['url']}/-/issues?state=all&sort=title_asc"))
    assert found == sorted(titles)[:15]
    assert code.get(f"{project['url']}/-/issues?state=&label=&search=", 303) is not None
    seen = re.findall(
        r'/-/issues/(\d+)">', "".join(code.get(f"{project['url']}/-/issues?state=all&page={n}") for n in (1, 2, 3, 4))
    )
    assert len(set(seen)) == len(titles) or len(titles) > 60


def test_a_merge_request_from_branch_to_merge(code: Code) -> None:
    project = code.mine()
    url, main = project["url"], project["default_branch"]
    assert code.post(f"{url}/-/branches", name="my/branch", origin=main) == f"{url}/-/tree/my/branch"
    before = code.get(f"{url}/-/raw/my/branch/README.md")
    code.post(f"{url}/-/edit/my/branch/README.md", content="# New\n\nText", message="Write it anew")
    code.post(f"{url}/-/new/my/branch/docs", file="more.md", content="More", message="")
    assert code.get(f"{url}/-/raw/{main}/README.md") == before
    assert "Merge request" in code.get(f"{url}/-/branches")
    assert "Write it anew" in code.get(f"{url}/-/merge_requests/new?source=my/branch&target={main}")
    issue = code.value("SELECT number FROM code_issues WHERE project = ? AND state = 'open'", project["id"])
    form = {"source": "my/branch", "target": main, "title": "All anew", "body": f"Closes #{issue}", "reviewer": 1}
    where = code.post(f"{url}/-/merge_requests", **form)
    assert "+# New" in code.get(f"{where}/diffs") and "Write it anew" in code.get(f"{where}/commits")
    assert "already an open" in code.post(f"{url}/-/merge_requests", 422, **form)
    code.post(f"{where}/approval", 403, approved="1")
    code.post(f"{where}/draft", draft="1")
    code.post(f"{where}/merge")
    assert code.added("code_merge_requests")[0]["state"] == "open"
    code.post(f"{where}/draft", draft="0")
    code.post(f"{where}/merge", drop="1")
    assert code.added("code_merge_requests")[0]["state"] == "merged"
    assert (
        code.value("SELECT state FROM code_issues WHERE project = ? AND number = ?", project["id"], issue) == "closed"
    )
    assert code.get(f"{url}/-/raw/{main}/README.md") == "# New Text "
    assert "More" in code.get(f"{url}/-/blob/{main}/docs/more.md")
    code.get(f"{url}/-/tree/my/branch", 404)
    assert "+# New" in code.get(f"{where}/diffs") and "Merge branch 'my/branch'" in code.get(f"{url}/-/commits/{main}")
    code.post(f"{where}/state", 403, to="closed")


def test_a_merge_takes_only_what_a_branch_changed(code: Code) -> None:
    project = code.mine()
    url, main = project["url"], project["default_branch"]
    for name in ("one", "two", "three"):
        code.post(f"{url}/-/branches", name=name, origin=main)
    code.post(f"{url}/-/edit/one/LICENSE", content="one")
    code.post(f"{url}/-/edit/two/README.md", content="two")
    code.post(f"{url}/-/edit/three/LICENSE", content="three")
    places = [code.post(f"{url}/-/merge_requests", source=n, target=main, title=n) for n in ("one", "two", "three")]
    code.post(f"{places[0]}/merge")
    code.post(f"{places[1]}/merge")
    assert code.get(f"{url}/-/raw/{main}/LICENSE") == "one " and code.get(f"{url}/-/raw/{main}/README.md") == "two "
    assert "conflicts in LICENSE" in code.get(places[2])
    code.post(f"{places[2]}/merge")
    assert "state = 'open'" and code.value("SELECT state FROM code_merge_requests WHERE title = 'three'") == "open"
    code.post(f"{places[2]}/state", to="closed")
    code.post(f"{url}/-/branches/delete", name="three")
    code.post(f"{url}/-/branches/delete", 403, name=main)
    assert "nothing to merge" in code.post(f"{url}/-/merge_requests", 422, source="one", target=main, title="again")


def test_every_open_merge_request_can_be_seen_and_merged(code: Code) -> None:
    project = code.mine()
    requests = code.episode.database.execute(
        "SELECT number, author FROM code_merge_requests WHERE project = ? AND state = 'open'", (project["id"],)
    ).fetchall()
    for number, author in requests:
        where = f"{project['url']}/-/merge_requests/{number}"
        assert "changed file" in code.get(f"{where}/diffs")
        code.post(f"{where}/draft", draft="0")
        if author != 1:
            code.post(f"{where}/approval", approved="1")
            assert "Revoke approval" in code.get(where)
        code.post(f"{where}/merge")
        assert "changed file" in code.get(f"{where}/diffs")
    assert requests


def test_labels_and_milestones(code: Code) -> None:
    url = code.mine()["url"]
    code.post(f"{url}/-/labels", name="urgent", colour="#AA0000", description="Now")
    assert code.added("code_labels")[0]["colour"] == "#aa0000"
    number = code.added("code_labels")[0]["id"]
    for form in (
        {"name": "", "colour": "#aa0000"},
        {"name": "x", "colour": "red"},
        {"name": "URGENT", "colour": "#aa0000"},
    ):
        code.post(f"{url}/-/labels", 422, **form)
    code.post(f"{url}/-/labels/{number}", name="later", colour="#00aa00")
    assert code.added("code_labels")[0]["name"] == "later"
    code.post(f"{url}/-/labels/{number}", delete="1")
    assert code.changes() == []
    where = code.post(f"{url}/-/milestones", title="Summer", start="2026-06-01", due="2026-08-31")
    for form in ({"title": ""}, {"title": "summer"}, {"title": "x", "start": "2026-06-02", "due": "2026-06-01"}):
        code.post(f"{url}/-/milestones", 422, **form)
    code.post(where, action="close")
    assert code.added("code_milestones")[0]["state"] == "closed" and "Summer" in code.get(where)
    code.post(where, title="Autumn", due="")
    code.post(where, action="delete")
    assert code.changes() == []


def test_tags_and_releases(code: Code) -> None:
    project = code.mine()
    url, main = project["url"], project["default_branch"]
    code.post(f"{url}/-/tags", name="v99", origin=main, message="Big")
    assert code.tables() == {"code_tags": 1}
    code.post(f"{url}/-/tags", 422, name="v99", origin=main)
    code.post(f"{url}/-/tags", 422, name="a b", origin=main)
    code.post(f"{url}/-/releases", name="v99", title="The big one", notes="- Everything")
    assert code.tables() == {"code_tags": 1, "code_releases": 1}
    code.post(f"{url}/-/releases", 422, name="v99", title="Again")
    assert "The big one" in code.get(f"{url}/-/releases")
    code.post(f"{url}/-/tags/delete", name="v99")
    assert code.changes() == []


def test_members(code: Code) -> None:
    project = code.mine()
    where = f"{project['url']}/-/project_members"
    other = code.row(
        "SELECT * FROM code_accounts WHERE id NOT IN (SELECT account FROM code_members WHERE project = ?)",
        project["id"],
    )
    code.post(where, user=other["name"], role="Reporter")
    (member,) = code.added("code_members")
    assert (member["account"], member["role"]) == (other["id"], "Reporter")
    for form in (
        {"user": other["user"], "role": "Guest"},
        {"user": "nobody", "role": "Guest"},
        {"user": "", "role": "Guest"},
    ):
        code.post(where, 422, **form)
    code.post(f"{where}/{other['id']}", role="Maintainer")
    assert code.added("code_members")[0]["role"] == "Maintainer"
    code.post(f"{where}/{other['id']}", 403, role="King")
    code.post(f"{where}/1", remove="1")
    code.post(f"{where}/{other['id']}", remove="1")
    assert code.changes() == []


def test_a_project_from_beginning_to_end(code: Code) -> None:
    where = code.post("/projects", name="Sea Shanty", space=1, visibility="public", description="Songs", readme="1")
    assert where == f"/{code.me}/sea-shanty"
    assert code.tables() == {"code_projects": 1, "code_members": 1, "code_branches": 1, "code_files": 1, "code_blobs": 1,
                             "code_commits": 1}  # fmt: skip
    assert "Songs" in code.get(where)
    for form in (
        {"name": ""},
        {"name": "Sea shanty", "space": 1},
        {"name": "x", "space": 2},
        {"name": "x", "slug": "a/b", "space": 1},
    ):
        code.post("/projects", 422, **form)
    code.post(
        f"{where}/edit",
        name="Shanties",
        description="",
        topics="sea, song,sea",
        visibility="private",
        default_branch="main",
    )
    (project,) = code.added("code_projects")
    assert (project["name"], project["topics"], project["visibility"]) == ("Shanties", "sea, song", "private")
    code.post(f"{where}/-/archive", archived="1")
    code.post(f"{where}/-/issues", 403, title="x")
    assert "archived" in code.get(where)
    code.post(f"{where}/-/archive", archived="0")
    where = code.post(f"{where}/-/rename", slug="shanties").removesuffix("/edit")
    code.post(f"{where}/-/delete", 422, path="shanties")
    code.post(f"{where}/-/delete", path=where[1:])
    assert set(code.tables()) == {"code_blobs"}


def test_an_empty_project(code: Code) -> None:
    where = code.post("/projects", name="Empty", space=1, visibility="private")
    for path in (
        "",
        "/-/tree/main",
        "/-/commits/main",
        "/-/branches",
        "/-/graphs/main",
        "/-/merge_requests/new",
        "/-/issues",
    ):
        code.get(where + path)
    code.post(f"{where}/-/tags", 422, name="v1", origin="main")
    code.post(f"{where}/-/new/main", file="a/b.txt", content="x")
    assert "b.txt" in code.get(f"{where}/-/tree/main/a")
    code.post(f"{where}/-/edit/main/a/b.txt", delete="1")
    code.get(f"{where}/-/blob/main/a/b.txt", 404)


def test_a_fork_has_the_history_of_its_origin(code: Code) -> None:
    project = code.project("p.visibility = 'public' AND n.account <> 1 AND p.forked_from IS NULL")
    where = code.post(f"{project['url']}/-/forks", name=project["name"], space=1, slug="my-fork", visibility="public")
    assert set(code.tables()) == {"code_projects", "code_members", "code_branches", "code_files"}
    branch = project["default_branch"]
    commits = [re.search(r"(\d+) commits?", code.get(f"{url}/-/commits/{branch}")) for url in (project["url"], where)]
    assert commits[0] and commits[1] and commits[0][0] == commits[1][0]
    assert project["name"] in code.get(f"{project['url']}/-/forks")
    sha = code.value(
        "SELECT sha FROM code_commits c JOIN code_branches b ON b.id = c.branch WHERE b.project = ?", project["id"]
    )
    code.get(f"{where}/-/commit/{sha[:8]}")
    code.post(f"{where}/-/edit/{branch}/README.md", content="mine")
    assert code.get(f"{project['url']}/-/raw/{branch}/README.md") != "mine "


def test_stars_and_following(code: Code) -> None:
    project = code.project(
        "NOT EXISTS (SELECT 1 FROM code_stars WHERE project = p.id AND account = 1) AND p.visibility = 'public'"
    )
    code.post(f"{project['url']}/-/star")
    assert code.tables() == {"code_stars": 1}
    assert project["name"] in code.get("/starred?name=" + quote(project["slug"]))
    code.post(f"{project['url']}/-/star")
    other = code.value(
        "SELECT user FROM code_accounts WHERE id > 1 AND id NOT IN (SELECT follows FROM code_follows WHERE account = 1)"
    )
    code.post(f"/{other}/-/follow")
    assert code.tables() == {"code_follows": 1} and "Unfollow" in code.get(f"/{other}")
    code.post(f"/{other}/-/follow")
    code.post(f"/{code.me}/-/follow", 403)
    assert code.changes() == []


def test_the_account(code: Code) -> None:
    code.post("/-/status", status="At sea", busy="1")
    assert "At sea (busy)" in code.get(f"/{code.me}")
    code.post("/-/status", clear="1", status="x")
    old = code.row("SELECT * FROM code_accounts WHERE id = 1")
    code.post("/-/profile", 422, name="")
    code.post("/-/profile", 422, name="x", website="javascript:alert(1)")
    code.post(
        "/-/profile", **{name: old[name] for name in ("name", "job", "organisation", "location", "website", "bio")}
    )
    assert code.changes() == []
    key = "ssh-ed25519 " + "A" * 68
    code.post("/-/profile/keys", title="boat", key=key, expires="2027-01-01")
    for form in ({"key": "hello"}, {"key": key}, {"key": key + "B", "expires": "2026-01-01"}):
        code.post("/-/profile/keys", 422, **form)
    code.post(f"/-/profile/keys/{code.added('code_keys')[0]['id']}")
    assert code.changes() == []


def test_groups(code: Code) -> None:
    where = code.post("/groups", name="Night Watch", visibility="private")
    assert where == "/night-watch" and code.tables() == {"code_namespaces": 1, "code_group_members": 1}
    for form in ({"name": ""}, {"name": "Night watch"}, {"name": "Explore"}, {"name": "x", "path": code.me}):
        code.post("/groups", 422, **form)
    code.post(
        f"/groups{where}/-/group_members",
        user=code.value("SELECT user FROM code_accounts WHERE id = 2"),
        role="Developer",
    )
    code.post(f"/groups{where}/-/edit", name="Day Watch")
    assert "Day Watch" in code.get("/groups")
    space = code.added("code_namespaces")[0]["id"]
    assert code.post("/projects", name="Lamp", space=space, visibility="internal") == "/night-watch/lamp"
    code.post("/sign-out")
    code.get(where, 404)


def test_todos(code: Code) -> None:
    todo = code.value("SELECT id FROM code_todos WHERE NOT done")
    code.post(f"/dashboard/todos/{todo}", done="1")
    (change,) = code.changes()
    assert change.columns == {"done"}
    code.post(f"/dashboard/todos/{todo}", done="0")
    code.post("/dashboard/todos/all")
    assert "Nothing to do" in code.get("/dashboard/todos")
    code.post(f"/dashboard/todos/{todo + 9999}", 404, done="1")


def test_confidential_issues_are_not_for_all(code: Code) -> None:
    issue = code.row(
        """SELECT i.*, '/' || n.path || '/' || p.slug AS url FROM code_issues i JOIN code_projects p ON p.id = i.project
        JOIN code_namespaces n ON n.id = p.namespace WHERE i.confidential AND p.visibility = 'public'"""
    )
    other = code.value(
        """SELECT user FROM code_accounts WHERE id NOT IN (?1, ?2) AND id NOT IN (SELECT account FROM code_members
        WHERE project = ?3) AND id NOT IN (SELECT account FROM code_group_members)""",
        issue["author"], issue["assignee"] or 0, issue["project"],
    )  # fmt: skip
    code.leave(other)
    code.get(f"{issue['url']}/-/issues/{issue['number']}", 403)
    assert issue["title"] not in code.get(
        f"{issue['url']}/-/issues?state=all&search={quote(issue['title'])}&sort=created_asc"
    ).replace(f'value="{issue["title"]}"', "")


def test_hostile_text_is_shown_as_it_is(code: Code) -> None:
    url, main = code.mine()["url"], code.mine()["default_branch"]
    where = code.post(f"{url}/-/issues", title=HOSTILE, body=HOSTILE)
    code.post(f"{where}/comments", text=HOSTILE)
    code.post(f"{url}/-/edit/{main}/README.md", content=f"# {HOSTILE}\n\n{HOSTILE}", message=HOSTILE)
    code.post(f"{url}/-/labels", name=HOSTILE, colour="#123456", description=HOSTILE)
    code.post(f"{url}/-/milestones", title=HOSTILE[:90], description=HOSTILE)
    code.post("/-/status", status=HOSTILE[:90])
    branch = f"{url}/-/blob/{main}/README.md"
    for path in (where, url, branch, f"{url}/-/issues", f"{url}/-/labels", f"{url}/-/milestones", f"{url}/-/commits/{main}",
                 f"/{code.me}", "/search?search=%3Cscript%3E&scope=issues"):  # fmt: skip
        raw = code.asks.get(path).text
        assert "<script>alert" not in raw and "<img src=x" not in raw, path
        assert "{{ 7*7 }}" in raw or "/search" in path or path.endswith(code.me), path


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# A\n\nb `c` **d**", "<h2>A</h2>\n<p>b <code>c</code> <strong>d</strong></p>"),
        ("- a\n- b\n1. c", "<ul><li>a</li><li>b</li></ul>\n<ol><li>c</li></ol>"),
        ("```\n<a> #1\n```", "<pre><code>&lt;a&gt; #1</code></pre>"),
        ("see #12 and !3", '<p>see <a href="/p/-/issues/12">#12</a> and <a href="/p/-/merge_requests/3">!3</a></p>'),
        ("@olga, ask", '<p><a href="/olga">@olga</a>, ask</p>'),
        ("[x](javascript:alert)", "<p>[x](javascript:alert)</p>"),
        ("[x](//evil.test)", "<p>[x](//evil.test)</p>"),
        ("[x](/y) <me@mail.test>", '<p><a href="/y">x</a> me@mail.test</p>'),
        (
            "|a|b|\n|-|-|\n|1|2|",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
        ),
        ("```\nnever ends", "<pre><code>never ends</code></pre>"),
        ("   \n\n", ""),
    ],
)
def test_markdown(text: str, html: str) -> None:
    assert str(markdown(text, "/p")) == html


def test_a_world_is_the_same_everywhere() -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    digests = [run.communicate()[0] for run in runs]
    assert digests[0] == digests[1] != ""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_world_is_sound(seed: str) -> None:
    database = made(seed)
    never = [
        "SELECT COUNT(*) FROM code_issues WHERE (state = 'closed') <> (closed IS NOT NULL) OR closed < created",
        "SELECT COUNT(*) FROM code_merge_requests WHERE (state = 'open') <> (ended IS NULL) OR ended < created",
        "SELECT COUNT(*) FROM code_comments c JOIN code_issues i ON i.id = c.issue WHERE c.moment < i.created",
        "SELECT COUNT(*) FROM code_commits WHERE moment > '2026-03-16 10:30:00'",
        "SELECT COUNT(*) FROM code_issues i JOIN code_milestones m ON m.id = i.milestone WHERE m.project <> i.project",
        "SELECT COUNT(*) FROM code_issue_labels x JOIN code_issues i ON i.id = x.issue JOIN code_labels l ON l.id = x.label "
        "WHERE l.project <> i.project",
        "SELECT COUNT(*) FROM code_merge_requests r LEFT JOIN code_branches b ON b.project = r.project AND b.name = r.source "
        "WHERE r.state = 'open' AND b.id IS NULL",
        "SELECT COUNT(*) FROM code_files f JOIN code_blobs b ON b.id = f.blob WHERE b.content LIKE '%gizmo%' OR "
        "b.content LIKE '%cogwheel%' OR b.content LIKE '%$%ONE-LINE%'",
        "SELECT COUNT(*) FROM (SELECT 1 FROM code_issues GROUP BY project, title HAVING COUNT(*) > 1)",
    ]
    assert [count(database, query) for query in never] == [0] * len(never)
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    for additions, deletions, changes in database.execute("SELECT additions, deletions, changes FROM code_commits"):
        told = json.loads(changes)
        assert (sum(c[1] for c in told), sum(c[2] for c in told)) == (additions, deletions)
        assert all(c[1] >= 0 and c[2] >= 0 for c in told)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_somebody_wrote_more_of_each_project_than_anybody_else(seed: str) -> None:
    rows = made(seed).execute(
        """SELECT b.project, c.author, COUNT(*) AS many FROM code_commits c JOIN code_branches b ON b.id = c.branch
        WHERE b.protected GROUP BY b.project, c.author ORDER BY b.project, many DESC"""
    )
    by_project: dict[int, list[int]] = {}
    for project, _, many in rows:
        by_project.setdefault(project, []).append(many)
    assert all(len(many) < 2 or many[0] > many[1] for many in by_project.values())


def test_worlds_differ_and_have_much_in_them() -> None:
    names = [{row[0] for row in made(seed).execute("SELECT slug FROM code_projects")} for seed in ("1", "2")]
    assert len(names[0] & names[1]) < 15
    for seed in ("1", "2"):
        database = made(seed)
        assert count(database, "SELECT COUNT(*) FROM code_projects") == 29
        assert count(database, "SELECT COUNT(*) FROM code_issues") > 400
        assert count(database, "SELECT COUNT(*) FROM code_commits") > 900
        assert count(database, "SELECT COUNT(*) FROM code_merge_requests WHERE state = 'open'") > 15
        assert count(database, "SELECT COUNT(*) FROM code_issues WHERE assignee = 1 AND state = 'open'") > 5
        assert count(database, "SELECT COUNT(*) FROM code_todos WHERE NOT done") > 5
        assert count(database, "SELECT COUNT(*) FROM code_projects WHERE namespace = 1") == 4

"""Code hosting: projects with their members and releases, groups, and accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.webarena.embedded import visit
from tests.webarena.hosting import Code

pytestmark = pytest.mark.slow


@pytest.fixture
def code() -> Iterator[Code]:
    yield from visit(Code())


def test_tags_and_releases_are_created(code: Code) -> None:
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


def test_members_are_added_and_changed(code: Code) -> None:
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


def test_a_project_is_created_and_edited(code: Code) -> None:
    where = code.post("/projects", name="Sea Shanty", space=1, visibility="public", description="Songs", readme="1")
    assert where == f"/{code.me}/sea-shanty"
    new = ("projects", "members", "branches", "files", "blobs", "commits")
    assert code.tables() == {f"code_{name}": 1 for name in new}
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


def test_pages_of_an_empty_project_respond(code: Code) -> None:
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


def test_projects_are_starred_and_users_followed(code: Code) -> None:
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


def test_account_settings_are_saved(code: Code) -> None:
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


def test_groups_are_created_and_edited(code: Code) -> None:
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


def test_todos_are_marked_as_done(code: Code) -> None:
    todo = code.value("SELECT id FROM code_todos WHERE NOT done")
    code.post(f"/dashboard/todos/{todo}", done="1")
    (change,) = code.changes()
    assert change.columns == {"done"}
    code.post(f"/dashboard/todos/{todo}", done="0")
    code.post("/dashboard/todos/all")
    assert "Nothing to do" in code.get("/dashboard/todos")
    code.post(f"/dashboard/todos/{todo + 9999}", 404, done="1")

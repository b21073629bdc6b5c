"""Code hosting: pages, and the effects of actions on issues and merge requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from agentgym_envs.webarena.sites.code.markdown import markdown
from tests.webarena.embedded import visit
from tests.webarena.hosting import Code

HOSTILE = """<script>alert(1)</script>"><img src=x onerror=alert(1)> {{ 7*7 }} {% raw %} ' " & é"""
PAGES = """
/ /starred /explore /explore?sort=name_asc&topic=go /groups /groups/new /projects/new /dashboard/issues /sign-in
/dashboard/issues?scope=created&state=all /dashboard/merge_requests?scope=reviews&state=merged
/dashboard/todos?state=done
/search /search?search=add&scope=issues /search?search=add&scope=merge_requests
/search?search=fix&scope=commits /search?search=main&scope=files /search?search=a&scope=users
/search?search=v1&scope=milestones /-/profile /-/status
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


@pytest.fixture
def code() -> Iterator[Code]:
    yield from visit(Code())


@pytest.mark.slow
def test_main_pages_respond(code: Code) -> None:
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


def test_badges_are_not_part_of_a_project_heading(code: Code) -> None:
    for path, mark in (("/", "Owner"), ("/explore", "Archived"), ("/groups", "Public")):
        page = code.get(path)
        headings = re.findall(r"<h3>(.*?)</h3>", page, re.DOTALL)
        assert headings and not [one for one in headings if "<span" in one], path
        assert f">{mark}</span> " in page and "</span><span" not in page, path


def test_missing_pages_are_404(code: Code) -> None:
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


def test_a_private_project_is_visible_to_members_only(code: Code) -> None:
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


def test_actions_require_login(code: Code) -> None:
    url = code.mine()["url"]
    code.post("/sign-out")
    assert "Sign in" in code.get(url)
    for path in ("/-/star", "/-/issues", "/-/issues/1/comments", "/edit", "/-/branches", "/-/forks", "/-/delete"):
        assert code.post(url + path, text="x", title="x", path=url[1:]).startswith("/sign-in")
    assert code.post("/projects", name="x").startswith("/sign-in")
    assert code.get("/", 303) is not None
    assert code.changes() == []


@pytest.mark.slow
@pytest.mark.parametrize("role", ["Guest", "Reporter", "Developer", "Maintainer"])
def test_actions_above_a_role_are_forbidden(code: Code, role: str) -> None:
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
        "Maintainer": [("/-/archive", {"archived": "1"}), ("/-/delete", {"path": url[1:]}),
                       ("/-/rename", {"slug": "x"})],
    }  # fmt: skip
    roles = list(refused)
    for name in roles[roles.index(role) :]:
        for path, form in refused[name]:
            code.post(url + path, 403, **form)
    assert code.changes() == []


@pytest.mark.slow
def test_an_issue_is_opened_edited_and_closed(code: Code) -> None:
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
    for what, value in {"weight": "", "due": "", "label": "", "assignee": "0"}.items():
        code.post(f"{where}/set", what="labels" if what == "label" else what, **{what: value})
    after = code.row("SELECT * FROM code_issues WHERE id = ?", issue["id"])
    assert (after["title"], after["weight"], after["due"], after["closed"], after["assignee"]) == (
        "Tides are early",
        *[None] * 4,
    )
    assert code.tables() == {"code_issues": 1, "code_comments": 1}
    code.post(f"{where}/delete")
    assert code.changes() == []


def test_invalid_issues_are_refused(code: Code) -> None:
    url = code.mine()["url"]
    assert "A title is needed" in code.post(f"{url}/-/issues", 422, title=" ")
    assert "due date" in code.post(f"{url}/-/issues", 422, title="x", due="2026-02-31")
    assert "A title is needed" in code.post(f"{url}/-/issues/1/edit", 422, title="")
    code.post(f"{url}/-/issues/1/comments", text="  ")
    code.post(f"{url}/-/issues/1/set", what="due", due="soon")
    code.post(f"{url}/-/issues/1/set", what="everything")
    assert code.changes() == []


def test_non_members_create_issues_without_attributes(code: Code) -> None:
    project = code.project(
        """p.visibility = 'public' AND p.forked_from IS NULL
        AND NOT EXISTS (SELECT 1 FROM code_members WHERE project = p.id AND account = 1)
        AND NOT EXISTS (SELECT 1 FROM code_group_members WHERE namespace = p.namespace AND account = 1)"""
    )
    label = code.value("SELECT id FROM code_labels WHERE project = ?", project["id"])
    code.post(f"{project['url']}/-/issues", title="Hello", weight=5, label=label, due="2026-04-01", confidential="1")
    (change,) = code.changes()
    assert change.after and (change.after["weight"], change.after["due"], change.after["confidential"]) == (
        None,
        None,
        1,
    )
    code.get(f"{project['url']}/edit", 403)


@pytest.mark.slow
def test_comments_are_edited_by_their_authors_only(code: Code) -> None:
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


def test_lists_are_filtered_and_sorted(code: Code) -> None:
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
    shown = re.findall(r'/-/issues/\d+">([^<]+)</a>', code.get(f"{project['url']}/-/issues?state=all&sort=title_asc"))
    assert shown == sorted(titles)[:15]
    assert code.get(f"{project['url']}/-/issues?state=&label=&search=", 303) is not None
    seen = re.findall(
        r'/-/issues/(\d+)">', "".join(code.get(f"{project['url']}/-/issues?state=all&page={n}") for n in (1, 2, 3, 4))
    )
    assert len(set(seen)) == len(titles) or len(titles) > 60


def test_long_files_have_no_exact_diff(code: Code) -> None:
    project = code.mine()
    where = f"{project['url']}/-/edit/{project['default_branch']}/README.md"
    numbers = [str(number * number % 99) for number in range(4000)]
    code.post(where, content="\n".join(numbers), message="Long")
    code.post(where, content="\n".join([*numbers[1:], "new", "newer"]), message="Longer")
    assert [row["additions"] for row in code.added("code_commits")][1:] == [2]
    sha = code.value("SELECT sha FROM code_commits WHERE message = 'Longer'")
    page = code.get(f"{project['url']}/-/commit/{sha}")
    assert "too large to show" in page and "2 additions, 1 deletion" in page


@pytest.mark.slow
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


def test_a_merge_takes_only_the_changes_of_the_branch(code: Code) -> None:
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
    assert code.value("SELECT state FROM code_merge_requests WHERE title = 'three'") == "open"
    code.post(f"{places[2]}/state", to="closed")
    code.post(f"{url}/-/branches/delete", name="three")
    code.post(f"{url}/-/branches/delete", 403, name=main)
    assert "nothing to merge" in code.post(f"{url}/-/merge_requests", 422, source="one", target=main, title="again")


def test_every_open_merge_request_can_be_viewed_and_merged(code: Code) -> None:
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


@pytest.mark.slow
def test_labels_and_milestones_are_added_and_edited(code: Code) -> None:
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


def test_confidential_issues_are_hidden_from_others(code: Code) -> None:
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


def test_hostile_text_is_escaped(code: Code) -> None:
    url, main = code.mine()["url"], code.mine()["default_branch"]
    where = code.post(f"{url}/-/issues", title=HOSTILE, body=HOSTILE)
    code.post(f"{where}/comments", text=HOSTILE)
    code.post(f"{url}/-/edit/{main}/README.md", content=f"# {HOSTILE}\n\n{HOSTILE}", message=HOSTILE)
    code.post(f"{url}/-/labels", name=HOSTILE, colour="#123456", description=HOSTILE)
    code.post(f"{url}/-/milestones", title=HOSTILE[:90], description=HOSTILE)
    code.post("/-/status", status=HOSTILE[:90])
    branch = f"{url}/-/blob/{main}/README.md"
    lists = [f"{url}/-/{name}" for name in ("issues", "labels", "milestones", f"commits/{main}")]
    for path in (where, url, branch, *lists, f"/{code.me}", "/search?search=%3Cscript%3E&scope=issues"):
        raw = code.http.get(path).text
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
        ("[x](/\\evil.test)", "<p>[x](/\\evil.test)</p>"),
        ("[x](/y) <me@mail.test>", '<p><a href="/y">x</a> me@mail.test</p>'),
        (
            "|a|b|\n|-|-|\n|1|2|",
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>",
        ),
        ("```\nnever ends", "<pre><code>never ends</code></pre>"),
        ("   \n\n", ""),
    ],
)
def test_markdown_is_rendered_as_html(text: str, html: str) -> None:
    assert str(markdown(text, "/p")) == html

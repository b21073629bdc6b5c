"""History: lists of commits, single commits, and contributors."""

from __future__ import annotations

from agentgym_envs.webarena.sites.code import diffs, repository
from agentgym_envs.webarena.sites.code.access import find_project
from agentgym_envs.webarena.sites.code.lists import without_empty_fields
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import NotFound, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_COMMITS_PAGE, _PEOPLE_PAGE = 20, 12


@routes.get("/{space}/{slug}/-/commits/{rest:path}")
def index(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """List the commits of a branch or file, with filters by author and text."""
    project = find_project(context, space, slug)
    if again := without_empty_fields(context):
        return again
    branch, path = repository.branch_and_path(context, project, rest)
    author, search = context.query.text("author", most=100), context.query.text("search", most=200)
    count = repository.count_history(context, branch["id"], author=author, search=search, path=path)
    paging = Paging.of(context.query, count, _COMMITS_PAGE)
    rows = repository.history(
        context, branch["id"], size=paging.size, skipped=paging.skipped, author=author, search=search, path=path
    )
    days: dict[str, list[object]] = {}
    for row in rows:
        days.setdefault(row["moment"][:10], []).append(row)
    return context.page(
        "commits.html", project=project, branch=branch, path=path, days=days, paging=paging, author=author,
        search=search, authors=repository.contributors(context, branch["id"]),
        branches=repository.branches(context, project),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/commit/{sha}")
def show(context: RequestContext, space: str, slug: str, sha: str) -> Response:
    """Show the changes of a commit. The SHA may be abbreviated to eight characters or more."""
    project = find_project(context, space, slug)
    if not 7 < len(sha) < 41 or set(sha) - set("0123456789abcdef"):
        raise NotFound
    row = context.one(
        """SELECT c.*, a.user, a.name AS author_name, a.colour, b.name AS branch_name, r.number AS request
        FROM code_commits c JOIN code_accounts a ON a.id = c.author JOIN code_branches b ON b.id = c.branch
        LEFT JOIN code_merge_requests r ON r.id = c.merge_request
        WHERE c.sha GLOB ? AND b.project IN (?, ?) ORDER BY b.project = ? DESC LIMIT 1""",
        f"{sha}*", project.id, project.forked_from, project.id,
    )  # fmt: skip
    files = diffs.file_diffs(context, diffs.changes_of([row]))
    return context.page("commit.html", project=project, commit=row, files=files)


@routes.get("/{space}/{slug}/-/graphs/{rest:path}")
def contributors(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """List the contributors to a branch by number of commits."""
    project = find_project(context, space, slug)
    branch, path = repository.branch_and_path(context, project, rest)
    if path:
        raise NotFound
    rows = repository.contributors(context, branch["id"])
    paging = Paging.of(context.query, len(rows), _PEOPLE_PAGE)
    return context.page(
        "contributors.html", project=project, branch=branch, rows=rows[paging.skipped :][: paging.size], paging=paging,
        total=sum(row["commits"] for row in rows), most=max((row["commits"] for row in rows), default=1),
    )  # fmt: skip

"""The dashboard: projects, issues, merge requests and to-dos of the visitor; and the list of all projects."""

from __future__ import annotations

from agentgym_envs.webarena.sites.code import lists
from agentgym_envs.webarena.sites.code.lists import QueryConditions
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.paging import Paging
from agentgym_envs.webarena.sites.framework.responses import Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_TODOS = """
SELECT t.*, a.name AS author_name, COALESCE(i.title, r.title) AS title, COALESCE(i.number, r.number) AS number,
    p.slug, p.name AS project_name, n.path
FROM code_todos t JOIN code_accounts a ON a.id = t.author
LEFT JOIN code_issues i ON i.id = t.issue LEFT JOIN code_merge_requests r ON r.id = t.merge_request
JOIN code_projects p ON p.id = COALESCE(i.project, r.project) JOIN code_namespaces n ON n.id = p.namespace
WHERE t.account = ? AND t.done = ? ORDER BY t.moment DESC, t.id DESC LIMIT ? OFFSET ?
"""


@routes.get("/")
def mine(context: RequestContext) -> Response:
    """List the visitor's projects."""
    if not context.account:
        return Redirect("/explore")
    where = QueryConditions(context.account)
    where.add(
        "(EXISTS (SELECT 1 FROM code_members m WHERE m.project = p.id AND m.account = ?1) OR EXISTS "
        "(SELECT 1 FROM code_group_members g WHERE g.namespace = p.namespace AND g.account = ?1))"
    )
    return _project_page(context, where, "Your projects", "yours")


@routes.get("/starred")
def starred(context: RequestContext) -> Response:
    """List the projects that the visitor starred."""
    where = QueryConditions(context.require_login())
    where.add("EXISTS (SELECT 1 FROM code_stars s WHERE s.project = p.id AND s.account = ?1)")
    return _project_page(context, where, "Starred projects", "starred")


@routes.get("/explore")
def explore(context: RequestContext) -> Response:
    """List all visible projects."""
    return _project_page(context, QueryConditions(context.account), "Explore projects", "explore", "stars_desc")


@routes.get("/dashboard/issues")
def my_issues(context: RequestContext) -> Response:
    """List the issues in all projects that are assigned to the visitor or were created by them."""
    where = QueryConditions(context.require_login())
    role = context.query.choice("scope", ("assigned", "created"), "assigned")
    where.add("i.assignee = ?1" if role == "assigned" else "i.author = ?1")
    tabs = (("assigned", "Assigned to you"), ("created", "Created by you"))
    if again := lists.without_empty_fields(context):
        return again
    return context.page(
        "my_list.html", heading="Issues", listed=lists.issues(context, where), states=lists.STATES,
        orders=lists.ISSUE_ORDERS, tabs=tabs, scope=role, kind="issues",
    )  # fmt: skip


@routes.get("/dashboard/merge_requests")
def my_requests(context: RequestContext) -> Response:
    """List the merge requests in all projects that the visitor created, is assigned to, or should review."""
    where = QueryConditions(context.require_login())
    role = context.query.choice("scope", ("assigned", "reviews", "created"), "assigned")
    review = "EXISTS (SELECT 1 FROM code_reviewers v WHERE v.merge_request = i.id AND v.account = ?1)"
    where.add({"assigned": "i.assignee = ?1", "reviews": review, "created": "i.author = ?1"}[role])
    tabs = (("assigned", "Assigned to you"), ("reviews", "Review requests for you"), ("created", "Created by you"))
    if again := lists.without_empty_fields(context):
        return again
    return context.page(
        "my_list.html", heading="Merge requests", listed=lists.requests(context, where), states=lists.REQUEST_STATES,
        orders=lists.REQUEST_ORDERS, tabs=tabs, scope=role, kind="merge_requests",
    )  # fmt: skip


@routes.get("/dashboard/todos")
def todos(context: RequestContext) -> Response:
    """List the pending or the completed to-dos."""
    account = context.require_login()
    state = context.query.choice("state", ("pending", "done"), "pending")
    query = "SELECT COUNT(*), COALESCE(SUM(done), 0) FROM code_todos WHERE account = ?"
    total, done = context.one(query, account)
    counts = {"pending": total - done, "done": done}
    paging = Paging.of(context.query, counts[state], 12)
    rows = context.rows(_TODOS, account, int(state == "done"), paging.size, paging.skipped)
    return context.page("todos.html", rows=rows, paging=paging, counts=counts, state=state)


@routes.post("/dashboard/todos/all")
def all_done(context: RequestContext) -> Response:
    """Mark all to-dos as done."""
    context.write("UPDATE code_todos SET done = 1 WHERE account = ? AND NOT done", context.require_login())
    context.flash("All to-do items are marked as done.")
    return Redirect("/dashboard/todos")


@routes.post("/dashboard/todos/{number:int}")
def change_todo(context: RequestContext, number: int) -> Response:
    """Mark a to-do as done, or as pending again."""
    todo = context.one("SELECT * FROM code_todos WHERE id = ?", number)
    context.require(todo["account"] == context.require_login(), "This is not on your list.")
    done = int(context.form.text("done") == "1")
    context.write("UPDATE code_todos SET done = ? WHERE id = ?", done, number)
    context.flash("Marked as done." if done else "The item is on your list again.")
    return context.redirect_back("/dashboard/todos")


def _project_page(
    context: RequestContext, where: QueryConditions, heading: str, tab: str, order: str = "updated_desc"
) -> Response:
    if again := lists.without_empty_fields(context):
        return again
    listed = lists.projects(context, where, order=order)
    return context.page(
        "projects.html", listed=listed, heading=heading, tab=tab, orders=lists.PROJECT_ORDERS, order=order
    )

"""Folders and files: display, and changes in the browser."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.code import repository
from agentgym_envs.webarena.sites.code.access import Project, find_project
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, RawResponse, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_SHOWN = 120
"""Lines of a file on one page."""
_MOST_FILE = 50_000


@routes.get("/{space}/{slug}/-/tree/{rest:path}")
def tree(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """List the entries of a folder."""
    project = find_project(context, space, slug)
    branch, path = repository.branch_and_path(context, project, rest)
    return context.page(
        "tree.html", entries=repository.listing(context, branch["id"], path),
        last=_last(context, branch, path), **_location(context, project, branch, path),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/blob/{rest:path}")
def blob(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Show a file."""
    project = find_project(context, space, slug)
    branch, path = repository.branch_and_path(context, project, rest)
    text = _text(context, branch, path)
    lines = text.splitlines()
    first = context.query.number("from", 1, least=1, most=max(len(lines), 1))
    return context.page(
        "blob.html", lines=lines[first - 1 :][:_SHOWN], first=first, total=len(lines), size=len(text.encode()),
        last=_last(context, branch, path), shown=_SHOWN, text=text, **_location(context, project, branch, path),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/blame/{rest:path}")
def blame(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Show the commits that wrote parts of a file, as far as they are known for its current text."""
    project = find_project(context, space, slug)
    branch, path = repository.branch_and_path(context, project, rest)
    now = repository.files(context, branch["id"]).get(path)
    if now is None:
        raise NotFound
    rows = repository.history(context, branch["id"], size=repository.MOST_COMMITS, path=path)
    touched = [(row, change) for row in rows for change in json.loads(row["changes"]) if change[0] == path]
    lines = repository.content(context, now).splitlines()
    return context.page(
        "blame.html", parts_of_file=_parts(lines, touched, now), **_location(context, project, branch, path)
    )


@routes.get("/{space}/{slug}/-/raw/{rest:path}")
def raw(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Return the text of a file."""
    project = find_project(context, space, slug)
    branch, path = repository.branch_and_path(context, project, rest)
    return RawResponse(_text(context, branch, path))


@routes.get("/{space}/{slug}/-/new/{rest:path}")
def new(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Show the form for a new file."""
    project, branch, path = _to_change(context, space, slug, rest)
    return _form_page(context, project, branch, path, {"file": "", "content": "", "message": "Add new file"}, new=True)


@routes.post("/{space}/{slug}/-/new/{rest:path}")
def create(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Commit a new file."""
    project, branch, folder = _to_change(context, space, slug, rest)
    values = _values(context)
    path = f"{folder}/{values['file']}" if folder else values["file"]
    error = "" if repository.is_path(path) else "A file needs a name, without '..' and slashes at the ends."
    if not error and path in repository.files(context, branch["id"]):
        error = f"There is already a file '{path}'."
    if error:
        return _form_page(context, project, branch, folder, values, new=True, error=error)
    repository.commit(context, branch, values["message"] or f"Add {path}", {path: values["content"]})
    context.flash(f"'{path}' was added to '{branch['name']}'.")
    return Redirect(f"{project.url}/-/blob/{branch['name']}/{path}")


@routes.get("/{space}/{slug}/-/edit/{rest:path}")
def edit(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Show the form of a file."""
    project, branch, path = _to_change(context, space, slug, rest)
    values = {"file": path, "content": _text(context, branch, path), "message": f"Update {path.rpartition('/')[2]}"}
    return _form_page(context, project, branch, path, values, new=False)


@routes.post("/{space}/{slug}/-/edit/{rest:path}")
def save(context: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Commit a change of a file, or its deletion."""
    project, branch, path = _to_change(context, space, slug, rest)
    text, values, deletes = _text(context, branch, path), _values(context), context.form.is_checked("delete")
    if deletes:
        repository.commit(context, branch, values["message"] or f"Delete {path}", {path: None})
        context.flash(f"'{path}' was deleted from '{branch['name']}'.")
        return Redirect(f"{project.url}/-/tree/{branch['name']}")
    if values["content"] == text:
        return _form_page(context, project, branch, path, values, new=False, error="Nothing was changed.")
    repository.commit(context, branch, values["message"] or f"Update {path}", {path: values["content"]})
    context.flash("Your changes were committed.")
    return Redirect(f"{project.url}/-/blob/{branch['name']}/{path}")


def _to_change(context: RequestContext, space: str, slug: str, rest: str) -> tuple[Project, sqlite3.Row, str]:
    """Return the project, branch and path of a URL, if the visitor may commit there."""
    project = find_project(context, space, slug, "Developer")
    branch, path = repository.branch_and_path(context, project, rest)
    allowed = project.may("Maintainer") or not branch["protected"]
    context.require(allowed, f"Only maintainers may commit to '{branch['name']}', which is protected.")
    return project, branch, path


def _values(context: RequestContext) -> dict[str, str]:
    """Return the values of the form. The content ends with a line break."""
    given = [value for name, value in context.form if name == "content"]
    text = given[-1].replace("\r\n", "\n")[:_MOST_FILE] if given else ""
    text = text if not text or text.endswith("\n") else f"{text}\n"
    return {
        "file": context.form.text("file", most=200),
        "message": context.form.text("message", most=1000),
        "content": text,
    }


def _text(context: RequestContext, branch: sqlite3.Row, path: str) -> str:
    query = """SELECT b.content FROM code_files f JOIN code_blobs b ON b.id = f.blob
    WHERE f.branch = ? AND f.path = ?"""
    return str(context.one(query, branch["id"], path)["content"])


def _last(context: RequestContext, branch: sqlite3.Row, path: str) -> sqlite3.Row | None:
    """Return the last commit that changed a file or something in a folder."""
    for row in repository.history(context, branch["id"], size=repository.MOST_COMMITS):
        names = [change[0] for change in json.loads(row["changes"])]
        if not path or any(name == path or name.startswith(f"{path}/") for name in names):
            return row
    return None


def _parts(
    lines: list[str], touched: list[tuple[sqlite3.Row, list[Any]]], now: int
) -> list[tuple[sqlite3.Row | None, list[str]]]:
    """Return runs of lines with the newest commit that wrote them."""
    if not touched:
        return [(None, lines)]
    writers = [touched[-1][0] if touched[-1][1][4] == now else touched[0][0]] * len(lines)
    for row, (_, added, _, _, after, line) in reversed(touched):
        if line > 1 and after == now:
            writers[line - 1 : line - 1 + added] = [row] * len(lines[line - 1 : line - 1 + added])
    parts: list[tuple[sqlite3.Row | None, list[str]]] = []
    for writer, text in zip(writers, lines, strict=True):
        if parts and parts[-1][0] is writer:
            parts[-1][1].append(text)
        else:
            parts.append((writer, [text]))
    return parts[:40]


def _location(context: RequestContext, project: Project, branch: sqlite3.Row, path: str) -> dict[str, Any]:
    """Return the values for the navigation of repository pages."""
    names = path.split("/") if path else []
    crumbs = [(name, "/".join(names[: index + 1])) for index, name in enumerate(names)]
    may_commit = project.may("Maintainer") or (project.may("Developer") and not branch["protected"])
    return {
        "project": project, "branch": branch, "branches": repository.branches(context, project), "path": path,
        "crumbs": crumbs, "may_commit": may_commit,
    }  # fmt: skip


def _form_page(
    context: RequestContext,
    project: Project,
    branch: sqlite3.Row,
    path: str,
    values: dict[str, str],
    *,
    new: bool,
    error: str = "",
) -> Response:
    index = _location(context, project, branch, path)
    return context.page("file_edit.html", 422 if error else 200, values=values, new=new, error=error, **index)

"""Folders and files: looking at them, and changing them in the browser."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from agentgym_envs.webarena.sites.code import repository
from agentgym_envs.webarena.sites.code.access import Project, find_project
from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import Data, Missing, Redirect, Response
from agentgym_envs.webarena.sites.framework.site import Routes

routes = Routes()
_SHOWN = 120
"""Lines of a file on one page."""
_MOST_FILE = 50_000


@routes.get("/{space}/{slug}/-/tree/{rest:path}")
def tree(visit: RequestContext, space: str, slug: str, rest: str) -> Response:
    """What lies in a folder of a branch."""
    project = find_project(visit, space, slug)
    branch, path = repository.branch_and_path(visit, project, rest)
    return visit.page(
        "tree.html", entries=repository.listing(visit, branch["id"], path),
        last=_last(visit, branch, path), **_place(visit, project, branch, path),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/blob/{rest:path}")
def blob(visit: RequestContext, space: str, slug: str, rest: str) -> Response:
    """A file."""
    project = find_project(visit, space, slug)
    branch, path = repository.branch_and_path(visit, project, rest)
    text = _text(visit, branch, path)
    lines = text.splitlines()
    first = visit.query.number("from", 1, least=1, most=max(len(lines), 1))
    return visit.page(
        "blob.html", lines=lines[first - 1 :][:_SHOWN], first=first, total=len(lines), size=len(text.encode()),
        last=_last(visit, branch, path), shown=_SHOWN, text=text, **_place(visit, project, branch, path),
    )  # fmt: skip


@routes.get("/{space}/{slug}/-/blame/{rest:path}")
def blame(visit: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Which commits wrote parts of a file, as far as is known of the text that it has now."""
    project = find_project(visit, space, slug)
    branch, path = repository.branch_and_path(visit, project, rest)
    now = repository.files(visit, branch["id"]).get(path)
    if now is None:
        raise Missing
    rows = repository.history(visit, branch["id"], size=repository.MOST_COMMITS, path=path)
    touched = [(row, change) for row in rows for change in json.loads(row["changes"]) if change[0] == path]
    lines = repository.content(visit, now).splitlines()
    return visit.page("blame.html", parts_of_file=_parts(lines, touched, now), **_place(visit, project, branch, path))


@routes.get("/{space}/{slug}/-/raw/{rest:path}")
def raw(visit: RequestContext, space: str, slug: str, rest: str) -> Response:
    """A file's text and nothing else."""
    project = find_project(visit, space, slug)
    branch, path = repository.branch_and_path(visit, project, rest)
    return Data(_text(visit, branch, path))


@routes.get("/{space}/{slug}/-/new/{rest:path}")
def new(visit: RequestContext, space: str, slug: str, rest: str) -> Response:
    """The form for a new file."""
    project, branch, path = _to_change(visit, space, slug, rest)
    return _form_page(visit, project, branch, path, {"file": "", "content": "", "message": "Add new file"}, new=True)


@routes.post("/{space}/{slug}/-/new/{rest:path}")
def create(visit: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Add a file by a commit."""
    project, branch, folder = _to_change(visit, space, slug, rest)
    values = _values(visit)
    path = f"{folder}/{values['file']}" if folder else values["file"]
    wrong = "" if repository.is_path(path) else "A file needs a name, without '..' and slashes at the ends."
    if not wrong and path in repository.files(visit, branch["id"]):
        wrong = f"There is already a file '{path}'."
    if wrong:
        return _form_page(visit, project, branch, folder, values, new=True, wrong=wrong)
    repository.commit(visit, branch, values["message"] or f"Add {path}", {path: values["content"]})
    visit.say(f"'{path}' was added to '{branch['name']}'.")
    return Redirect(f"{project.url}/-/blob/{branch['name']}/{path}")


@routes.get("/{space}/{slug}/-/edit/{rest:path}")
def edit(visit: RequestContext, space: str, slug: str, rest: str) -> Response:
    """The form with a file."""
    project, branch, path = _to_change(visit, space, slug, rest)
    values = {"file": path, "content": _text(visit, branch, path), "message": f"Update {path.rpartition('/')[2]}"}
    return _form_page(visit, project, branch, path, values, new=False)


@routes.post("/{space}/{slug}/-/edit/{rest:path}")
def save(visit: RequestContext, space: str, slug: str, rest: str) -> Response:
    """Change a file by a commit; or delete it, if the button says so."""
    project, branch, path = _to_change(visit, space, slug, rest)
    text, values, deletes = _text(visit, branch, path), _values(visit), visit.form.ticked("delete")
    if deletes:
        repository.commit(visit, branch, values["message"] or f"Delete {path}", {path: None})
        visit.say(f"'{path}' was deleted from '{branch['name']}'.")
        return Redirect(f"{project.url}/-/tree/{branch['name']}")
    if values["content"] == text:
        return _form_page(visit, project, branch, path, values, new=False, wrong="Nothing was changed.")
    repository.commit(visit, branch, values["message"] or f"Update {path}", {path: values["content"]})
    visit.say("Your changes were committed.")
    return Redirect(f"{project.url}/-/blob/{branch['name']}/{path}")


def _to_change(visit: RequestContext, space: str, slug: str, rest: str) -> tuple[Project, sqlite3.Row, str]:
    """The project, branch and path of an address at which the visitor may commit."""
    project = find_project(visit, space, slug, "Developer")
    branch, path = repository.branch_and_path(visit, project, rest)
    allowed = project.may("Maintainer") or not branch["protected"]
    visit.must(allowed, f"Only maintainers may commit to '{branch['name']}', which is protected.")
    return project, branch, path


def _values(visit: RequestContext) -> dict[str, str]:
    """What the form has. A text ends with a line break, as files do."""
    given = [value for name, value in visit.form if name == "content"]
    text = given[-1].replace("\r\n", "\n")[:_MOST_FILE] if given else ""
    text = text if not text or text.endswith("\n") else f"{text}\n"
    return {
        "file": visit.form.text("file", most=200),
        "message": visit.form.text("message", most=1000),
        "content": text,
    }


def _text(visit: RequestContext, branch: sqlite3.Row, path: str) -> str:
    query = """SELECT b.content FROM code_files f JOIN code_blobs b ON b.id = f.blob
    WHERE f.branch = ? AND f.path = ?"""
    return str(visit.one(query, branch["id"], path)["content"])


def _last(visit: RequestContext, branch: sqlite3.Row, path: str) -> sqlite3.Row | None:
    """The last commit that changed a file or something in a folder."""
    for row in repository.history(visit, branch["id"], size=repository.MOST_COMMITS):
        names = [change[0] for change in json.loads(row["changes"])]
        if not path or any(name == path or name.startswith(f"{path}/") for name in names):
            return row
    return None


def _parts(
    lines: list[str], touched: list[tuple[sqlite3.Row, list[Any]]], now: int
) -> list[tuple[sqlite3.Row | None, list[str]]]:
    """Runs of lines with the newest commit that wrote them."""
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


def _place(visit: RequestContext, project: Project, branch: sqlite3.Row, path: str) -> dict[str, Any]:
    """What pages of the repository tell of where they are."""
    names = path.split("/") if path else []
    crumbs = [(name, "/".join(names[: place + 1])) for place, name in enumerate(names)]
    may_commit = project.may("Maintainer") or (project.may("Developer") and not branch["protected"])
    return {
        "project": project, "branch": branch, "branches": repository.branches(visit, project), "path": path,
        "crumbs": crumbs, "may_commit": may_commit,
    }  # fmt: skip


def _form_page(
    visit: RequestContext,
    project: Project,
    branch: sqlite3.Row,
    path: str,
    values: dict[str, str],
    *,
    new: bool,
    wrong: str = "",
) -> Response:
    place = _place(visit, project, branch, path)
    return visit.page("file_edit.html", 422 if wrong else 200, values=values, new=new, wrong=wrong, **place)

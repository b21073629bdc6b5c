"""Attributes that issues and merge requests share: assignee, milestone, labels and dates."""

from __future__ import annotations

import datetime
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentgym_envs.webarena.sites.code.access import Project
from agentgym_envs.webarena.sites.code.members import people_of
from agentgym_envs.webarena.sites.framework.context import RequestContext

KINDS = {"issues": "issue", "merge_requests": "merge_request"}
"""Singular names, as in tables and columns, by the plural in URLs."""
_DETAILS = """
SELECT i.*, a.name AS author_name, a.user AS author_user, a.colour AS author_colour, s.name AS assignee_name,
    s.user AS assignee_user, m.title AS milestone_title, e.name AS ended_by_name
FROM code_{kind}s i JOIN code_accounts a ON a.id = i.author LEFT JOIN code_accounts s ON s.id = i.assignee
LEFT JOIN code_milestones m ON m.id = i.milestone LEFT JOIN code_accounts e ON e.id = i.{end}
WHERE i.project = ? AND i.number = ?
"""
_CLOSES = re.compile(r"\b(?:clos(?:e|es|ed)|fix(?:es|ed)?|resolv(?:e|es|ed)) #(\d{1,9})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AttributeChoices:
    """The available values of attributes in a project."""

    people: Sequence[sqlite3.Row]
    milestones: Sequence[sqlite3.Row]
    labels: Sequence[sqlite3.Row]


def choices(context: RequestContext, project: Project) -> AttributeChoices:
    """Return the people, open milestones and labels of a project."""
    return AttributeChoices(
        people_of(context, project),
        context.rows(
            "SELECT * FROM code_milestones WHERE project = ? AND state = 'open' ORDER BY due IS NULL, due, id",
            project.id,
        ),
        context.rows("SELECT * FROM code_labels WHERE project = ? ORDER BY name COLLATE NOCASE", project.id),
    )


def details(context: RequestContext, project: Project, kind: str, number: int) -> sqlite3.Row:
    """Return an issue or merge request with the names of its references. Raises NotFound."""
    end = {"issue": "closed_by", "merge_request": "ended_by"}[kind]
    row = context.one(_DETAILS.format(kind=kind, end=end), project.id, number)
    if kind == "issue" and row["confidential"]:
        context.require(
            project.is_at_least("Reporter") or context.account in (row["author"], row["assignee"]),
            "This issue is confidential.",
        )
    return row


def labels_of(context: RequestContext, kind: str, row: int) -> list[sqlite3.Row]:
    """Return the labels of an issue or merge request."""
    return context.rows(
        f"""SELECT l.* FROM code_{kind}_labels x JOIN code_labels l ON l.id = x.label
        WHERE x.{kind} = ? ORDER BY l.name COLLATE NOCASE""",
        row,
    )


def comments_of(context: RequestContext, kind: str, row: int) -> list[sqlite3.Row]:
    """Return the comments in chronological order."""
    return context.rows(
        f"""SELECT c.*, a.user, a.name, a.colour FROM code_comments c JOIN code_accounts a ON a.id = c.author
        WHERE c.{kind} = ? ORDER BY c.moment, c.id""",
        row,
    )


def chosen(context: RequestContext, project: Project, names: Sequence[str]) -> dict[str, Any]:
    """Return the values of these columns from the form. Values that do not belong to the project become None."""
    form, values = context.form, dict[str, Any]()
    if "assignee" in names:
        people = {row["id"] for row in people_of(context, project)}
        values["assignee"] = number if (number := form.number("assignee")) in people else None
    if "milestone" in names:
        query = "SELECT id FROM code_milestones WHERE id = ? AND project = ?"
        values["milestone"] = context.value(query, form.number("milestone"), project.id)
    if "weight" in names:
        values["weight"] = form.number("weight", -1, most=100) if form.number("weight", -1, most=100) >= 0 else None
    if "due" in names:
        values["due"] = form.text("due") if is_day(form.text("due")) else None
    if "confidential" in names:
        values["confidential"] = int(form.is_checked("confidential"))
    return values


def update(context: RequestContext, kind: str, row: int, values: Mapping[str, Any]) -> None:
    """Set columns of an issue or merge request."""
    if values:
        context.update(f"code_{kind}s", row, values)


def set_labels(context: RequestContext, project: Project, kind: str, row: int) -> None:
    """Replace the labels by those checked in the form."""
    known = {label["id"] for label in context.rows("SELECT id FROM code_labels WHERE project = ?", project.id)}
    context.write(f"DELETE FROM code_{kind}_labels WHERE {kind} = ?", row)
    for label in sorted(known & set(context.form.numbers("label"))):
        context.write(f"INSERT INTO code_{kind}_labels ({kind}, label) VALUES (?, ?)", row, label)


def next_number(context: RequestContext, kind: str, project: Project) -> int:
    """Return the next number of an issue or merge request in a project."""
    query = f"SELECT COALESCE(MAX(number), 0) + 1 FROM code_{kind}s WHERE project = ?"
    return int(context.value(query, project.id))


def closes(context: RequestContext, project: Project, text: str) -> int | None:
    """Return the issue that the text of a merge request closes: "Closes #12"."""
    row = _CLOSES.search(text)
    query = "SELECT id FROM code_issues WHERE project = ? AND number = ?"
    return context.value(query, project.id, int(row[1])) if row else None


def is_day(text: str) -> bool:
    """Return True if a text is a date such as "2026-03-16"."""
    try:
        return datetime.date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

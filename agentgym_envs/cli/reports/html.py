"""A report as one self-contained HTML page, without scripts, images, fonts or requests."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import partial
from importlib.resources import files

from agentgym_envs.cli.reports.agentgym_rl_rows import HEADER, TableLine, table_lines, table_notes
from agentgym_envs.cli.reports.columns import ReportColumn, blocks, columns, percent
from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.cli.reports.definitions import definitions
from agentgym_envs.cli.reports.figures import figures
from agentgym_envs.cli.reports.markup import Markup, el, join
from agentgym_envs.cli.reports.mistakes import HEADER as HEADINGS
from agentgym_envs.cli.reports.mistakes import TITLE as MISTAKES
from agentgym_envs.cli.reports.mistakes import mistake_lines, mistake_notes
from agentgym_envs.cli.reports.unsolved import MOST, Unsolved, unsolved
from agentgym_envs.evaluate import REPORTED, Estimate, Metrics


def to_html(report: EvalReport) -> str:
    """Render the page."""
    style = (files(__package__) / "report.css").read_text(encoding="utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=_policy(style)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", report.title),
        el("style", Markup(style)),
    )
    sections = (
        _results(report),
        _mistakes(report),
        _agentgym_rl_table(report),
        _figures(report),
        _unsolved(report),
        _run(report),
        _definitions(report),
    )
    body = el("body", el("main", _top(report), *sections), _foot(report))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _policy(style: str) -> str:
    """The content security policy: the page may only use this style."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _top(report: EvalReport) -> Markup:
    overall = report.evaluation.overall
    split = report.settings.get("split")
    tasks = f"{overall.tasks:,} tasks" + (f" of the {split} split" if isinstance(split, str) else "")
    several = f", up to {overall.max_k} episodes each" if overall.max_k > 1 else ""
    return el(
        "header",
        el("p", "Evaluation", class_="kicker"),
        el("h1", report.title),
        el("p", f"{tasks}{several}; {overall.episodes:,} episodes.", class_="lead"),
        el("dl", *_headlines(overall), class_="headlines"),
        *(el("p", note, class_="note") for note in report.notes()),
    )


def _headlines(row: Metrics) -> list[Markup]:
    """The main metrics with their intervals."""
    k = row.common_k
    found = [_headline("Success", _share(row.success), _shares(row.success))]
    if row.score is not None and row.score != row.success:
        found.append(_headline("Score", f"{row.score.mean:.3f}", f"{row.score.low:.3f} to {row.score.high:.3f}"))
    if k > 1:
        found.append(_headline(f"pass@{k}", _share(row.pass_at_k.get(k)), _shares(row.pass_at_k.get(k))))
        found.append(_headline(f"pass^{k}", _share(row.pass_hat_k.get(k)), _shares(row.pass_hat_k.get(k))))
    if row.turns is not None:
        found.append(_headline("Turns", f"{row.turns:.1f}", _plain(row.turns_estimate, "{:.1f}")))
    if row.tokens is not None:
        found.append(_headline("Tokens", f"{row.tokens:,.0f}", _plain(row.tokens_estimate, "{:,.0f}")))
    if row.invalid_actions is not None:
        found.append(_headline("Invalid", f"{100 * row.invalid_actions:.1f}%", _shares(row.invalid_actions_estimate)))
    return found


def _headline(name: str, value: str, around: str) -> Markup:
    return el("div", el("dt", name), el("dd", value, class_="big"), el("dd", around, class_="around"))


def _share(estimate: Estimate | None) -> str:
    return "–" if estimate is None else f"{100 * estimate.mean:.1f}%"


def _shares(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{100 * estimate.low:.1f} to {100 * estimate.high:.1f}%"


def _plain(estimate: Estimate | None, form: str) -> str:
    return "" if estimate is None else f"{form.format(estimate.low)} to {form.format(estimate.high)}"


def _results(report: EvalReport) -> Markup:
    evaluation = report.evaluation
    shown = columns(evaluation)
    several = len(evaluation.environments) > 1
    bodies = []
    for environment, groups in blocks(evaluation):
        rows = [_row(row.group or "", row, shown) for row in groups]
        if several:
            rows.append(_row(str(environment.env_id), environment, shown, strong=True))
        bodies.append(el("tbody", *rows))
    head = el("tr", el("td"), *(el("th", column.title, scope="col") for column in shown))
    foot = el("tfoot", _row("all", evaluation.overall, shown, strong=True))
    caption = "Means over tasks, with 95\u00a0% intervals."
    return _section(
        "Results", scrolling("Results", el("table", el("caption", caption), el("thead", head), *bodies, foot))
    )


def _row(name: str, row: Metrics, shown: Sequence[ReportColumn], *, strong: bool = False) -> Markup:
    cells = (el("td", column.text(row)) for column in shown)
    return el("tr", el("th", name, scope="row"), *cells, class_="strong" if strong else None)


def _mistakes(report: EvalReport) -> Markup | None:
    """The table of regret and mistakes, if the episodes have labels."""
    if report.mistakes is None:
        return None
    head = el("thead", el("tr", el("td"), *(el("th", title, scope="col") for title in HEADINGS)))
    rows = [
        el("tr", el("th", line.name, scope="row"), *map(partial(el, "td"), line.cells), class_=_strong(line.total))
        for line in mistake_lines(report.mistakes)
    ]
    notes = (el("p", note, class_="dim") for note in mistake_notes(report.mistakes))
    table = el("table", head, el("tbody", *rows))
    return _section(MISTAKES, scrolling(MISTAKES, table), *notes)


def _strong(total: bool) -> str | None:
    return "strong" if total else None


def _agentgym_rl_table(report: EvalReport) -> Markup | None:
    """The 27-task table, with the paper's figures in separate columns."""
    if report.agentgym_rl_table is None:
        return None
    own = (el("th", name, scope="col") for name in HEADER)
    reported = (el("th", model.model, scope="col", class_="reported") for model in REPORTED)
    groups = el(
        "tr",
        el("td"),
        el("th", "this run", scope="colgroup", colspan=len(HEADER)),
        el("th", "reported in the paper", scope="colgroup", colspan=len(REPORTED), class_="reported"),
    )
    head = el("thead", groups, el("tr", el("td"), *own, *reported))
    rows = [_table_row(line) for line in table_lines(report.agentgym_rl_table)]
    notes = el("ul", *(el("li", note) for note in table_notes(report.agentgym_rl_table)), class_="dim notes")
    table = el("table", head, el("tbody", *rows), class_="agentgym-rl")
    return _section("The 27 tasks", scrolling("The 27 tasks", table), notes)


def _table_row(line: TableLine) -> Markup:
    reported = (el("td", figure, class_="reported") for figure in line.reported)
    own = (el("td", cell) for cell in line.cells)
    return el("tr", el("th", line.name, scope="row"), *own, *reported, class_="strong" if line.whole else None)


def _figures(report: EvalReport) -> Markup | None:
    found = [
        el("figure", figure.plot, el("figcaption", el("b", f"Figure {number}. "), figure.caption))
        for number, figure in enumerate(figures(report), 1)
    ]
    return _section("Figures", el("div", *found, class_="figures")) if found else None


def _unsolved(report: EvalReport) -> Markup | None:
    """The tasks that were never solved, with the results of their episodes."""
    found = unsolved(report.episodes)
    if not found:
        return None
    head = el("tr", *(el("th", name, scope="col") for name in ("task", "goal", "best score", "turns", "ended by")))
    table = el("table", el("thead", head), el("tbody", *(_task_row(task) for task in found[:MOST])), class_="tasks")
    more = el("p", f"{len(found) - MOST:,} more are in the trajectories.", class_="dim") if len(found) > MOST else None
    summary = el("summary", f"{len(found):,} tasks were never solved")
    return _section("Unsolved tasks", el("details", summary, scrolling("Unsolved tasks", table), more))


def _task_row(task: Unsolved) -> Markup:
    return el(
        "tr",
        el("th", task.name, scope="row"),
        el("td", task.goal, class_="text"),
        el("td", f"{task.score:.3f}"),
        el("td", f"{task.turns:.1f}"),
        el("td", ", ".join(task.stops), class_="text"),
    )


def _run(report: EvalReport) -> Markup | None:
    """Settings and versions, and the first infrastructure error if there is one."""
    rows = [
        el("tr", el("th", name, scope="row"), el("td", value, class_="text")) for name, value in report.setting_rows()
    ]
    parts = [scrolling("Settings", el("table", el("tbody", *rows), class_="settings"))] if rows else []
    for failed in report.failures[:1]:
        parts += [el("p", "One failure of the environment:"), el("pre", str(failed.error))]
    return _section("The run", *parts) if parts else None


def _definitions(report: EvalReport) -> Markup:
    terms = (join(el("dt", name), el("dd", text)) for name, text in definitions(report))
    return _section("What the numbers mean", el("dl", *terms, class_="definitions"))


def _foot(report: EvalReport) -> Markup:
    ended = percent(report.evaluation.overall.success)
    return el("footer", el("p", f"Success {ended}. Made by agentgym eval and agentgym report."))


def _section(title: str, *children: Markup | None) -> Markup:
    return el("section", el("h2", title), *children)


def scrolling(name: str, table: Markup) -> Markup:
    """Wrap a table so that it scrolls sideways on a narrow page, also by keyboard."""
    return el("div", table, class_="scroll", tabindex=0, role="region", aria_label=name)

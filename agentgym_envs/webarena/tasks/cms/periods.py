"""Reports of periods, and drafts of price rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.strings import AnswerIncludes
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, MONTHS, AdminTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, given, type_text
from agentgym_envs.webarena.tasks.template import Params

_SPANS = {
    "last month": ("2026-02-01", "2026-02-28"),
    "this year so far": ("2026-01-01", "2026-03-16"),
    "last year": ("2025-01-01", "2025-12-31"),
    "the last quarter of 2025": ("2025-10-01", "2025-12-31"),
    "the month before last": ("2026-01-01", "2026-01-31"),
}
_REPORTS = {"orders": "Orders Report", "coupons": "Coupons Report", "bestsellers": "Bestsellers Report"}


def _relative(report: str, span: str) -> EndsOn:
    start, end = _SPANS[span]
    return EndsOn(f"{ADMIN}/reports/{report}?from={start}&to={end}")


relative_report = AdminTemplate(
    "cms-relative-report",
    "navigation",
    "medium",
    since=2,
    intents=(
        "Today is March 16, 2026. Generate the {report} report for {span}, from its first to its last day (today, if "
        "it is not over).",
        "It is March 16, 2026. Show the report on {report} of {span}: put the first day into From, and the last one "
        "(or today) into To.",
        "I need the {report} report of {span}, seen from today, March 16, 2026. Enter both dates, the first day and "
        "the last, which is today for a time that has not ended.",
    ),
    instances=lambda: [{"report": report, "span": span} for report in _REPORTS for span in _SPANS],
    expected=_relative,
    solution=[
        do(steps.open_from_menu, "Reports", given(lambda report: _REPORTS[report])),
        do(steps.fill_in, given(lambda span: dict(zip(("From", "To"), _SPANS[span], strict=True))), enter=True),
    ],
    mistake=[
        do(steps.open_from_menu, "Reports", given(lambda report: _REPORTS[report])),
        do(steps.fill_in, {"From": "2026-03-01", "To": "2026-03-16"}, enter=True),
    ],
)


def _month_spans(world: World) -> list[Params]:
    months = list(MONTHS)
    return [{"first": a, "last": b} for n, a in enumerate(months) for b in months[n + 2 :]]


def _monthly(world: World, first: str, last: str) -> AnswerIncludes:
    months = [key for key in MONTHS.values() if MONTHS[first] <= key <= MONTHS[last]]
    query = "SELECT COUNT(*) FROM shop_orders WHERE status = 'complete' AND substr(moment, 1, 7) = ?"
    return AnswerIncludes([f"{key[-2:]}:{world.value(query, key)}" for key in months])


def _read_months(page: PageReader) -> str:
    numbers = {name[:3]: key[-2:] for name, key in MONTHS.items()}
    rows = [row for row in page.table() if row["Interval"][:3] in numbers]
    return ", ".join(f"{numbers[row['Interval'][:3]]}:{row['Orders']}" for row in rows)


monthly_counts = AdminTemplate(
    "cms-monthly-counts",
    "information",
    "medium",
    since=2,
    intents=(
        "Give me the number of complete orders of each month from {first} to {last}, in the form MM:COUNT.",
        "How many orders of each month from {first} until {last} are complete? Write MM:COUNT for each month, such as "
        "01:25.",
        "List the monthly counts of orders with the status Complete from {first} to {last}, each as MM:COUNT.",
    ),
    instances=_month_spans,
    expected=_monthly,
    solution=[
        do(steps.open_from_menu, "Reports", "Orders Report"),
        choose_option("Period", "Month"),
        choose_option("Order Status", "Complete"),
        do(
            steps.fill_in,
            given(
                lambda first, last: {"From": queries.month_range(first)["From"], "To": queries.month_range(last)["To"]}
            ),
            enter=True,
        ),
        answer(_read_months),
    ],
    mistake=[do(steps.open_from_menu, "Reports", "Orders Report"), answer(_read_months)],
)


def _sellers(world: World, start: str, end: str) -> list[tuple[str, int]]:
    query = """SELECT p.name, SUM(l.quantity) AS quantity FROM shop_orders o
        JOIN shop_order_lines l ON l.order_id = o.id JOIN shop_products p ON p.id = l.product
        WHERE o.status <> 'canceled' AND substr(o.moment, 1, 10) BETWEEN ? AND ? GROUP BY p.id ORDER BY quantity DESC"""
    return [(row["name"], row["quantity"]) for row in world.rows(query, start, end)]


def _clear_tops(world: World, rng: Random) -> Iterator[Params]:
    """Yield periods with a gap after the best two to five products."""
    for start, end in queries.random_periods(rng, 150, least=10, most=120):
        found = _sellers(world, start, end)
        for count in (2, 3, 5):
            if len(found) > count and found[count - 1][1] > found[count][1]:
                yield {"start": start, "end": end, "count": count}


def _top(world: World, start: str, end: str, count: int) -> Says:
    names = [name for name, _ in _sellers(world, start, end)]
    return says(*names[:count], others=names[count:])


top_sellers = AdminTemplate(
    "cms-top-sellers",
    "information",
    "medium",
    since=2,
    intents=(
        "What are the top {count} best-selling products from {start} to {end}, by units ordered? Leave canceled orders "
        "out.",
        "Name the {count} products of which the most units were ordered between {start} and {end}, both days included, "
        "without canceled orders.",
        "Which {count} products sold best from {start} until {end}, counted in units and without canceled orders?",
    ),
    instances=_clear_tops,
    expected=_top,
    solution=[
        do(steps.open_from_menu, "Reports", "Ordered Products Report"),
        do(steps.fill_in, {"From": "{start}", "To": "{end}"}, enter=True),
        answer(lambda page, count: _names(page.table()[:count])),
    ],
    mistake=answer(lambda page, count: _names(page.table()[: count + 1])),
)


def _names(table: Sequence[dict[str, str]]) -> str:
    return "\n".join(row["Product"] for row in table)


_OCCASIONS = (
    "spring sale",
    "fall discount",
    "Mother's day sale",
    "Pride month",
    "harvest festival",
    "winter clearance",
)


def _draft(rule: str, kind: str, amount: int) -> Iterator[Evaluator]:
    """Return the evaluators of the form of a new rule on the agent's last page."""
    yield EndsOn(f"{ADMIN}/rules/new")
    fields = {"kind": "percent" if kind == "percent" else "fixed", "customer_group": ""}
    for name, value in fields.items():
        yield PageHolds("last", _field(name), exact=value or "none")
    yield PageHolds("last", _field("name"), includes=(rule,))
    yield PageHolds("last", _field("amount"), includes=(str(amount),))


def _field(name: str) -> str:
    return f"document.querySelector('form [name={name}]').value || 'none'"


def _rules(rng: Random) -> Iterator[Params]:
    for rule in _OCCASIONS:
        for kind, amounts in (("percent", (10, 20, 30, 45)), ("dollars", (5, 10, 15, 40))):
            yield {"rule": rule, "kind": kind, "amount": rng.choice(amounts)}


_APPLY = given(lambda kind: "Percent of the cart" if kind == "percent" else "Fixed amount for the whole cart")

draft_rule = AdminTemplate(
    "cms-draft-rule",
    "change",
    "medium",
    since=2,
    intents=(
        'Draft a new cart price rule for all customers, named "{rule}", that gives {amount} {kind} off the whole cart. '
        "Do not save it yet.",
        'Fill in the form of a new cart price rule: "{rule}", {amount} {kind} off the whole cart, for all customer '
        "groups. Leave it unsaved, I will check it.",
        'Prepare, without saving, a cart price rule called "{rule}" for everybody: a discount of {amount} {kind} on '
        "the whole cart.",
    ),
    instances=_rules,
    expected=_draft,
    solution=[
        do(steps.open_from_menu, "Marketing", "Cart Price Rules"),
        click("link", "Add New Rule"),
        type_text("Rule Name", "{rule}"),
        choose_option("Apply", _APPLY),
        type_text("Discount Amount", "{amount}"),
    ],
    mistake=[
        do(steps.open_from_menu, "Marketing", "Cart Price Rules"),
        click("link", "Add New Rule"),
        type_text("Rule Name", "{rule}"),
        choose_option("Apply", _APPLY),
        type_text("Discount Amount", "{amount}"),
        click("button", "Save"),
    ],
)

"""Tasks about cart price rules, their coupons, and the search terms of the shop."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NOT_ACHIEVABLE, NotAchievable, Says, says
from agentgym_envs.webarena.tasks.cms import queries, steps
from agentgym_envs.webarena.tasks.cms.queries import AdminTemplate
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import answer, click, do, type_text
from agentgym_envs.webarena.tasks.template import Params

_TERMS = "SELECT term, results, uses FROM shop_searches ORDER BY uses DESC, id"
_PROMOTIONS = {
    "Spring cleaning": "CLEAN",
    "Happy birthday": "BDAY",
    "Garden party": "GARDEN",
    "Back to work": "WORK",
    "Rainy days": "RAIN",
    "First holiday": "HOLIDAY",
    "Long weekend": "LONG",
    "Early birds": "EARLY",
}
"""Names of new rules, with the first letters of their coupon codes."""


def _find(page: PageReader, coupon: str) -> Iterator[str]:
    """Filter the rules by a coupon."""
    yield from steps.open_from_menu(page, "Marketing", "Cart Price Rules")
    yield from steps.filter_grid(page, {"Coupon code": coupon})


coupon_uses = AdminTemplate(
    "cms-coupon-uses",
    "information",
    "medium",
    intents=(
        "How many times has the coupon code {coupon} been used?",
        "How often did customers use the coupon {coupon}?",
        "Tell me the number of uses of the cart price rule with the coupon {coupon}.",
    ),
    instances=queries.one_row_per_answer(
        "SELECT used, coupon FROM shop_rules WHERE coupon <> '' ORDER BY id", sample=0
    ),
    expected=lambda world, coupon: says(world.value("SELECT used FROM shop_rules WHERE coupon = ?", coupon)),
    solution=[do(_find, "{coupon}"), answer(lambda page, coupon: _row(page, coupon)["Uses"])],
)


def _unknown_coupon_instances(world: World) -> list[Params]:
    """Codes that look like the shop's."""
    known = {row["coupon"] for row in world.rows("SELECT coupon FROM shop_rules")}
    heads = ("SUMMER", "BAKER", "ROSES", "MARCH", "SUNDAY", "HELLO", "LOYAL", "GREEN")
    codes = (f"{head}{number}" for head in heads for number in (5, 10, 15, 20, 30))
    return [{"coupon": code} for code in codes if code not in known]


unknown_coupon = AdminTemplate(
    "cms-coupon-unknown",
    "information",
    "medium",
    intents=coupon_uses.intents,
    instances=_unknown_coupon_instances,
    expected=NotAchievable,
    solution=[
        do(_find, "{coupon}"),
        answer(lambda page, coupon: _row(page, coupon)["Uses"] if steps.count_found(page) else NOT_ACHIEVABLE),
    ],
    mistake=[do(steps.open_from_menu, "Marketing", "Cart Price Rules"), answer(lambda page: page.table()[0]["Uses"])],
)


def _open(page: PageReader, coupon: str) -> Iterator[str]:
    """Open the rule of a coupon."""
    yield from _find(page, coupon)
    yield page.click_in(coupon, "link", _row(page, coupon)["Rule"])


open_rule = AdminTemplate(
    "cms-open-rule",
    "navigation",
    "medium",
    intents=(
        "Open the cart price rule that has the coupon code {coupon}.",
        "Go to the edit page of the cart price rule of the coupon {coupon}.",
        "Show me the details of the rule behind the coupon {coupon}.",
    ),
    instances=rows("SELECT coupon FROM shop_rules WHERE coupon <> '' ORDER BY id"),
    expected=lambda world, coupon: EndsOn(queries.rule_url(world, coupon)),
    solution=[do(_open, "{coupon}")],
)


def _row(page: PageReader, coupon: str) -> dict[str, str]:
    """Return the database row of a coupon's rule."""
    return next(row for row in page.table() if row["Coupon Code"] == coupon)


switch_rule = AdminTemplate(
    "cms-switch-rule",
    "change",
    "medium",
    intents=(
        "{switch} the cart price rule with the coupon code {coupon}.",
        "{switch} the rule behind the coupon {coupon}, and change nothing else of it.",
        "{switch} the coupon {coupon} by its cart price rule.",
    ),
    instances=rows(
        "SELECT coupon, CASE WHEN active THEN 'Deactivate' ELSE 'Activate' END AS switch FROM shop_rules "
        "WHERE coupon <> ''"
    ),
    expected=lambda switch, coupon: Updated("shop_rules", {"coupon": coupon}, {"active": int(switch == "Activate")}),
    solution=[do(_open, "{coupon}"), click("checkbox", "Active"), click("button", "Save")],
)


def _extend_rule_instances(world: World, rng: Random) -> Iterator[Params]:
    for row in world.rows("SELECT coupon, ends FROM shop_rules WHERE coupon <> '' ORDER BY id"):
        days = [f"2026-{month:02}-{day:02}" for month in (6, 7, 8, 9) for day in (5, 10, 15, 20, 25, 30)]
        for end in rng.sample([day for day in days if day != row["ends"]], 3):
            yield {"coupon": row["coupon"], "end": end}


extend_rule = AdminTemplate(
    "cms-extend-rule",
    "change",
    "medium",
    intents=(
        "Let the coupon {coupon} be valid until {end}: change the end of its cart price rule.",
        "Set the last day of the cart price rule with the coupon {coupon} to {end}.",
        "The coupon {coupon} must end on {end}. Change its rule accordingly.",
    ),
    instances=_extend_rule_instances,
    expected=lambda coupon, end: Updated("shop_rules", {"coupon": coupon}, {"ends": end}),
    solution=[do(_open, "{coupon}"), type_text("To", "{end}"), click("button", "Save")],
)


def _new_coupon_instances(world: World, rng: Random) -> Iterator[Params]:
    """Future promotions, with codes that are not taken."""
    taken = {row["coupon"] for row in world.rows("SELECT coupon FROM shop_rules")}
    for rule, head in _PROMOTIONS.items():
        for percent in rng.sample((5, 8, 10, 12, 15, 18, 20, 30), 3):
            month, day = rng.randint(4, 8), rng.randint(1, 20)
            dates = {"start": f"2026-{month:02}-{day:02}", "end": f"2026-{month:02}-{day + rng.randint(3, 8):02}"}
            if f"{head}{percent}" not in taken:
                code = {"rule": rule, "coupon": f"{head}{percent}", "percent": percent}
                yield {**code, **dates, "least": rng.choice((20, 25, 30, 40, 50, 60, 75, 100))}


def _rule_added(rule: str, coupon: str, percent: int, start: str, end: str, least: int) -> Added:
    values = {"name": rule, "coupon": coupon, "kind": "percent", "amount": percent}
    values |= {"minimum": 100 * least, "starts": start, "ends": end}
    return Added("shop_rules", {**values, "active": 1, "customer_group": ""})


_RULE_FORM = {
    "Rule Name": "{rule}",
    "Coupon Code": "{coupon}",
    "From": "{start}",
    "To": "{end}",
    "Minimum Subtotal": "{least}",
    "Discount Amount": "{percent}",
}

new_coupon = AdminTemplate(
    "cms-new-coupon",
    "change",
    "hard",
    intents=(
        'Create an active cart price rule "{rule}" with the coupon code {coupon}: {percent}% off the cart from a '
        "minimum subtotal of ${least}, valid from {start} to {end}, for all customer groups.",
        'Add a new coupon {coupon}. The rule is called "{rule}", takes {percent} percent off carts with a subtotal of '
        "at least ${least}, is active, and runs from {start} to {end} for every customer group.",
        'We need a promotion "{rule}" from {start} to {end}: with the coupon {coupon}, everybody gets {percent}% off '
        "carts with a subtotal of ${least} or more. Create the cart price rule, active at once.",
    ),
    instances=_new_coupon_instances,
    expected=_rule_added,
    solution=[
        do(steps.open_from_menu, "Marketing", "Cart Price Rules"),
        click("link", "Add New Rule"),
        do(steps.fill_in, _RULE_FORM),
        click("button", "Save"),
    ],
)

term_uses = AdminTemplate(
    "cms-search-term-uses",
    "information",
    "medium",
    intents=(
        'How many times was "{term}" searched for in the shop?',
        'How often did visitors of the shop use the search term "{term}"?',
        'Tell me the number of uses of the search term "{term}".',
    ),
    instances=queries.one_row_per_answer("SELECT uses, term FROM shop_searches ORDER BY uses DESC, id"),
    expected=lambda world, term: says(world.value("SELECT uses FROM shop_searches WHERE term = ?", term)),
    solution=[
        do(steps.open_from_menu, "Marketing", "Search Terms"),
        do(steps.filter_grid, {"Search query": "{term}"}),
        answer(lambda page, term: next(row["Uses"] for row in page.table() if row["Search Query"] == term)),
    ],
)


def _top_terms_expected(world: World, count: int) -> Says:
    terms = [row["term"] for row in world.rows(_TERMS)]
    return says(*terms[:count], others=terms[count:])


top_terms = AdminTemplate(
    "cms-top-search-terms",
    "information",
    "easy",
    intents=(
        "What are the {count} search terms that were used most in the shop?",
        "List the top {count} search terms of the shop, by their uses.",
        "Name the {count} most used search terms in our store.",
    ),
    instances=lambda: [{"count": count} for count in range(2, 12)],
    expected=_top_terms_expected,
    solution=[
        do(steps.open_from_menu, "Marketing", "Search Terms"),
        answer(lambda page, count: "; ".join(row["Search Query"] for row in page.table()[:count])),
    ],
)


def _terms_without_results_instances(world: World) -> Iterator[Params]:
    """Minimum numbers of uses that two to ten such terms reach."""
    uses = [row["uses"] for row in world.rows(_TERMS) if not row["results"]]
    for index in range(1, min(10, len(uses) - 1)):
        yield {"least": uses[index + 1] + 1 + (uses[index] - uses[index + 1] - 1) // 2}


def _terms_without_results_expected(world: World, least: int) -> Says:
    rows = world.rows(_TERMS)
    fruitless = [row["term"] for row in rows if not row["results"] and row["uses"] >= least]
    return says(*fruitless, others=[row["term"] for row in rows if row["term"] not in fruitless])


terms_without_results = AdminTemplate(
    "cms-vain-search-terms",
    "information",
    "medium",
    held_out=True,
    intents=(
        "Which search terms that were used at least {least} times found nothing at all?",
        "List all search terms with {least} uses or more and without any result.",
        "What did visitors search for {least} times or more although the shop had 0 results for it?",
    ),
    instances=_terms_without_results_instances,
    expected=_terms_without_results_expected,
    solution=[
        do(steps.open_from_menu, "Marketing", "Search Terms"),
        do(steps.filter_grid, {"Results to": 0, "Uses from": "{least}"}),
        answer(lambda page: "; ".join(row["Search Query"] for row in page.table())),
    ],
)

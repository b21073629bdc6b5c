"""Tasks about cart price rules, their coupons, and the search terms of the shop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import NotAchievable, says
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, AdminTemplate, one_per_answer, sample_some
from agentgym_envs.webarena.tasks.cms.steps import count_found, fill_in, filter_grid, open_from_menu
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

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


class CouponUses(AdminTemplate):
    """Name the number of times that a coupon was used."""

    name, kind, difficulty = "cms-coupon-uses", "information", "medium"
    intents = (
        "How many times has the coupon code {coupon} been used?",
        "How often did customers use the coupon {coupon}?",
        "Tell me the number of uses of the cart price rule with the coupon {coupon}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Coupons with different numbers of uses."""
        rows = world.rows("SELECT coupon, used FROM shop_rules WHERE coupon <> '' ORDER BY id")
        return one_per_answer((row["used"], {"coupon": row["coupon"]}) for row in rows)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(world.value("SELECT used FROM shop_rules WHERE coupon = ?", params["coupon"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _find(page, params["coupon"])
        yield page.stop(_row(page, params["coupon"])["Uses"])


class UnknownCoupon(AdminTemplate):
    """Name the number of uses of a coupon that does not exist."""

    name, kind, difficulty = "cms-coupon-unknown", "information", "medium"
    intents = (
        "How many times has the coupon code {coupon} been used?",
        "How often did customers use the coupon {coupon}?",
        "Tell me the number of uses of the cart price rule with the coupon {coupon}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Codes that look like the shop's."""
        known = {row["coupon"] for row in world.rows("SELECT coupon FROM shop_rules")}
        heads = ("SUMMER", "BAKER", "ROSES", "MARCH", "SUNDAY", "HELLO", "LOYAL", "GREEN")
        codes = (f"{head}{number}" for head in heads for number in (5, 10, 15, 20, 30))
        return [{"coupon": code} for code in codes if code not in known]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [NotAchievable()]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _find(page, params["coupon"])
        yield page.stop(_row(page, params["coupon"])["Uses"]) if count_found(page) else page.not_achievable()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Answer with the number of the first rule."""
        yield from open_from_menu(page, "Marketing", "Cart Price Rules")
        yield page.stop(page.table()[0]["Uses"])


class OpenRule(AdminTemplate):
    """Open a price rule for editing."""

    name, kind, difficulty = "cms-open-rule", "navigation", "medium"
    intents = (
        "Open the cart price rule that has the coupon code {coupon}.",
        "Go to the edit page of the cart price rule of the coupon {coupon}.",
        "Show me the details of the rule behind the coupon {coupon}.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return map(dict, world.rows("SELECT coupon FROM shop_rules WHERE coupon <> '' ORDER BY id"))

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{ADMIN}/rules/{world.value('SELECT id FROM shop_rules WHERE coupon = ?', params['coupon'])}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _open(page, params["coupon"])
        yield page.stop()


def _find(page: PageReader, coupon: str) -> Iterator[str]:
    """Filter the rules by a coupon."""
    yield from open_from_menu(page, "Marketing", "Cart Price Rules")
    yield from filter_grid(page, {"Coupon code": coupon})


def _row(page: PageReader, coupon: str) -> dict[str, str]:
    """Return the database row of a coupon's rule."""
    return next(row for row in page.table() if row["Coupon Code"] == coupon)


def _open(page: PageReader, coupon: str) -> Iterator[str]:
    """Open the rule of a coupon."""
    yield from _find(page, coupon)
    yield page.click_in(coupon, "link", _row(page, coupon)["Rule"])


class SwitchRule(AdminTemplate):
    """Activate or deactivate a price rule."""

    name, kind, difficulty = "cms-switch-rule", "change", "medium"
    intents = (
        "{switch} the cart price rule with the coupon code {coupon}.",
        "{switch} the rule behind the coupon {coupon}, and change nothing else of it.",
        "{switch} the coupon {coupon} by its cart price rule.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for row in world.rows("SELECT coupon, active FROM shop_rules WHERE coupon <> '' ORDER BY id"):
            yield {"coupon": row["coupon"], "switch": "Deactivate" if row["active"] else "Activate"}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"active": int(params["switch"] == "Activate")}
        return [changed(Updated("shop_rules", {"coupon": params["coupon"]}, values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _open(page, params["coupon"])
        yield page.click("checkbox", "Active")
        yield page.click("button", "Save")
        yield page.stop()


class ExtendRule(AdminTemplate):
    """Change the last day of a coupon."""

    name, kind, difficulty = "cms-extend-rule", "change", "medium"
    intents = (
        "Let the coupon {coupon} be valid until {end}: change the end of its cart price rule.",
        "Set the last day of the cart price rule with the coupon {coupon} to {end}.",
        "The coupon {coupon} must end on {end}. Change its rule accordingly.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for row in world.rows("SELECT coupon, ends FROM shop_rules WHERE coupon <> '' ORDER BY id"):
            days = [f"2026-{month:02}-{day:02}" for month in (6, 7, 8, 9) for day in (5, 10, 15, 20, 25, 30)]
            for end in rng.sample([day for day in days if day != row["ends"]], 3):
                yield {"coupon": row["coupon"], "end": end}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Updated("shop_rules", {"coupon": params["coupon"]}, {"ends": params["end"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _open(page, params["coupon"])
        yield page.type("To", params["end"])
        yield page.click("button", "Save")
        yield page.stop()


class NewCoupon(AdminTemplate):
    """Create a price rule with a coupon."""

    name, kind, difficulty = "cms-new-coupon", "change", "hard"
    intents = (
        'Create an active cart price rule "{rule}" with the coupon code {coupon}: {percent}% off the cart from a '
        "minimum subtotal of ${least}, valid from {start} to {end}, for all customer groups.",
        'Add a new coupon {coupon}. The rule is called "{rule}", takes {percent} percent off carts with a subtotal of '
        "at least ${least}, is active, and runs from {start} to {end} for every customer group.",
        'We need a promotion "{rule}" from {start} to {end}: with the coupon {coupon}, everybody gets {percent}% off '
        "carts with a subtotal of ${least} or more. Create the cart price rule, active at once.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Future promotions, with codes that are not taken."""
        taken = {row["coupon"] for row in world.rows("SELECT coupon FROM shop_rules")}
        for rule, head in _PROMOTIONS.items():
            for percent in rng.sample((5, 8, 10, 12, 15, 18, 20, 30), 3):
                month, day = rng.randint(4, 8), rng.randint(1, 20)
                dates = {"start": f"2026-{month:02}-{day:02}", "end": f"2026-{month:02}-{day + rng.randint(3, 8):02}"}
                if f"{head}{percent}" not in taken:
                    code = {"rule": rule, "coupon": f"{head}{percent}", "percent": percent}
                    yield {**code, **dates, "least": rng.choice((20, 25, 30, 40, 50, 60, 75, 100))}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"name": params["rule"], "coupon": params["coupon"], "kind": "percent", "amount": params["percent"]}
        values |= {"minimum": 100 * params["least"], "starts": params["start"], "ends": params["end"]}
        return [changed(Added("shop_rules", {**values, "active": 1, "customer_group": ""}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "Cart Price Rules")
        yield page.click("link", "Add New Rule")
        labels = {"Rule Name": "rule", "Coupon Code": "coupon", "From": "start", "To": "end"}
        labels |= {"Minimum Subtotal": "least", "Discount Amount": "percent"}
        yield from fill_in(page, {label: params[key] for label, key in labels.items()})
        yield page.click("button", "Save")
        yield page.stop()


class TermUses(AdminTemplate):
    """Name the number of times that a term was searched for."""

    name, kind, difficulty = "cms-search-term-uses", "information", "medium"
    intents = (
        'How many times was "{term}" searched for in the shop?',
        'How often did visitors of the shop use the search term "{term}"?',
        'Tell me the number of uses of the search term "{term}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Terms with different numbers of uses."""
        return sample_some(one_per_answer((row["uses"], {"term": row["term"]}) for row in world.rows(_TERMS)), rng)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [says(world.value("SELECT uses FROM shop_searches WHERE term = ?", params["term"]))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "Search Terms")
        yield from filter_grid(page, {"Search query": params["term"]})
        yield page.stop(next(row["Uses"] for row in page.table() if row["Search Query"] == params["term"]))


class TopTerms(AdminTemplate):
    """Name the most frequent search terms."""

    name, kind, difficulty = "cms-top-search-terms", "information", "easy"
    intents = (
        "What are the {count} search terms that were used most in the shop?",
        "List the top {count} search terms of the shop, by their uses.",
        "Name the {count} most used search terms in our store.",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Counts of terms that fit on one page."""
        return [{"count": count} for count in range(2, 12)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        terms = [row["term"] for row in world.rows(_TERMS)]
        return [says(*terms[: params["count"]], others=terms[params["count"] :])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "Search Terms")
        yield page.stop("; ".join(row["Search Query"] for row in page.table()[: params["count"]]))


class TermsWithoutResults(AdminTemplate):
    """Name the frequent search terms without results."""

    name, kind, difficulty = "cms-vain-search-terms", "information", "medium"
    held_out = True
    intents = (
        "Which search terms that were used at least {least} times found nothing at all?",
        "List all search terms with {least} uses or more and without any result.",
        "What did visitors search for {least} times or more although the shop had 0 results for it?",
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Minimum numbers of uses that two to ten such terms reach."""
        uses = [row["uses"] for row in world.rows(_TERMS) if not row["results"]]
        for index in range(1, min(10, len(uses) - 1)):
            yield {"least": uses[index + 1] + 1 + (uses[index] - uses[index + 1] - 1) // 2}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        rows = world.rows(_TERMS)
        fruitless = [row["term"] for row in rows if not row["results"] and row["uses"] >= params["least"]]
        return [says(*fruitless, others=[row["term"] for row in rows if row["term"] not in fruitless])]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Marketing", "Search Terms")
        yield from filter_grid(page, {"Results to": 0, "Uses from": params["least"]})
        yield page.stop("; ".join(row["Search Query"] for row in page.table()))


TEMPLATES = (
    CouponUses(),
    UnknownCoupon(),
    OpenRule(),
    SwitchRule(),
    ExtendRule(),
    NewCoupon(),
    TermUses(),
    TopTerms(),
    TermsWithoutResults(),
)

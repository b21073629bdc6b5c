"""Tasks that buy the best product within a budget, and that change the default address."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from agentgym_envs.webarena.evaluators.state import Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import ordering, queries, steps
from agentgym_envs.webarena.tasks.shopping.comparing import products_of
from agentgym_envs.webarena.tasks.shopping.queries import ME, ShopTemplate
from agentgym_envs.webarena.tasks.steps import choose_option, do, given
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params


def _best_in_budget(world: World, category: str, low: int, high: int) -> list[dict[str, Any]]:
    """Return the products of a category within a budget, the best rated first."""
    found = [one for one in products_of(world, category) if 100 * low <= one["sold"] <= 100 * high]
    return sorted(found, key=lambda one: (-one["rating"], -one["reviews"], one["id"]))


def _budgets(world: World, rng: Random) -> Iterator[Params]:
    """Yield budgets with a clear best product that can be ordered."""
    inside = {line["product"] for line in queries.cart_lines(world)}
    for row in queries.categories(world):
        for low, high in ((5, 30), (20, 60), (30, 90), (50, 150), (100, 250)):
            found = _best_in_budget(world, row["category"], low, high)
            if len(found) < 2 or found[0]["rating"] <= found[1]["rating"] or not found[0]["plain"]:
                continue
            if found[0]["stock"] > 5 and found[0]["id"] not in inside:
                yield {**row, "low": low, "high": high, **rng.choice(ordering.checkouts(world))}


def _best_ordered(world: World, params: Params, category: str, low: int, high: int) -> ExpectedResult:
    best = _best_in_budget(world, category, low, high)[0]
    more = {"product": best["id"], "name": best["name"], "options": "", "price": best["sold"], "quantity": 1}
    return queries.order_changes(world, [*queries.cart_lines(world), more], params, new=1)


def _add_best(page: PageReader, low: int, high: int) -> Iterator[str]:
    """Add the first product of the list within the budget."""
    yield from steps.show_few(page)
    while True:
        for product in steps.listed_products(page):
            if 100 * low <= steps.cents(product.price) <= 100 * high:
                yield page.click("link", product.name)
                yield page.click("button", "Add to Cart")
                return
        yield page.click("link", "Next")


buy_best_rated = ShopTemplate(
    "shopping-buy-best-rated",
    "change",
    "hard",
    since=2,
    intents=(
        'Buy the highest rated product of the category "{category}" ({department}) within a budget between ${low} and '
        "${high}, together with what is in my cart: {shipping}, to my address at {street}, paid by {payment}.",
        "Under {department} > {category}, which product from ${low} to ${high} has the best average rating? Add one to "
        "my cart and order all of the cart: {shipping}, to {street}, paid by {payment}.",
        'I want the best rated "{category}" product ({department}) that costs at least ${low} and at most ${high}. Put '
        "it into the cart and check out with {shipping} and {payment}, to my address at {street}.",
    ),
    instances=_budgets,
    expected=_best_ordered,
    solution=[
        do(steps.open_category, "{department}", "{category}"),
        choose_option("Sort By", "Rating: High to Low"),
        do(_add_best, given(lambda low: low), given(lambda high: high)),
        do(steps.open_cart),
        do(steps.check_out, given(lambda params: params)),
    ],
    mistake=[
        do(steps.open_category, "{department}", "{category}"),
        choose_option("Sort By", "Rating: High to Low"),
        do(_add_best, given(lambda low: low), given(lambda high: high)),
    ],
)

_MOVES = (
    ("231 Willow Walk", "0331"),
    ("987 Cedar Close", "0417"),
    ("654 Lark Rise", "0562"),
    ("222 Redwood Rise", "0613"),
    ("1280 Ferry Road", "0744"),
)


def _moves(world: World, rng: Random) -> Iterator[Params]:
    towns = world.rows("SELECT t.name, t.zip, r.name AS region FROM map_towns t JOIN map_regions r ON r.id = t.region")
    for _ in range(24):
        street, phone = rng.choice(_MOVES)
        town = rng.choice(towns)
        values = {"street": street, "town": town["name"], "zip": town["zip"], "region": town["region"]}
        yield {**values, "phone": f"{phone} 555 {rng.randint(1000, 9999)}"}


def _moved(world: World, params: Params) -> Updated:
    number = world.value("SELECT address FROM shop_customers WHERE id = ?", ME)
    return Updated("shop_addresses", {"id": number}, dict(params))


def _move(page: PageReader, params: Params, button: str = "Save Address") -> Iterator[str]:
    yield from steps.open_addresses(page)
    yield page.click("link", "Edit Address", after="Address Book")  # the default one comes first
    for label, key in (("Street Address", "street"), ("Town", "town"), ("Zip/Postal Code", "zip")):
        yield page.type(label, params[key])
    yield page.choose("Region", params["region"])
    yield page.type("Phone Number", params["phone"])
    yield page.click("button", button)


move_house = ShopTemplate(
    "shopping-move-house",
    "change",
    "hard",
    since=2,
    intents=(
        "I have moved to {street}, {zip} {town}, {region}; my telephone number is {phone} now. Update my default "
        "address in the shop accordingly.",
        "My default address in the address book is out of date. Change it to {street}, {zip} {town}, region {region}, "
        "telephone {phone}.",
        "Correct the default address of my account: street {street}, town {town}, zip {zip}, region {region}, "
        "telephone {phone}. Change the address that is there; do not add another one.",
    ),
    instances=_moves,
    expected=_moved,
    solution=[do(_move, given(lambda params: params))],
)

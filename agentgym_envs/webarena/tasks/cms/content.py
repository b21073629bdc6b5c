"""Tasks about content pages, categories and the store's settings."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.words import lines
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.cms import steps
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, AdminTemplate
from agentgym_envs.webarena.tasks.instances import rows
from agentgym_envs.webarena.tasks.steps import click, do, type_text
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

SHOP = ORIGINS["shop"]
_TITLES = {
    "about-us": ("Who we are", "Our story", "The people behind the shop"),
    "shipping": ("Delivery", "How we ship", "Shipping and delivery"),
    "returns": ("Send it back", "Returns", "Thirty days to change your mind"),
    "customer-service": ("Help and contact", "How can we help?", "Service"),
    "privacy": ("Your data", "Privacy policy", "What we know about you"),
    "size-guide": ("Find your size", "Sizes", "How to measure"),
    "gift-wrapping": ("Gifts", "Wrapped for you", "Gift service"),
    "terms": ("Terms and conditions", "The small print", "Terms of business"),
    "careers": ("Jobs", "Work with us", "Open positions"),
}
_NEW_TITLES = lines("""
    Opening hours in spring
    Store closed for stocktaking
    Repair service
    Our workshop
    Local makers
    Packaging
    Recycling
    For schools
    For clubs
    Gift cards
    Price promise
    Newsletter archive
""")
_NEW_TEXTS = lines("""
    We are working on this page. Please come back in a week.
    Ask for it by telephone, and we will gladly help you.
    From April on, this is possible in our store. Just drop in.
    Everything that you need to know about it is told at the counter.
""")


def _retitle_page_instances(world: World) -> Iterator[Params]:
    for row in world.rows("SELECT title, url_key FROM shop_pages WHERE enabled ORDER BY id"):
        for new in _TITLES.get(row["url_key"], ()):
            if new != row["title"]:
                yield {"old": row["title"], "new": new}


def _retitle_page_expected(world: World, old: str, new: str) -> ExpectedResult:
    key = world.value("SELECT url_key FROM shop_pages WHERE title = ?", old)
    renamed = Updated("shop_pages", {"url_key": key}, {"title": new})
    shown = PageHolds(f"{SHOP}/page/{key}", "document.querySelector('h1').innerText", exact=new)
    return [renamed, shown]


retitle_page = AdminTemplate(
    "cms-page-title",
    "change",
    "medium",
    intents=(
        'Change the title of the page "{old}" to "{new}".',
        'Rename the content page "{old}": its title is to be "{new}".',
        'The shop\'s page "{old}" must be called "{new}" from now on. Keep its URL key.',
    ),
    instances=_retitle_page_instances,
    expected=_retitle_page_expected,
    free=("shop_pages.updated",),
    solution=[
        do(steps.open_from_menu, "Content", "Pages"),
        click("link", "{old}", after="Filters"),
        type_text("Page Title", "{new}"),
        click("button", "Save"),
    ],
)

open_page = AdminTemplate(
    "cms-open-page",
    "navigation",
    "easy",
    intents=(
        'Open the content page with the URL key "{key}" to edit it.',
        'Go to where I can edit the page whose URL key is "{key}".',
        'Show me the form of the shop\'s page that has the URL key "{key}".',
    ),
    instances=rows("SELECT url_key AS key FROM shop_pages"),
    expected=lambda world, key: EndsOn(
        f"{ADMIN}/pages/{world.value('SELECT id FROM shop_pages WHERE url_key = ?', key)}"
    ),
    solution=[do(steps.open_from_menu, "Content", "Pages"), do(steps.open_from_grid, "{key}", "Title")],
)

switch_page = AdminTemplate(
    "cms-switch-page",
    "change",
    "medium",
    intents=(
        '{switch} the content page "{page}".',
        '{switch} the page "{page}" of the shop, and change nothing else of it.',
        'In the list of pages, there is one called "{page}". {switch} it.',
    ),
    instances=rows(
        "SELECT title AS page, CASE WHEN enabled THEN 'Disable' ELSE 'Enable' END AS switch FROM shop_pages"
    ),
    expected=lambda page, switch: Updated("shop_pages", {"title": page}, {"enabled": int(switch == "Enable")}),
    free=("shop_pages.updated",),
    solution=[
        do(steps.open_from_menu, "Content", "Pages"),
        click("link", "{page}", after="Filters"),
        click("checkbox", "Enable Page"),
        click("button", "Save"),
    ],
)


def _new_page_instances(world: World, rng: Random) -> Iterator[Params]:
    """Titles and URL keys that are not taken."""
    taken = {row["url_key"] for row in world.rows("SELECT url_key FROM shop_pages")}
    for title in _NEW_TITLES:
        key = title.lower().replace(" ", "-")
        if key in taken:
            continue
        for content in rng.sample(_NEW_TEXTS, 2):
            yield {"title": title, "key": key, "content": content}


new_page = AdminTemplate(
    "cms-new-page",
    "change",
    "medium",
    intents=(
        'Create an enabled content page with the title "{title}", the URL key "{key}" and the content "{content}"',
        'Add a page to the shop. Title: "{title}". URL key: "{key}". Content: "{content}" It is to be enabled.',
        'Publish a new page "{title}" under the URL key "{key}" that says: "{content}"',
    ),
    instances=_new_page_instances,
    expected=lambda title, key, content: [
        Added("shop_pages", {"title": title, "url_key": key, "content": content, "enabled": 1}),
        PageHolds(f"{SHOP}/page/{key}", "document.body.innerText", [content]),
    ],
    solution=[
        do(steps.open_from_menu, "Content", "Pages"),
        click("link", "Add New Page"),
        do(steps.fill_in, {"Page Title": "{title}", "URL Key": "{key}", "Content": "{content}"}),
        click("button", "Save"),
    ],
)

_CATEGORY = """SELECT k.id FROM shop_categories k JOIN shop_categories above ON above.id = k.parent
    WHERE k.name = ? AND above.name = ?"""
_FORMS = ("All {}", "{} & More", "{} for Everybody", "Our {}", "Fine {}")


def _rename_category_instances(world: World, rng: Random) -> Iterator[Params]:
    query = """SELECT k.name AS category, above.name AS department FROM shop_categories k
        JOIN shop_categories above ON above.id = k.parent ORDER BY k.id"""
    for row in world.rows(query):
        yield {**dict(row), "new": rng.choice(_FORMS).format(row["category"])}


rename_category = AdminTemplate(
    "cms-rename-category",
    "change",
    "medium",
    intents=(
        'Rename the category "{category}" in the department "{department}" to "{new}".',
        'In "{department}", the category "{category}" is to be called "{new}". Change its name.',
        'Give the category "{category}" (department "{department}") the new name "{new}".',
    ),
    instances=_rename_category_instances,
    expected=lambda world, category, department, new: Updated(
        "shop_categories", {"id": world.value(_CATEGORY, category, department)}, {"name": new}
    ),
    solution=[
        do(steps.open_from_menu, "Catalog", "Categories"),
        click("link", "{department}", after="Departments"),
        click("link", "{category}", after="Category"),
        type_text("Category Name", "{new}"),
        click("button", "Save"),
    ],
)

_SETTINGS = (
    ("phone", "Store Phone Number", ("012 555 7000", "088 555 4321", "031 555 9090")),
    ("email", "Store E-mail", ("hello@shop.test", "orders@shop.test", "team@shop.test")),
    ("hours", "Store Hours of Operation", ("Monday to Saturday, 9 AM to 6 PM", "Tuesday to Friday, 10 AM to 4 PM")),
    ("street", "Street Address", ("3 Harbour Parade", "240 Old Mill Road")),
    ("store_name", "Store Name", ("The Corner Market", "Everything Under One Roof")),
    ("delivery_days", "Delivery Time in Days", ("1 to 2", "5 to 9", "7 to 10")),
    ("return_days", "Days to Return", ("14", "21", "45", "60", "100")),
    ("tax_percent", "Tax Percent", ("4", "11", "13")),
)


def _change_setting_instances(world: World) -> Iterator[Params]:
    """Values that differ from the current ones."""
    for name, label, values in _SETTINGS:
        old = world.value("SELECT value FROM shop_settings WHERE name = ?", name)
        yield from ({"label": label, "value": value} for value in values if value != old)


def _setting_changed(label: str, value: str) -> Updated:
    name = next(name for name, shown, _ in _SETTINGS if shown == label)
    return Updated("shop_settings", {"name": name}, {"value": value})


change_setting = AdminTemplate(
    "cms-change-setting",
    "change",
    "medium",
    intents=(
        'In the store\'s settings, change "{label}" to "{value}".',
        'Set "{label}" in the settings of the store to "{value}".',
        'Update the configuration of the store: "{label}" must be "{value}".',
    ),
    instances=_change_setting_instances,
    expected=_setting_changed,
    solution=[
        do(steps.open_from_menu, "Stores", "Settings"),
        type_text("{label}", "{value}"),
        click("button", "Save Config"),
    ],
)

"""Tasks about content pages, categories and the store's settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.evaluators.urls import EndsOn
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.words import lines
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.cms.queries import ADMIN, AdminTemplate
from agentgym_envs.webarena.tasks.cms.steps import fill_in, open_from_menu
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

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


class RetitlePage(AdminTemplate):
    """Change the title of a content page."""

    name, kind, difficulty = "cms-page-title", "change", "medium"
    intents = (
        'Change the title of the page "{old}" to "{new}".',
        'Rename the content page "{old}": its title is to be "{new}".',
        'The shop\'s page "{old}" must be called "{new}" from now on. Keep its URL key.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for row in world.rows("SELECT title, url_key FROM shop_pages WHERE enabled ORDER BY id"):
            for new in _TITLES.get(row["url_key"], ()):
                if new != row["title"]:
                    yield {"old": row["title"], "new": new}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        """The title and the day of the change in the database, and the title in the shop."""
        key = world.value("SELECT url_key FROM shop_pages WHERE title = ?", params["old"])
        renamed = Updated("shop_pages", {"url_key": key}, {"title": params["new"]})
        shown = PageHolds(f"{SHOP}/page/{key}", "document.querySelector('h1').innerText", exact=params["new"])
        return [changed(renamed, free=("shop_pages.updated",)), shown]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Content", "Pages")
        yield page.click("link", params["old"], after="Filters")
        yield page.type("Page Title", params["new"])
        yield page.click("button", "Save")
        yield page.stop()


class OpenPage(AdminTemplate):
    """Open a content page for editing."""

    name, kind, difficulty = "cms-open-page", "navigation", "easy"
    intents = (
        'Open the content page with the URL key "{key}" to edit it.',
        'Go to where I can edit the page whose URL key is "{key}".',
        'Show me the form of the shop\'s page that has the URL key "{key}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return [{"key": row["url_key"]} for row in world.rows("SELECT url_key FROM shop_pages ORDER BY id")]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [EndsOn(f"{ADMIN}/pages/{world.value('SELECT id FROM shop_pages WHERE url_key = ?', params['key'])}")]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Content", "Pages")
        title = next(row["Title"] for row in page.table() if row["URL Key"] == params["key"])
        yield page.click_in(params["key"], "link", title)
        yield page.stop()


class SwitchPage(AdminTemplate):
    """Enable or disable a content page."""

    name, kind, difficulty = "cms-switch-page", "change", "medium"
    intents = (
        '{switch} the content page "{page}".',
        '{switch} the page "{page}" of the shop, and change nothing else of it.',
        'In the list of pages, there is one called "{page}". {switch} it.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        for row in world.rows("SELECT title, enabled FROM shop_pages ORDER BY id"):
            yield {"page": row["title"], "switch": "Disable" if row["enabled"] else "Enable"}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"enabled": int(params["switch"] == "Enable")}
        return [changed(Updated("shop_pages", {"title": params["page"]}, values), free=("shop_pages.updated",))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Content", "Pages")
        yield page.click("link", params["page"], after="Filters")
        yield page.click("checkbox", "Enable Page")
        yield page.click("button", "Save")
        yield page.stop()


class NewPage(AdminTemplate):
    """Create a content page."""

    name, kind, difficulty = "cms-new-page", "change", "medium"
    intents = (
        'Create an enabled content page with the title "{title}", the URL key "{key}" and the content "{content}"',
        'Add a page to the shop. Title: "{title}". URL key: "{key}". Content: "{content}" It is to be enabled.',
        'Publish a new page "{title}" under the URL key "{key}" that says: "{content}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Titles and URL keys that are not taken."""
        taken = {row["url_key"] for row in world.rows("SELECT url_key FROM shop_pages")}
        for title in _NEW_TITLES:
            key = title.lower().replace(" ", "-")
            if key in taken:
                continue
            for content in rng.sample(_NEW_TEXTS, 2):
                yield {"title": title, "key": key, "content": content}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        values = {"title": params["title"], "url_key": params["key"], "content": params["content"], "enabled": 1}
        page = PageHolds(f"{SHOP}/page/{params['key']}", "document.body.innerText", [params["content"]])
        return [changed(Added("shop_pages", values)), page]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Content", "Pages")
        yield page.click("link", "Add New Page")
        fields = {"Page Title": params["title"], "URL Key": params["key"], "Content": params["content"]}
        yield from fill_in(page, fields)
        yield page.click("button", "Save")
        yield page.stop()


class RenameCategory(AdminTemplate):
    """Rename a category."""

    name, kind, difficulty = "cms-rename-category", "change", "medium"
    intents = (
        'Rename the category "{category}" in the department "{department}" to "{new}".',
        'In "{department}", the category "{category}" is to be called "{new}". Change its name.',
        'Give the category "{category}" (department "{department}") the new name "{new}".',
    )
    _FORMS = ("All {}", "{} & More", "{} for Everybody", "Our {}", "Fine {}")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        query = """SELECT k.name AS category, above.name AS department FROM shop_categories k
            JOIN shop_categories above ON above.id = k.parent ORDER BY k.id"""
        for row in world.rows(query):
            yield {**dict(row), "new": rng.choice(self._FORMS).format(row["category"])}

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        query = """SELECT k.id FROM shop_categories k JOIN shop_categories above ON above.id = k.parent
            WHERE k.name = ? AND above.name = ?"""
        id = world.value(query, params["category"], params["department"])
        return [changed(Updated("shop_categories", {"id": id}, {"name": params["new"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Catalog", "Categories")
        yield page.click("link", params["department"], after="Departments")
        yield page.click("link", params["category"], after="Category")
        yield page.type("Category Name", params["new"])
        yield page.click("button", "Save")
        yield page.stop()


class ChangeSetting(AdminTemplate):
    """Change one of the store's settings."""

    name, kind, difficulty = "cms-change-setting", "change", "medium"
    intents = (
        'In the store\'s settings, change "{label}" to "{value}".',
        'Set "{label}" in the settings of the store to "{value}".',
        'Update the configuration of the store: "{label}" must be "{value}".',
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

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Values that differ from the current ones."""
        for name, label, values in self._SETTINGS:
            old = world.value("SELECT value FROM shop_settings WHERE name = ?", name)
            yield from ({"label": label, "value": value} for value in values if value != old)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        name = next(name for name, label, _ in self._SETTINGS if label == params["label"])
        return [changed(Updated("shop_settings", {"name": name}, {"value": params["value"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from open_from_menu(page, "Stores", "Settings")
        yield page.type(params["label"], params["value"])
        yield page.click("button", "Save Config")
        yield page.stop()


TEMPLATES = (
    RetitlePage(),
    OpenPage(),
    SwitchPage(),
    NewPage(),
    RenameCategory(),
    ChangeSetting(),
)

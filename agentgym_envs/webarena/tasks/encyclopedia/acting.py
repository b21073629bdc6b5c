"""Tasks from the encyclopedia to the shop, the forum and code hosting."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added
from agentgym_envs.webarena.sites.encyclopedia.library import library
from agentgym_envs.webarena.sites.encyclopedia.lore import Maker, lore
from agentgym_envs.webarena.sites.encyclopedia.real import real_articles
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says
from agentgym_envs.webarena.tasks.code import queries as code_queries
from agentgym_envs.webarena.tasks.code import steps as code_steps
from agentgym_envs.webarena.tasks.encyclopedia.steps import open_article
from agentgym_envs.webarena.tasks.forum import queries as forum_queries
from agentgym_envs.webarena.tasks.forum import steps as forum_steps
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import queries as shop_queries
from agentgym_envs.webarena.tasks.shopping import steps as shop_steps
from agentgym_envs.webarena.tasks.steps import answer
from agentgym_envs.webarena.tasks.template import Params, Template

_FACTS = {
    "capital": "Capital",
    "currency": "Currency",
    "highest point": "Highest point",
    "international calling code": "Calling code",
    "Internet domain": "Internet domain",
}
"""Facts about countries in the words of intents, with their labels in articles."""
_COUNTRIES = (
    "Norway", "Finland", "Iceland", "Portugal", "Peru", "Ecuador", "Uruguay", "Kenya", "Ghana", "Namibia", "Mongolia",
    "Nepal", "Vietnam", "Jordan", "Bulgaria", "Croatia", "Slovenia", "Paraguay", "Costa Rica", "New Zealand", "Fiji",
)  # fmt: skip
_ISSUE_TITLES = ("Add this element to the test data", "Check the registry number", "Missing element in the table")


def _maker(world: World, founder: str) -> Maker:
    return next(one for one in lore(world).makers if one.founder.name == founder)


def _cheapest(world: World, brand: str) -> list[str]:
    """Return the names of the products of a brand, the cheapest first."""
    query = (
        "SELECT p.name FROM shop_products p JOIN shop_categories c ON c.id = p.category AND c.enabled "
        f"WHERE p.enabled AND p.brand = ? ORDER BY {shop_queries.SOLD}, p.id"
    )
    return [row["name"] for row in world.rows(query, brand)]


def _founders(world: World) -> list[Params]:
    """Return founders of brands that a search finds exactly, with a single cheapest product that can be added."""
    addable = {row["product"] for row in world.rows(shop_queries.ADDABLE_PRODUCTS)}
    found: list[Params] = []
    for maker in lore(world).makers:
        names = _cheapest(world, maker.brand)
        prices = [
            world.value(f"SELECT {shop_queries.SOLD} FROM shop_products p WHERE name = ?", name) for name in names[:2]
        ]
        others = world.value(
            "SELECT COUNT(*) FROM shop_products WHERE brand <> ? AND name LIKE ?", maker.brand, f"%{maker.brand}%"
        )
        if len(prices) > 1 and prices[0] < prices[1] and names[0] in addable and not others:
            found.append({"person": maker.founder.name})
    return found


def add_cheapest(page: PageReader, person: str, order: str = shop_steps.PRICE_UP) -> Steps[None]:
    """Add the first product of a founder's brand to the cart, in an order of the shop's list."""
    yield from open_article(page, person)
    brand = _founded(page)
    yield page.goto(f"{ORIGINS['shop']}/")
    yield from shop_steps.search(page, brand)
    yield page.choose("Sort By", order)
    yield page.click("link", shop_steps.listed_products(page)[0].name)
    yield page.click("button", "Add to Cart")


def _founded(page: PageReader) -> str:
    """Return the company in the first paragraph of a founder's article."""
    texts = page.texts()
    index = next(index for index, text in enumerate(texts) if text.endswith("founded"))
    return texts[index + 1]


founder_cheapest = Template(
    "shopping",
    ("encyclopedia", "shop"),
    "encyclopedia-founder-cheapest",
    "change",
    "medium",
    since=2,
    intents=(
        "{person} founded a company whose goods the shop sells. Put the cheapest product of that brand into my cart.",
        "I want the cheapest thing that the shop has of the brand founded by {person}. Add it to my shopping cart.",
        "Find out which company {person} founded, and add the shop's cheapest product of that brand to the cart.",
    ),
    instances=_founders,
    expected=lambda world, person: shop_queries.in_cart(world, _cheapest(world, _maker(world, person).brand)[0]),
    solution=add_cheapest,
    mistake=lambda page, person: add_cheapest(page, person, shop_steps.PRICE_DOWN),
)


def _company_towns(world: World) -> list[Params]:
    """Return the towns with several companies."""
    towns = [one.town for one in lore(world).makers]
    return [{"town": town} for town in dict.fromkeys(towns) if towns.count(town) > 1]


def _oldest_counted(world: World, town: str) -> Says:
    oldest = min((one for one in lore(world).makers if one.town == town), key=lambda one: one.year)
    return says(len(_cheapest(world, oldest.brand)))


def count_goods(page: PageReader, town: str) -> Steps[int]:
    """Count the shop's products of the oldest company of a town."""
    yield from open_article(page, town)
    lines = page.texts(after="Companies")
    years = {lines[index - 1]: int(text[6:10]) for index, text in enumerate(lines) if text.startswith("since ")}
    yield page.goto(f"{ORIGINS['shop']}/")
    yield from shop_steps.search(page, min(years, key=lambda brand: years[brand]))
    return shop_steps.item_count(page)


oldest_company = Template(
    "shopping",
    ("encyclopedia", "shop"),
    "encyclopedia-oldest-company",
    "information",
    "easy",
    since=2,
    intents=(
        "Which company of {town} is the oldest, according to the encyclopedia? Tell me how many products of that brand "
        "the shop has, as a number alone.",
        "How many products does the shop have of the oldest company in {town}? Give just the number.",
        "Look up the companies of {town}. Of the brand that was founded first, how many products are in the shop? "
        "Answer with one number.",
    ),
    instances=_company_towns,
    expected=_oldest_counted,
    solution=count_goods,
    mistake=[answer("999")],
)


def _country_facts(world: World, rng: Random) -> Iterator[Params]:
    """Yield facts about countries and posts to write them under."""
    facts = {one.title: dict(one.facts) for one in real_articles()}
    titles = forum_queries.column(
        world, "SELECT title FROM posts WHERE NOT locked AND author > 1 GROUP BY title HAVING COUNT(*) = 1"
    )
    for country in _COUNTRIES:
        fact = rng.choice([name for name, label in _FACTS.items() if label in facts[country]])
        yield {"country": country, "fact": fact, "title": rng.choice(titles)}


def _fact_written(world: World, country: str, fact: str, title: str) -> Added:
    article = library(world).articles[country]
    text = dict(article.facts)[_FACTS[fact]]
    post = forum_queries.post(world, title)["id"]
    return Added("forum_comments", {"post": post, "parent": None, "author": 1, "body": text})


def write_fact(page: PageReader, country: str, fact: str, title: str) -> Steps[None]:
    """Write a fact about a country below a post of the forum."""
    yield from open_article(page, country)
    text = page.value(_FACTS.get(fact, fact))
    yield page.goto(f"{ORIGINS['forum']}/")
    yield from forum_steps.open_post(page, title)
    yield from forum_steps.add_comment(page, text)


fact_in_comment = Template(
    "code-and-forum",
    ("encyclopedia", "forum"),
    "encyclopedia-fact-in-comment",
    "change",
    "medium",
    since=2,
    intents=(
        'Comment on the forum post "{title}" with the {fact} of {country} as the encyclopedia\'s table of facts writes '
        "it, and nothing else.",
        'Below "{title}" in the forum, somebody wants to know the {fact} of {country}. Write only that, as it is in '
        "the table of the country's article in the encyclopedia.",
        "Look up the {fact} of {country} in the encyclopedia. Copy it from the table of facts into a comment on the "
        'post "{title}", without any other word.',
    ),
    instances=_country_facts,
    expected=_fact_written,
    free=("forum_notifications",),
    solution=write_fact,
    mistake=lambda page, country, title: write_fact(page, country, "Area", title),
)


def _elements(world: World) -> list[Params]:
    return [{"element": one.title.lower()} for one in real_articles() if one.categories == ("Chemical elements",)]


def _element_issue(world: World, element: str, project: str, title: str) -> Added:
    article = library(world).find(element)
    text = dict(article.facts if article else ())["CAS number"]
    values = {"project": code_queries.project(world, project)["id"], "title": title, "body": text, "author": 1}
    return Added("code_issues", {**values, "assignee": None, "milestone": None, "confidential": 0, "state": "open"})


def open_element_issue(page: PageReader, element: str, project: str, title: str) -> Steps[None]:
    """Open an issue with the CAS number of an element."""
    yield from open_article(page, element)
    number = page.value("CAS number")
    yield page.goto(f"{ORIGINS['code']}/")
    yield from code_steps.open_project(page, project)
    yield from code_steps.open_section(page, "Issues")
    yield page.click("link", "New issue")
    yield page.type("Title", title)
    yield page.type("Description", number)
    yield page.click("button", "Create issue")


element_issue = Template(
    "code-and-forum",
    ("encyclopedia", "code"),
    "encyclopedia-element-issue",
    "change",
    "hard",
    since=2,
    held_out=True,
    intents=(
        'Open an issue titled "{title}" in {project}. Its description is only the CAS number of the element {element}, '
        "from the encyclopedia.",
        'The project {project} needs an issue called "{title}". Look up the CAS number of {element} in the '
        "encyclopedia and write just that into the description.",
        'File the issue "{title}" in {project}, with nothing but the CAS number of {element} as the description.',
    ),
    instances=choose(
        _elements,
        sample=30,
        project=lambda world: code_queries.column(
            world, f"SELECT path FROM projects WHERE level >= {code_queries.MAINTAINER} AND NOT archived ORDER BY id"
        ),
        title=_ISSUE_TITLES,
    ),
    expected=_element_issue,
    solution=open_element_issue,
)

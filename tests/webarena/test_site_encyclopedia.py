"""The encyclopedia: its articles, links and search, and that it stores nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from agentgym_envs.webarena.sites.encyclopedia.articles import Article
from agentgym_envs.webarena.sites.encyclopedia.library import Library, library
from agentgym_envs.webarena.sites.encyclopedia.linking import ArticleLinker, ArticleNames
from agentgym_envs.webarena.sites.encyclopedia.lore import LANDMARKS, lore
from agentgym_envs.webarena.sites.encyclopedia.real import real_articles
from agentgym_envs.webarena.sites.encyclopedia.searching import search, suggest
from agentgym_envs.webarena.sites.world import world
from tests.webarena.embedded import Visitor, printed_by_two_processes, visit

SEED = 1


@pytest.fixture
def site() -> Iterator[Visitor]:
    yield from visit(Visitor("encyclopedia"))


@pytest.fixture(scope="module")
def books() -> Library:
    return library(world(SEED))


def test_the_world_has_no_table_of_the_encyclopedia() -> None:
    """So the frozen worlds, which the task table names, stay as they are."""
    assert world(1).digest == "70099bda3824b48402eda47e3d951081069e1ccd23df63fd58144636117cd2fd"


@pytest.mark.slow
def test_every_process_writes_the_same_articles(books: Library) -> None:
    code = f"""
import hashlib
from agentgym_envs.webarena.sites.encyclopedia.library import library
from agentgym_envs.webarena.sites.world import world
print(hashlib.sha256(repr(list(library(world({SEED})).articles.values())).encode()).hexdigest())
"""
    assert len(printed_by_two_processes(code)) == 64


@pytest.mark.parametrize("seed", [1, 21])
def test_titles_are_unique_and_facts_agree_with_the_other_sites(seed: int) -> None:
    data = world(seed)
    books, known = library(data), lore(data)
    assert len(books.articles) == len(real_articles()) + len(books.invented)
    for town in data.rows("SELECT * FROM map_towns"):
        assert dict(books.articles[town["name"]].facts)["Population"] == f"{town['population']:,}"
    places = {row["name"]: row["category"] for row in data.rows("SELECT name, category FROM map_places")}
    assert all(places[one.name] == one.category and one.category in LANDMARKS for one in known.landmarks)
    brands = {row["brand"] for row in data.rows("SELECT brand FROM shop_products")}
    assert {one.brand for one in known.makers} == brands
    customers = {f"{r['first']} {r['last']}" for r in data.rows("SELECT first, last FROM shop_customers")}
    assert not customers & {person.name for person in known.people}


def test_people_live_before_they_die_and_build_meanwhile() -> None:
    for person in lore(world(SEED)).people:
        assert 46 <= person.died.year - person.born.year <= 88
        assert all(person.born.year < year < person.died.year for _, year in person.works)
    assert all(one.architect.born.year < one.year < one.architect.died.year for one in lore(world(SEED)).landmarks)
    museums = [one.architect.name for one in lore(world(SEED)).landmarks if one.category == "museum"]
    assert len(set(museums)) == len(museums), "an architect has at most one museum"


def test_articles_name_the_facts_and_link_other_articles(site: Visitor) -> None:
    person = lore(world(SEED)).people[0]
    page = site.get(f"/article/{person.name.replace(' ', '_')}")
    assert f'{person.born}, <a href="/article/{person.birthplace}">' in page
    assert f"died there on {person.died}, aged" in page
    assert 'href="/article/Peru"' in site.get("/article/Chile")


def test_long_articles_have_a_table_of_sections(site: Visitor) -> None:
    page = site.get("/article/Chile")
    anchors = re.findall(r'href="#(\w+)"', page)
    assert anchors[:2] == ["History", "Geography"] and all(f'id="{one}"' in page for one in anchors)
    assert len(re.sub(r"<[^>]*>", "", page)) > 4_000


def test_other_spellings_and_names_lead_to_the_article(site: Visitor) -> None:
    for path in ("/article/chile", "/search?q=chile", "/search?q=++CHILE", "/search?q=Republic+of+Chile"):
        assert site.http.get(path).headers["location"] == "/article/Chile", path
    site.get("/article/No_such_thing", 404)
    site.get("/category/No_such_thing", 404)


def test_search_ranks_titles_first_and_finds_words_in_texts(books: Library) -> None:
    assert search(books.indexes, "Cobalt").articles[0].title == "Cobalt"
    found = [article.title for article in search(books.indexes, "radioactive cobalt cancer therapy").articles]
    assert found[0] == "Cobalt"
    person = lore(world(SEED)).people[0]
    found = [one.title for one in search(books.indexes, f"born {person.birthplace} architect").articles]
    assert person.name in found
    assert search(books.indexes, "qqqq") == ([], False) == search(books.indexes, "")
    assert not search(books.indexes, "cobalt qqqq").complete


def test_search_suggests_titles_for_misspelt_words(site: Visitor, books: Library) -> None:
    assert "Uruguay" in suggest(books.indexes, "Urugay")
    page = site.get("/search?q=Urugay")
    assert "Did you mean" in page and 'href="/article/Uruguay"' in page
    assert "No article contains" in site.get("/search?q=qqqqqq")


def test_search_results_have_pages(site: Visitor) -> None:
    page = site.get("/search?q=museum+architect")
    (count,) = re.findall(r"Results 1–10 of (\d+)", page)
    last = -(-int(count) // 10)
    assert f"of {count}" in site.get(f"/search?q=museum+architect&page={last}")
    assert "There is an article with this title" in site.get("/search?q=chile&full=1")


def test_lists_show_every_article_once(site: Visitor, books: Library) -> None:
    shown = list[str]()
    for page in range(1, -(-len(books.articles) // 60) + 1):
        shown += re.findall(r'<li><a href="(/article/[^"]+)"', site.get(f"/contents?page={page}"))
    assert sorted(shown) == sorted(article.path for article in books.articles.values())
    assert "1 article" not in site.get("/category/Chemical_elements")
    assert "Articles 1–" in site.get("/contents?letter=Q")


def test_the_random_article_depends_only_on_the_page_of_the_link(site: Visitor) -> None:
    there = {"referer": "http://encyclopedia.test/about"}
    first = site.http.get("/random", headers=there).headers["location"]
    assert first == site.http.get("/random", headers=there).headers["location"]
    assert first != site.http.get("/random").headers["location"]


def test_links_take_the_longest_name_once_and_never_a_surname() -> None:
    def article(title: str, linked: str | None = "") -> Article:
        return Article(title, "", (), (), (), (), linked=linked)

    names = ArticleNames([article("Guinea"), article("Guinea-Bissau"), article("Lead", None), article("Salvador")])
    html = str(ArticleLinker([names], "Own").html("Guinea-Bissau & Guinea, Guinean Lead, Guinea. Salvador ALLENDE <b>"))
    assert html == (
        '<a href="/article/Guinea-Bissau">Guinea-Bissau</a> &amp; <a href="/article/Guinea">Guinea</a>, '
        "Guinean Lead, Guinea. Salvador ALLENDE &lt;b&gt;"
    )
    assert "<a" not in str(ArticleLinker([names], "Guinea").html("Guinea"))


def test_visits_change_nothing(site: Visitor) -> None:
    for path in ("/", "/article/Chile", "/search?q=copper", "/random", "/categories", "/about"):
        site.http.get(path)
    assert site.changes() == []
    assert site.http.post("/article/Chile", data={"text": "x"}).status_code in (404, 405)

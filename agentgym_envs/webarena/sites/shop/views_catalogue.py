"""The start page, categories, search, and special offers."""

from __future__ import annotations

from typing import Any

from agentgym_envs.webarena.sites.framework.context import RequestContext
from agentgym_envs.webarena.sites.framework.responses import NotFound, Response
from agentgym_envs.webarena.sites.framework.site import Routes
from agentgym_envs.webarena.sites.shop.listing import listing
from agentgym_envs.webarena.sites.shop.searching import condition
from agentgym_envs.webarena.sites.shop.store import cards

routes = Routes()
_NEWEST, _POPULAR, _SUGGESTIONS = 4, 4, 6


@routes.get("/")
def home(context: RequestContext) -> Response:
    """Show bestsellers, new products and the number of offers."""
    sold = "SELECT product, SUM(quantity) AS sold FROM shop_order_lines GROUP BY product ORDER BY sold DESC, product"
    best = [row["product"] for row in context.rows(f"{sold} LIMIT {3 * _POPULAR}")]
    popular = cards(context, f"p.stock > 0 AND p.id IN ({', '.join(map(str, best))})")
    popular = sorted(popular, key=lambda product: best.index(product["id"]))[:_POPULAR]
    lately = f"GROUP BY created ORDER BY created DESC LIMIT {2 * _NEWEST}"
    one_each = f"SELECT MIN(id) FROM shop_products WHERE enabled = 1 {lately}"
    newest = cards(context, f"p.id IN ({one_each}) ORDER BY p.created DESC, p.id LIMIT {_NEWEST}")
    offers = context.value("SELECT COUNT(*) FROM shop_products WHERE special_price IS NOT NULL AND enabled = 1")
    return context.page("home.html", popular=popular, newest=newest, offers=offers)


@routes.get("/category/{slug}")
def category(context: RequestContext, slug: str) -> Response:
    """List the products of a department or a shelf."""
    row = context.one("SELECT * FROM shop_categories WHERE slug = ? AND enabled = 1", slug)
    above = context.row("SELECT * FROM shop_categories WHERE id = ?", row["parent"])
    below = context.rows(
        "SELECT c.*, (SELECT COUNT(*) FROM shop_products p WHERE p.category = c.id AND p.enabled = 1) AS products "
        "FROM shop_categories c WHERE c.parent = ? AND c.enabled = 1 ORDER BY c.position, c.id",
        row["id"],
    )
    shown = listing(context, "c.id = ? OR c.parent = ?", [row["id"], row["id"]], attributes=not below)
    return context.page("category.html", category=row, above=above, below=below, listing=shown)


@routes.get("/search")
def search(context: RequestContext) -> Response:
    """List the search results."""
    text = context.query.text("q", most=200)
    if not text:
        return context.page("search.html", text="", listing=None)
    where, arguments = condition(text)
    return context.page("search.html", text=text, listing=listing(context, where, list(arguments)))


@routes.get("/suggest")
def suggest(context: RequestContext) -> Response:
    """List products whose names have all words of a text, for the search box."""
    where, arguments = condition(context.query.text("q", most=200))
    found = context.rows(
        "SELECT p.slug, p.name FROM shop_products p JOIN shop_categories c ON c.id = p.category "
        f"WHERE {where} ORDER BY p.name, p.id LIMIT {_SUGGESTIONS}",
        *arguments,
    )
    return context.page("suggestions.html", suggestions=[(f"/product/{row['slug']}", row["name"]) for row in found])


@routes.get("/advanced-search")
def advanced(context: RequestContext) -> Response:
    """Show the form of the advanced search."""
    return context.page("advanced.html", error="")


@routes.get("/advanced-search/results")
def advanced_results(context: RequestContext) -> Response:
    """List the results of the advanced search."""
    conditions: list[str] = []
    arguments: list[Any] = []
    for name in ("name", "sku", "brand", "summary", "description"):
        if text := context.query.text(name, most=200):
            conditions.append(f"instr(lower(p.{name}), lower(?)) > 0")
            arguments.append(text)
    for name, sign in (("price_from", ">="), ("price_to", "<=")):
        if context.query.text(name):
            cents = context.query.money(name)
            if cents is None:
                return context.page("advanced.html", 422, error="Please enter prices as numbers, such as 25 or 19.99.")
            conditions.append(f"COALESCE(p.special_price, p.price) {sign} ?")
            arguments.append(cents)
    if not conditions:
        return context.page("advanced.html", 422, error="Please fill in at least one field.")
    return context.page("advanced_results.html", listing=listing(context, " AND ".join(conditions), arguments))


@routes.get("/sale")
def sale(context: RequestContext) -> Response:
    """List the products with a special price."""
    return context.page("sale.html", listing=listing(context, "p.special_price IS NOT NULL", []))


@routes.get("/new")
def new(context: RequestContext) -> Response:
    """List the newest products."""
    return context.page("new.html", listing=listing(context, "p.created >= '2026-01-01'", [], sort="newest"))


@routes.get("/page/{key}")
def page(context: RequestContext, key: str) -> Response:
    """Show a text page of the shop."""
    row = context.row("SELECT * FROM shop_pages WHERE url_key = ? AND enabled = 1", key)
    if row is None:
        raise NotFound
    return context.page("page.html", page=row, blocks=_blocks(row["content"]))


def _blocks(content: str) -> list[tuple[str, list[str]]]:
    """Split a page into blocks: ("heading", [text]), ("list", items) or ("text", [paragraph])."""
    blocks: list[tuple[str, list[str]]] = []
    for part in filter(None, (part.strip() for part in content.replace("\r", "").split("\n\n"))):
        lines = part.split("\n")
        if part.startswith("## "):
            blocks.append(("heading", [lines[0][3:]]))
            lines = lines[1:]
        items = [line[2:] for line in lines if line.startswith("- ")]
        text = "\n".join(line for line in lines if not line.startswith("- "))
        if text:
            blocks.append(("text", [text]))
        if items:
            blocks.append(("list", items))
    return blocks

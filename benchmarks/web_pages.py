"""A shop of any size for the benchmark of the browser, and an environment on it."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from agentgym_envs.task import Task, TaskTable
from agentgym_envs.webarena.base_env import WebEnv
from agentgym_envs.webarena.browser.execute import goto
from agentgym_envs.webarena.browser.hosts import HostRules
from agentgym_envs.webarena.browser.pool import BrowserOptions
from agentgym_envs.webarena.browser.session import BrowserSession, WarmUp
from agentgym_envs.webarena.browser.sites import local_sites
from agentgym_envs.webarena.evaluators.base import Verdict

HOST = "shop.test"
SIZES = {145: 7, 400: 27, 1700: 127}
"""The number of products for a page of about `elements` elements."""
CATEGORIES = 12
_STYLE = "<style>.grid{display:grid;grid-template-columns:repeat(4,1fr)}li{list-style:none}</style>"
_OPTIONS = "<option>Position</option><option>Price</option><option selected>Name</option>"
_IN_STOCK = "<label><input type=checkbox checked> In stock</label>"
_BUTTON = "<button>Add to cart</button>"


def page(products: int, about: str = "") -> str:
    """A catalogue page: a search, categories, a form, and products with links and buttons."""
    categories = "".join(f'<li><a href="/shop?n={products}&c={i}">Category {i}</a></li>' for i in range(CATEGORIES))
    search = "<form role=search><label for=q>Search</label><input id=q name=q><button>Go</button></form>"
    filters = f"<label for=sort>Sort by</label><select id=sort>{_OPTIONS}</select>{_IN_STOCK}"
    items = "".join(map(product, range(products)))
    return (
        f"<!doctype html><html lang=en><head><title>Shop {escape(about)}</title>{_STYLE}</head><body>"
        f"<header><a href=/shop>The shop</a>{search}<nav><ul>{categories}</ul></nav></header>"
        f"<main><h1>Catalogue</h1>{filters}<ul class=grid>{items}</ul></main>"
        f"<aside><h2>Compare</h2><p>Nothing yet.</p></aside><footer><small>The end</small></footer></body></html>"
    )


def product(number: int) -> str:
    """One product of a page: an image and a name that lead to it, and what a shop has beside."""
    name = f"Gadget model {number} with extras"
    return (
        f'<li><a href="/p/{number}"><img src="data:," alt="Photo {number}" width=80 height=80></a>'
        f'<strong><a href="/p/{number}">{name}</a></strong><div title=Rating>{number * 7 % 100}%</div>'
        f"<div><span>${number * 3 + 1}.99</span></div><form method=post action=/cart>{_BUTTON}</form>"
        f'<div><a href="#" role=button aria-label="Wish for it">w</a>'
        f'<a href="#" role=button aria-label="Compare it">c</a></div></li>'
    )


async def shop(scope: Any, receive: Any, send: Any) -> None:
    """Every address is a catalogue page; its query gives the size."""
    query = parse_qs(scope["query_string"].decode())
    body = page(int(query.get("n", ["24"])[0]), query.get("c", [""])[0]).encode()
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def address() -> str:
    """The address of the shop, "127.0.0.1:<port>"."""
    sites = local_sites()
    for host in (HOST, "127.0.0.1"):
        sites.mount(host, shop)
    return sites.address


def browser_options() -> BrowserOptions:
    """A browser that reaches the shop."""
    return BrowserOptions(hosts=HostRules.of(mapped={HOST: address()}), small_heap=True)


class ShopEnv(WebEnv):
    """Look round the shop; there is nothing to do there."""

    tasks = TaskTable("benchmark-shop", 1, [Task("benchmark-shop/0", "train", "look", "Look round")])

    def _browser_options(self) -> BrowserOptions:
        return browser_options()

    async def _open(self, session: BrowserSession, task: Task, rng: np.random.Generator) -> str:
        await goto(session, f"http://{HOST}/shop?n={SIZES[400]}")
        return task.goal

    def _warm_up(self, task: Task) -> WarmUp:
        return partial(goto, url=f"http://{HOST}/shop?n={SIZES[400]}")

    async def _judge(self, session: BrowserSession, task: Task, answer: str) -> Verdict:
        return Verdict(1.0)

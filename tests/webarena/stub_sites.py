"""Stubs of WebArena's sites with what a few tasks need: a shop, its administration, a forum and a code host.

They have the URLs, forms and selectors that the task files and WebArena's own login and scoring use.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from agentgym_envs.webarena.browser.sites import LocalSites
from agentgym_envs.webarena.official.accounts import STANDARD

TOKEN = "a-token"
SKU = "B00J8RZL7I"


def page(title: str, body: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(f"<!doctype html><html><title>{title}</title><body>{body}</body></html>", status)


@dataclass
class Site:
    """The common part of the sites: login by a cookie or a header."""

    name: str
    cookie: str
    login_path: str
    user_field: str
    password_field: str
    header: str = ""
    home_path: str = "/"
    sessions: set[str] = field(default_factory=set)
    logins: int = 0
    broken: int = 0
    """Status of the home page, if not 0."""
    public_url: str = ""
    """URL to which the home page redirects, if not empty."""

    def signed_in(self, request: Request) -> bool:
        given = request.headers.get(self.header) if self.header else None
        return request.cookies.get(self.cookie) in self.sessions or given == ":".join(STANDARD[self.name])

    def form(self, note: str = "") -> HTMLResponse:
        return page(
            "Login",
            f"<p>{note}</p><form action='/search'><input type='text' name='q'><button>Search</button></form>"
            f"<form method='post'><button type='button'>Show password</button>"
            f"<input type='text' name='{self.user_field}'><input type='password' name='{self.password_field}'>"
            "<button>Sign in</button></form>",
        )

    async def log_in(self, request: Request) -> Response:
        if request.method == "GET":
            return self.form()
        sent = await request.form()
        if (sent[self.user_field], sent[self.password_field]) != STANDARD[self.name]:
            return self.form("Wrong.")
        self.logins += 1
        session = f"{self.name}-{self.logins}"
        self.sessions.add(session)
        response = RedirectResponse(self.home_path, 302)
        response.set_cookie(self.cookie, session)
        return response

    async def log_out(self, request: Request) -> Response:
        self.sessions.discard(request.cookies.get(self.cookie, ""))
        return RedirectResponse("/", 302)

    def own(self, show: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """Wrap a page so that it requires login."""
        return lambda request: show(request) if self.signed_in(request) else RedirectResponse(self.login_path, 302)

    def home(self, request: Request) -> Response:
        raise NotImplementedError

    def routes(self) -> list[Route]:
        raise NotImplementedError

    def app(self) -> Starlette:
        common = [
            Route("/", self._home),
            Route(self.login_path, self.log_in, methods=["GET", "POST"]),
            Route("/logout", self.log_out),
        ]
        return Starlette(routes=[*common, *self.routes()])

    def _home(self, request: Request) -> Response:
        if self.public_url:
            return RedirectResponse(self.public_url, 302)
        return page("Broken", "Broken", self.broken) if self.broken else self.home(request)


class Shop(Site):
    def __init__(self) -> None:
        header = "x-m2-customer-auto-login"
        super().__init__(
            "shopping", "PHPSESSID", "/customer/account/login/", "login[username]", "login[password]", header
        )
        self.orders = [{"increment_id": "000000180", "items": "Candle", "status": "complete"}]
        self.reviews: list[dict[str, Any]] = []
        self.tea_away = False

    def home(self, request: Request) -> Response:
        who = "Welcome, Emma Lopez!" if self.signed_in(request) else "Please sign in"
        orders = "<a href='/sales/order/history/'>My Orders</a>"
        return page("One Stop Market", f"<p>{who}</p><a href='/energy-drink.html'>Energy Drink</a> {orders}")

    def routes(self) -> list[Route]:
        return [
            Route("/wishlist/", self.own(lambda _: page("My Wish List", "Empty"))),
            Route("/energy-drink.html", self._product),
            Route("/tea.html", self._tea),
            Route("/sales/order/history/", self.own(self._history)),
            Route("/sales/order/view/order_id/{number:int}/", self.own(self._order)),
            Route("/checkout/", self._buy, methods=["POST"]),
            Route("/review/", self._review, methods=["POST"]),
            Route("/rest/default/V1/integration/admin/token", self._token, methods=["POST"]),
            Route("/rest/V1/orders", self._rest(lambda request: {"items": self.orders[::-1][:1]})),
            Route(f"/rest/V1/products/{SKU}/reviews", self._rest(lambda request: self.reviews)),
        ]

    def _product(self, request: Request) -> Response:
        return page(
            "Energy Drink",
            "<h1>Energy Drink</h1><span class='price'>$12.50</span>"
            "<form method='post' action='/checkout/'><button>Buy now</button></form>"
            "<form method='post' action='/review/'><label>Nickname <input name='nickname'></label>"
            "<label>Stars <input name='stars'></label><button>Submit Review</button></form>",
        )

    def _tea(self, request: Request) -> Response:
        return RedirectResponse("http://tea.example.com/") if self.tea_away else page("Tea", "<h1>Tea</h1>")

    def _history(self, request: Request) -> Response:
        rows = [
            f"<li>{order['items']} <a href='/sales/order/view/order_id/{int(order['increment_id'])}/'>"
            f"View Order {int(order['increment_id'])}</a></li>"
            for order in self.orders
        ]
        return page("My Orders", f"<ul>{''.join(rows)}</ul>")

    def _order(self, request: Request) -> Response:
        order = next(o for o in self.orders if int(o["increment_id"]) == request.path_params["number"])
        return page(
            f"Order # {order['increment_id']}",
            f"<span class='order-status'>{order['status']}</span>"
            f"<div class='order-details-items ordered'>{order['items']}</div>",
        )

    async def _buy(self, request: Request) -> Response:
        if not self.signed_in(request):
            return RedirectResponse(self.login_path, 302)
        number = int(self.orders[-1]["increment_id"]) + 9
        self.orders.append({"increment_id": f"{number:09}", "items": "Energy Drink", "status": "pending"})
        return RedirectResponse("/sales/order/history/", 303)

    async def _review(self, request: Request) -> Response:
        sent = await request.form()
        rating = {"rating_name": "Rating", "percent": 20 * int(str(sent["stars"]))}
        self.reviews.append({"nickname": sent["nickname"], "ratings": [rating]})
        return RedirectResponse("/energy-drink.html", 303)

    async def _token(self, request: Request) -> Response:
        user, password = STANDARD["shopping_site_admin"]
        known = await request.json() == {"username": user, "password": password}
        return JSONResponse(TOKEN) if known else JSONResponse({"message": "no"}, 401)

    def _rest(self, data: Callable[[Request], Any]) -> Callable[[Request], Response]:
        def response(request: Request) -> Response:
            known = request.headers.get("authorization") == f"Bearer {TOKEN}"
            return JSONResponse(data(request)) if known else JSONResponse({"message": "no"}, 401)

        return response


class Forum(Site):
    def __init__(self) -> None:
        super().__init__("reddit", "PHPSESSID", "/login", "_username", "_password", "x-postmill-auto-login")
        self.posts: list[dict[str, str]] = []

    def home(self, request: Request) -> Response:
        return page("Postmill", "<a href='/f/books'>books</a> <a href='/submit/books'>Submit</a>")

    def routes(self) -> list[Route]:
        account = f"/user/{STANDARD['reddit'].user}/account"
        return [
            Route(account, self.own(lambda _: page("Account", "Delete account"))),
            Route("/f/{forum}", lambda request: page("Forum", "<p>Nothing but books</p>")),
            Route("/submit/books", self._submit, methods=["GET", "POST"]),
            Route("/f/{forum}/{number:int}/", self._post),
            Route("/f/{forum}/{number:int}/-/comment/{comment:int}", self._post),
            Route("/f/{forum}/{number:int}/{slug}", self._post),
        ]

    async def _submit(self, request: Request) -> Response:
        if not self.signed_in(request):
            return RedirectResponse(self.login_path, 302)
        if request.method == "GET":
            fields = "<label>Title <input name='title'></label> <label>Body <textarea name='body'></textarea></label>"
            return page("Submit", f"<form method='post'>{fields}<button>Create submission</button></form>")
        sent = await request.form()
        self.posts.append({"title": str(sent["title"]), "body": str(sent["body"])})
        return RedirectResponse(f"/f/books/{len(self.posts)}/{quote(str(sent['title']).lower())}", 303)

    def _post(self, request: Request) -> Response:
        post = self.posts[request.path_params["number"] - 1]
        title, body = html.escape(post["title"]), html.escape(post["body"])
        comment = f"<a href='/f/books/{request.path_params['number']}/-/comment/7'>a comment</a>"
        return page(
            title, f"<h1 class='submission__title'>{title}</h1><div class='submission__body'>{body}</div>{comment}"
        )


class CodeHost(Site):
    def __init__(self) -> None:
        super().__init__("gitlab", "_gitlab_session", "/users/sign_in", "user[login]", "user[password]")
        self.members = {"byteblaze": "Owner"}

    def home(self, request: Request) -> Response:
        return page("Projects", "<a href='/byteblaze/dotfiles'>dotfiles</a>")

    def routes(self) -> list[Route]:
        return [
            Route("/-/profile", self.own(lambda _: page("Profile", "Byte Blaze"))),
            Route("/byteblaze/dotfiles", self.own(lambda _: page("dotfiles", "<p>3 stars</p>"))),
            Route("/byteblaze/dotfiles/-/project_members", self._members, methods=["GET", "POST"]),
        ]

    async def _members(self, request: Request) -> Response:
        if not self.signed_in(request):
            return RedirectResponse(self.login_path, 302)
        if request.method == "POST":
            sent = await request.form()
            self.members[str(sent["user"])] = str(sent["role"])
        rows = "".join(
            f"<tr><td data-label='Account'><span class='gl-avatar-labeled-sublabel'>@{html.escape(name)}</span></td>"
            f"<td class='col-max-role'><div><span>{html.escape(role)}</span></div></td></tr>"
            for name, role in self.members.items()
        )
        fields = "<label>User <input name='user'></label> <label>Role <input name='role'></label>"
        return page("Members", f"<table>{rows}</table><form method='post'>{fields}<button>Invite</button></form>")


class Admin(Site):
    """The shop's administration. Without login, every page shows the login form."""

    def __init__(self) -> None:
        super().__init__("shopping_admin", "admin", "/admin/", "login[username]", "login[password]", "", "/admin")

    def routes(self) -> list[Route]:
        return [
            Route("/admin", self._shown, methods=["GET", "POST"]),
            Route("/admin/dashboard", self._shown, methods=["GET", "POST"]),
        ]

    async def _shown(self, request: Request) -> Response:
        if not self.signed_in(request):
            return await self.log_in(request)
        toggle = "document.body.innerHTML += '<input name=name value=Luma>'"
        return page("Dashboard", f"<p>1 order</p><button class='toggle' onclick=\"{toggle}\">Settings</button>")


class Stubs:
    """All stub sites, on one host with a port each, as WebArena is usually deployed.

    `urls` are those of the shop, the forum and the code host; that of the administration is separate.
    """

    def __init__(self) -> None:
        self._servers = {name: LocalSites() for name in ("shopping", "reddit", "gitlab", "shopping_admin")}
        self.urls = {name: f"http://{server.address}" for name, server in self._servers.items()}
        self.admin_url = f"{self.urls.pop('shopping_admin')}/admin"
        self.reset()

    def reset(self) -> None:
        """Reset the sites to their initial state."""
        self.shop, self.forum, self.code, self.admin = Shop(), Forum(), CodeHost(), Admin()
        sites = (self.shop, self.forum, self.code, self.admin)
        for server, site in zip(self._servers.values(), sites, strict=True):
            server.mount("127.0.0.1", site.app())

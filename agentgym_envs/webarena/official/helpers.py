"""Helper functions that WebArena's checks call by name, such as `func:shopping_get_latest_order_url()`.

Source: WebArena's evaluation_harness/helper_functions.py (commit f62e0b9), for their results. The spelling "memeber" is
that of the task files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from agentgym_envs.core import describe
from agentgym_envs.errors import EnvError, UsageError
from agentgym_envs.webarena.evaluators.base import FinishedEpisode
from agentgym_envs.webarena.evaluators.dom import Helper
from agentgym_envs.webarena.official.accounts import account
from agentgym_envs.webarena.official.sites import variables

TIMEOUT = 30.0
"""Seconds for one request to a site's REST interface."""
_TOKEN_PATH = "rest/default/V1/integration/admin/token"
_ROLE = """(() => {
    const names = [...document.querySelectorAll("td[data-label='Account'] span.gl-avatar-labeled-sublabel")];
    const found = names.find(name => name.innerText.trim() === %s);
    const role = found && found.closest("tr").querySelector("td.col-max-role span");
    return role ? role.innerText : "";
})()"""


async def latest_order_url(episode: FinishedEpisode) -> str:
    """The URL of the shop's newest order. Raises EnvError if the shop has no order or does not answer."""
    newest = {
        "searchCriteria[sortOrders][0][field]": "created_at",
        "searchCriteria[sortOrders][0][direction]": "DESC",
        "searchCriteria[pageSize]": "1",
    }
    answer = await _ask_shop(episode, "rest/V1/orders", newest)
    try:
        number = int(answer["items"][0]["increment_id"])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise EnvError(f"the shop returned no newest order: {describe(error)}") from error
    return f"{_shop(episode)}/sales/order/view/order_id/{number}/"


async def latest_review_author(episode: FinishedEpisode, sku: str) -> str:
    """The author of a product's newest review; "" without a review."""
    review = await _latest_review(episode, sku)
    return str(review.get("nickname", ""))


async def latest_review_rating(episode: FinishedEpisode, sku: str) -> str:
    """The rating in a product's newest review, in per cent; "" without a rating."""
    review = await _latest_review(episode, sku)
    ratings = [rating for rating in review.get("ratings", ()) if rating.get("rating_name") == "Rating"]
    return str(ratings[0]["percent"]) if ratings else ""


async def reddit_post_url(episode: FinishedEpisode, url: str) -> str:
    """The URL of the post to which a forum URL belongs, such as that of a comment; other URLs are unchanged."""
    parts = urlsplit(url)
    path = parts.path.split("/")
    return url if len(path) < 4 or path[1] != "f" else f"{parts.scheme}://{parts.netloc}/f/{path[2]}/{path[3]}/"


async def gitlab_member_role(episode: FinishedEpisode, page: str | None, name: str) -> str:
    """The role of a member in the table on a GitLab page; "" if the table has no such member."""
    return await episode.read(page, _ROLE % json.dumps(f"@{name}"))


HELPERS: Mapping[str, Helper] = {
    "shopping_get_latest_order_url": latest_order_url,
    "shopping_get_sku_latest_review_author": latest_review_author,
    "shopping_get_sku_latest_review_rating": latest_review_rating,
    "reddit_get_post_url": reddit_post_url,
    "gitlab_get_project_memeber_role": gitlab_member_role,
}


async def _latest_review(episode: FinishedEpisode, sku: str) -> Mapping[str, Any]:
    reviews = await _ask_shop(episode, f"rest/V1/products/{quote(sku, safe='')}/reviews")
    newest: Mapping[str, Any] = reviews[-1] if isinstance(reviews, list) and reviews else {}
    return newest


async def _ask_shop(episode: FinishedEpisode, path: str, params: Mapping[str, str] | None = None) -> Any:
    """Query the shop's REST interface as its administrator, and return the JSON. Raises EnvError."""
    import httpx

    shop, (user, password) = _shop(episode), account("shopping_site_admin")
    try:
        async with httpx.AsyncClient(base_url=f"{shop}/", timeout=TIMEOUT, trust_env=False) as client:
            credentials = {"username": user, "password": password}
            token = (await client.post(_TOKEN_PATH, json=credentials)).raise_for_status().json()
            answer = await client.get(path, params=params, headers={"Authorization": f"Bearer {token}"})
            return answer.raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        raise EnvError(f"the shop's REST interface failed: {describe(error)}") from error


def _shop(episode: FinishedEpisode) -> str:
    if "shopping" not in episode.urls:
        raise UsageError(f"this task is scored with the shop's help; set {variables('shopping')[0]}")
    return episode.urls["shopping"]

"""Tasks that start on two or three tabs: compare, change or combine what is open in them.

The intents count tabs from the left, as the line of tabs in an observation does.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

from agentgym_envs.webarena.evaluators.state import Added, Updated
from agentgym_envs.webarena.sites.encyclopedia.articles import article_path
from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks import multi_site
from agentgym_envs.webarena.tasks.answers import says
from agentgym_envs.webarena.tasks.cms import products
from agentgym_envs.webarena.tasks.cms import queries as cms_queries
from agentgym_envs.webarena.tasks.code import managing, parsing
from agentgym_envs.webarena.tasks.code import queries as code_queries
from agentgym_envs.webarena.tasks.code import steps as code_steps
from agentgym_envs.webarena.tasks.encyclopedia import mapping
from agentgym_envs.webarena.tasks.encyclopedia.steps import linked
from agentgym_envs.webarena.tasks.forum import counting
from agentgym_envs.webarena.tasks.forum import queries as forum_queries
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.maps import lookups, navigation, saved_lists
from agentgym_envs.webarena.tasks.maps import queries as map_queries
from agentgym_envs.webarena.tasks.maps import steps as map_steps
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import account, combined, reviews
from agentgym_envs.webarena.tasks.shopping import queries as shop_queries
from agentgym_envs.webarena.tasks.shopping import steps as shop_steps
from agentgym_envs.webarena.tasks.steps import answer, click, do, focus_tab, given
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params, Template, starting_on

_T = TypeVar("_T")
_SOLD = f"SELECT p.name, {shop_queries.SOLD} FROM shop_products p WHERE p.enabled ORDER BY p.category, p.id"
_OPEN_ORDERS = "SELECT number, id FROM shop_orders WHERE status IN ('pending', 'processing') ORDER BY id"
_WRITABLE = f"i.state = 'open' AND i.level >= {code_queries.REPORTER} AND NOT i.archived"


def _read_tabs(page: PageReader, read: Callable[[PageReader], _T]) -> Steps[list[_T]]:
    """Read something in each of two tabs."""
    first = read(page)
    yield page.focus_tab(1)
    return [first, read(page)]


def _name(page: PageReader) -> str:
    """Return the name of the product, place or article on the page."""
    return page.all("heading", after="Breadcrumbs" if page.has("navigation", "Breadcrumbs") else None)[0].name


def _pairs(world: World, query: str, *arguments: Any) -> list[Params]:
    """Return pairs of neighbours in a query of names whose second column differs."""
    return [{"one": a[0], "other": b[0]} for a, b in pairwise(world.rows(query, *arguments)) if a[1] != b[1]]


def _product_pages(world: World, one: str, other: str) -> list[str]:
    return [shop_queries.product_url(world, name) for name in (one, other)]


cheaper_product = Template(
    "shopping",
    ("shop",),
    "shopping-cheaper-tabs",
    "information",
    "easy",
    since=2,
    start=_product_pages,
    intents=(
        "Two products are open in my tabs. Which of them costs less at the moment? Give its name.",
        "Compare the current prices of the products in the two tabs, and name the cheaper one.",
        "I want to spend as little as possible on one of the two products that I have open. Which one is it?",
    ),
    instances=lambda world: _pairs(world, _SOLD),
    expected=lambda world, one, other: says(*_by_price(world, one, other)[:1], others=_by_price(world, one, other)[1:]),
    solution=[
        do(_read_tabs, lambda page: (shop_steps.cents(shop_steps.price(page)), _name(page))),
        answer(lambda found: min(found)[1]),
    ],
    mistake=answer(lambda found: max(found)[1]),
)


def _by_price(world: World, *names: str) -> list[str]:
    query = f"SELECT p.name FROM shop_products p WHERE p.name IN (?, ?) ORDER BY {shop_queries.SOLD}"
    return [row[0] for row in world.rows(query, *names)]


more_reviews = starting_on(
    _product_pages,
    reviews.more_reviews,
    "Which of the two products open in my tabs has more customer reviews? Give its name.",
    "Of the products in the two tabs, which one has been reviewed by more people? Name it.",
    "Compare how many reviews the products in my tabs have; answer with the name of the one with more.",
    name="shopping-more-reviews-of-two-tabs",
    solution=[
        do(_read_tabs, lambda page: (shop_steps.review_count(page), _name(page))),
        answer(lambda found: max(found)[1]),
    ],
    difficulty="easy",
)
compare_products = starting_on(
    _product_pages,
    account.compare_products,
    "Add both products that are open in my tabs to my list of products to compare.",
    "I want to see the products of the two tabs beside each other. Put both into my comparison list.",
    "Put what is open in the first and in the second tab on the compare list.",
    name="shopping-compare-tabs",
    solution=[click("button", "Add to Compare"), focus_tab(1), click("button", "Add to Compare")],
    mistake=[click("button", "Add to Compare")],
    difficulty="easy",
)
add_three = starting_on(
    lambda world, one, two, three: [shop_queries.product_url(world, name) for name in (one, two, three)],
    combined.add_three,
    "Add the three products that are open in my tabs to my cart, one of each.",
    "My shopping list is open in three tabs. Put one of each product into the cart.",
    "I need three things in my shopping cart, one piece each: what is in each of my tabs.",
    name="shopping-add-three-tabs",
    solution=[
        click("button", "Add to Cart"),
        focus_tab(1),
        click("button", "Add to Cart"),
        focus_tab(2),
        click("button", "Add to Cart"),
    ],
    mistake=[click("button", "Add to Cart"), focus_tab(1), click("button", "Add to Cart")],
    difficulty="medium",
)
set_two_prices = starting_on(
    lambda world, product, other: [cms_queries.product_url(world, name) for name in (product, other)],
    products.set_two_prices,
    "Set the price of the product in the first tab to ${price}, and that of the product in the second tab to "
    "${second}.",
    "Change two prices: what is open in the left tab costs ${price} from now on, and what is open in the right one "
    "${second}.",
    "The product in my first tab is to cost ${price}, and the one in my second tab is to cost ${second}. Change both "
    "regular prices.",
    name="cms-set-two-prices-tabs",
    solution=[
        do(products.set_price_here, "{price}"),
        focus_tab(1),
        do(products.set_price_here, "{second}"),
    ],
    mistake=[do(products.set_price_here, "{price}")],
    difficulty="medium",
)


def _order_pages(world: World, one: str, other: str) -> list[str]:
    return [cms_queries.order_url(world, number) for number in (one, other)]


hold_orders = Template(
    "cms",
    ("admin",),
    "cms-hold-orders-tabs",
    "change",
    "easy",
    since=2,
    start=_order_pages,
    intents=(
        "Put both orders that are open in my tabs on hold.",
        "We have to ask two customers something first: put the orders of the two tabs on hold.",
        "Hold the order in the first tab and the one in the second tab until further notice.",
    ),
    instances=lambda world: _pairs(world, _OPEN_ORDERS),
    expected=lambda one, other: [
        Updated("shop_orders", {"number": number}, {"status": "on hold"}) for number in (one, other)
    ],
    solution=[click("button", "Hold"), focus_tab(1), click("button", "Hold")],
    mistake=[click("button", "Hold")],
)


def _numbers_by_total(world: World, one: str, other: str) -> list[str]:
    query = "SELECT number FROM shop_orders WHERE number IN (?, ?) ORDER BY total DESC"
    return [row[0] for row in world.rows(query, one, other)]


larger_order = Template(
    "cms",
    ("admin",),
    "cms-larger-order-tabs",
    "information",
    "easy",
    since=2,
    start=_order_pages,
    intents=(
        "Two orders are open in my tabs. Which of them has the higher grand total? Give its number.",
        "Compare the grand totals of the orders in the two tabs. What is the number of the larger order?",
        "For which of the two orders that I have open did the customer pay more? Tell me the order number.",
    ),
    instances=lambda world: _pairs(world, "SELECT number, total FROM shop_orders ORDER BY id"),
    expected=lambda world, one, other: says(
        _numbers_by_total(world, one, other)[0], others=_numbers_by_total(world, one, other)[1:]
    ),
    solution=[
        do(_read_tabs, lambda page: (cms_queries.cents(page.value("Grand Total")), page.search(r"#(\d{9})")[0])),
        answer(lambda found: max(found)[1]),
    ],
    mistake=answer(lambda found: min(found)[1]),
)


def _posts(world: World) -> list[Params]:
    """Return pairs of posts of a board without a vote by the account that differ in comments."""
    query = (
        "SELECT title, comments, board FROM posts WHERE NOT voted AND author > 1 AND comments > 1 ORDER BY board, id"
    )
    found = forum_queries.select(world, query)
    pairs = ((a, b) for a, b in pairwise(found) if a["board"] == b["board"] and a["comments"] != b["comments"])
    return [{"one": a["title"], "other": b["title"]} for a, b in pairs]


def _voted(world: World, one: str, other: str, vote: str) -> ExpectedResult:
    post = max((forum_queries.post(world, title) for title in (one, other)), key=lambda row: int(row["comments"]))
    return forum_queries.vote_changes("post", post, 1 if vote == "Upvote" else -1)


def _focus(page: PageReader, index: int) -> Steps[None]:
    """Switch to one of two tabs, if it is not the second, which is shown."""
    if index == 0:
        yield page.focus_tab(0)


def _comment_count(page: PageReader) -> int:
    return int(page.search(r"^(\d+) comments?$")[0])


vote_more_discussed = Template(
    "code-and-forum",
    ("forum",),
    "forum-vote-discussed-tabs",
    "change",
    "easy",
    since=2,
    start=lambda world, one, other: [forum_queries.post_url(world, title) for title in (one, other)],
    intents=(
        "{vote} whichever of the two posts open in my tabs has more comments.",
        "Compare the posts in the two tabs. {vote} the one that was commented on more often.",
        "I have two posts open. {vote} the one with the larger number of comments, and not the other.",
    ),
    instances=choose(_posts, vote=("Upvote", "Downvote")),
    expected=_voted,
    solution=[
        do(_read_tabs, _comment_count),
        do(_focus, given(lambda found: found.index(max(found)))),
        click("button", "{vote}"),
    ],
    mistake=[
        do(_read_tabs, _comment_count),
        do(_focus, given(lambda found: found.index(min(found)))),
        click("button", "{vote}"),
    ],
)


def _compare_karma(page: PageReader, kind: str) -> Steps[str]:
    found = yield from _read_tabs(page, lambda page: (int(page.value(f"Karma of {kind}")), _name(page)))
    return max(found)[1]


higher_karma = starting_on(
    lambda first, second: [forum_queries.user_url(user) for user in (first, second)],
    counting.higher_karma,
    "The profiles of two users are open in my tabs. Who has the higher karma of {kind}?",
    "Compare the users in the two tabs: which of them has more karma of {kind}? Give the name.",
    "Two friends of mine, whose profiles I have open, quarrel about who has more karma of {kind}. Who has?",
    name="forum-karma-duel-tabs",
    solution=_compare_karma,
    mistake=[answer(lambda page: page.value("Joined"))],
    difficulty="easy",
)


def _issue_pages(world: World, project: str, one: str, other: str) -> list[str]:
    return [code_queries.issue_url(world, project, title) for title in (one, other)]


def _issues(world: World, where: str = "1") -> list[Params]:
    """Return pairs of open issues of a project that the agent may change; the second one has an assignee."""
    query = (
        "SELECT i.path AS project, i.title AS one, o.title AS other FROM issues i JOIN issues o "
        f"ON o.project = i.project AND o.id <> i.id AND o.state = 'open' WHERE {_WRITABLE} AND {where} ORDER BY 1, 2, 3"
    )
    return [*code_queries.select(world, query)]


close_issues = Template(
    "code-and-forum",
    ("code",),
    "code-close-issues-tabs",
    "change",
    "easy",
    since=2,
    start=_issue_pages,
    intents=(
        "Close both issues that are open in my tabs.",
        "The issues in the two tabs are settled. Close them.",
        "Close the issue in the first tab and the one in the second tab.",
    ),
    instances=choose(_issues, sample=60),
    expected=lambda world, project, one, other: [
        managing.closed(code_queries.issue(world, project, title)["id"]) for title in (one, other)
    ],
    solution=[click("button", "Close issue"), focus_tab(1), click("button", "Close issue")],
    mistake=[click("button", "Close issue")],
)


def _same_assignee(world: World, project: str, one: str, other: str) -> Updated:
    issue, model = (code_queries.issue(world, project, title) for title in (one, other))
    return Updated("code_issues", {"id": issue["id"]}, {"assignee": model["assignee"]})


def _assign_as_in_other_tab(page: PageReader) -> Steps[None]:
    yield page.focus_tab(1)
    person = parsing.people(page, "Assignee")[0]
    yield page.focus_tab(0)
    yield from code_steps.set_field(page, "Assignee", person)


same_assignee = Template(
    "code-and-forum",
    ("code",),
    "code-same-assignee-tabs",
    "change",
    "medium",
    since=2,
    start=_issue_pages,
    intents=(
        "Assign the issue in the first tab to the person that the issue in the second tab is assigned to.",
        "Whoever works on the issue in my second tab is to work on that in my first tab, too. Make them its assignee.",
        "Look up the assignee of the issue in the second tab, and give the issue in the first tab the same one.",
    ),
    instances=choose(
        lambda world: _issues(
            world,
            "o.assignee > 1 AND o.assignee IS NOT i.assignee AND o.assignee IN "
            "(SELECT account FROM code_members m WHERE m.project = i.project)",
        ),
        sample=60,
    ),
    expected=_same_assignee,
    solution=_assign_as_in_other_tab,
    mistake=[focus_tab(1), click("button", "Close issue")],
)


def _place_pages(world: World, one: str, other: str) -> list[str]:
    return [map_queries.place_url(world, name) for name in (one, other)]


higher_peak = starting_on(
    _place_pages,
    lookups.higher_peak,
    "Which of the two peaks open in my tabs is higher? Give its name.",
    "Compare the elevations of the peaks in the two tabs: which one is the higher?",
    "I have two peaks open. Name the higher.",
    name="maps-higher-peak-tabs",
    solution=[
        do(_read_tabs, lambda page: (int(page.value("Elevation").split()[0]), _name(page))),
        answer(lambda found: max(found)[1]),
    ],
    mistake=answer(lambda found: min(found)[1]),
    difficulty="easy",
)
route_length = starting_on(
    lambda world, start, end: _place_pages(world, start, end),
    navigation.route_length,
    "How many kilometres is it {mode} from the place in the first tab to the place in the second tab?",
    "What is the distance in kilometres from the place in my left tab to the one in my right tab, going {mode}?",
    "I want to go from the place in tab 0 to the place in tab 1 {mode}. How many kilometres is that?",
    name="maps-how-far-tabs",
    solution=[
        do(_read_tabs, _name),
        do(
            map_steps.request_directions,
            given(lambda found: found[0]),
            given(lambda found: found[1]),
            "{mode}",
        ),
        answer(lambda page: map_steps.read_summary(page).kilometres),
    ],
)


def _unsaved(world: World) -> list[Params]:
    """Return pairs of places in a town that are on none of the account's lists."""
    where = "p.id NOT IN (SELECT s.place FROM map_saved s JOIN map_lists l ON l.id = s.list WHERE l.account = 1)"
    pairs = pairwise(map_queries.places(world, where))
    return [{"one": a["name"], "other": b["name"]} for a, b in pairs if a["town"] == b["town"]]


save_both = Template(
    "maps",
    ("maps",),
    "maps-save-both-tabs",
    "change",
    "easy",
    since=2,
    start=_place_pages,
    intents=(
        'Save both places that are open in my tabs to my list "{list}".',
        'Put the places of the two tabs on my list "{list}", without notes.',
        'My list "{list}" should also have the place in the first tab and the one in the second tab.',
    ),
    instances=choose(_unsaved, sample=40, list=map_queries.own_lists),
    expected=lambda world, one, other, list: [
        Added(
            "map_saved",
            {"list": map_queries.own_list(world, list), "place": map_queries.place(world, name)["id"], "note": ""},
        )
        for name in (one, other)
    ],
    solution=[do(saved_lists.save_here, "{list}"), focus_tab(1), do(saved_lists.save_here, "{list}")],
    mistake=[do(saved_lists.save_here, "{list}")],
)


def _measure(page: PageReader, label: str = "Born") -> Steps[str]:
    start = linked(page, "Born")
    yield page.focus_tab(1)
    end = linked(page, label)
    yield page.goto(f"{ORIGINS['maps']}/")
    yield from map_steps.request_directions(page, start, end, "by car")
    return map_steps.read_summary(page).length


birthplaces_apart = starting_on(
    lambda first, second: [ORIGINS["encyclopedia"] + article_path(person) for person in (first, second)],
    mapping.birthplaces_apart,
    "How many kilometres is it by car from the birthplace of the person in the first tab to the birthplace of the "
    "person in the second tab?",
    "The people in my two tabs were born in different towns. How many kilometres is it by car from the town of the "
    "first to that of the second?",
    "Find out where the people of the two open articles were born. What distance in kilometres does the map give from "
    "the town of the left one to that of the right one, by car?",
    name="encyclopedia-birthplaces-apart-tabs",
    solution=_measure,
    mistake=lambda page: _measure(page, "Died"),
)


def _share_on_board(page: PageReader, title: str) -> Steps[None]:
    address = page.url
    yield page.focus_tab(1)
    yield page.click("link", "Submit")
    yield page.type("Title", title)
    yield page.type("URL", address)
    yield page.click("button", "Post")


share_product = starting_on(
    lambda world, product, board: [shop_queries.product_url(world, product), forum_queries.board_url(board)],
    multi_site.share_product,
    'Post a link to the product in the first tab on the board in the second tab, with the title "{title}".',
    'Share the product in the left tab on the board in the right tab: a link post that is called "{title}".',
    "On the forum board in the second tab, submit the address of the product in the first tab as a post titled "
    '"{title}".',
    name="across-share-product-tabs",
    solution=_share_on_board,
)


def _write_phone(page: PageReader) -> Steps[None]:
    phone = page.value("Phone")
    yield page.focus_tab(1)
    yield page.type("Your comment", phone)
    yield page.click("button", "Comment")


def _place_and_post(world: World, place: str, town: str, title: str) -> list[str]:
    """Return the pages of a place and of a post, which may be one that the account has hidden."""
    query = "SELECT p.id, b.name FROM forum_posts p JOIN forum_boards b ON b.id = p.board WHERE p.title = ?"
    (post,) = world.rows(query, title)
    return [map_queries.place_url(world, place), f"{forum_queries.board_url(post['name'])}/{post['id']}"]


phone_in_comment = starting_on(
    _place_and_post,
    multi_site.phone_in_comment,
    "Comment on the post in the second tab with the phone number of the place in the first tab, and nothing else.",
    "Somebody needs the phone number of the place in my first tab. Write only that, as a comment below the post in the "
    "second tab.",
    "Look up the phone number of the place in the left tab, and leave just the number as a comment on the post in the "
    "right tab.",
    name="across-phone-in-comment-tabs",
    solution=_write_phone,
    difficulty="easy",
)

TEMPLATES = [one for one in vars().values() if isinstance(one, Template)]

"""Tasks on several sites that start on the page of a product, an order, a user, a post, a place or a project."""

from __future__ import annotations

from agentgym_envs.webarena.sites.framework.site import ORIGINS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks import cross_site, multi_site
from agentgym_envs.webarena.tasks.cms import queries as cms_queries
from agentgym_envs.webarena.tasks.cms.steps import field_value
from agentgym_envs.webarena.tasks.code import queries as code_queries
from agentgym_envs.webarena.tasks.forum import queries as forum_queries
from agentgym_envs.webarena.tasks.maps import queries as map_queries
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.shopping import queries as shop_queries
from agentgym_envs.webarena.tasks.template import Template, starting_on


def _place_page(world: World, place: str, town: str) -> str:
    """Return the page of a place; its name is unique, but the instances name its town, too."""
    return map_queries.place_url(world, place)


def _send_total(page: PageReader, user: str) -> Steps[None]:
    (number,) = page.search(r"^Order # ?(\d+)$")
    yield from multi_site.send_message(page, user, f"Order {number}", page.value("Grand Total"))


def _restock_and_buy(page: PageReader, stock: int, quantity: int) -> Steps[None]:
    product = field_value(page, "Product Name")
    yield page.type("Quantity", str(stock))
    yield page.click("button", "Save")
    yield page.goto(f"{ORIGINS['shop']}/")
    yield from multi_site.open_product(page, product)
    yield page.type("Qty", str(quantity))
    yield page.click("button", "Add to Cart")


def _post_worst(page: PageReader, board: str, place: int = 0) -> Steps[None]:
    yield from cross_site.post_worst_here(page, page.all("heading", after="Breadcrumbs")[0].name, board, place)


share_product = starting_on(
    shop_queries.product_url,
    multi_site.share_product,
    'Post a link to this page on the board {board} of the forum, with the title "{title}".',
    'Share the product on this page in the forum: a link post on {board} that is called "{title}".',
    'On the forum board {board}, submit the address of this product as a post titled "{title}".',
    solution=multi_site.share_here,
)
order_total_message = starting_on(
    shop_queries.order_url,
    multi_site.order_total_message,
    "Send the forum user {user} a message that says only the total of this order of mine, such as $12.34. Its subject "
    'is "Order" and the number of the order, such as "Order 000012345".',
    "Look up what the order on this page came to, and send just that amount (like $12.34) to {user} in a private "
    'message on the forum. The subject is the word "Order", a space, and the number of this order.',
    'Write a private message to {user} on the forum. Subject: "Order NUMBER", with the number of this order. Text: the '
    "total of the order, and nothing else (in the form $12.34).",
    solution=_send_total,
)
town_of_order = starting_on(
    cms_queries.order_url,
    multi_site.town_of_order,
    "How many people live in the town that this order is shipped to?",
    "The order on this page goes to some town. What is that town's population, according to the map?",
    "What population does the map give for the shipping town of this order?",
    solution=multi_site.look_up_population_here,
    difficulty="easy",
)
restock_and_buy = starting_on(
    cms_queries.product_url,
    multi_site.restock_and_buy,
    "Set the stock of this product to {stock}, and then put {quantity} of it into my cart in the shop.",
    "We have counted: there are {stock} of the product on this page. Correct that, and add {quantity} of them to my "
    "cart in the shop.",
    "I want {quantity} of this product in my shopping cart, but first bring its stock to {stock} here in the "
    "administration.",
    solution=_restock_and_buy,
    difficulty="medium",
)
developer_customer = starting_on(
    cms_queries.order_url,
    multi_site.developer_customer,
    "The customer who placed this order also has an account on the code hosting site. Since which day?",
    "On which day did the customer of the order on this page become a member of the code hosting site?",
    "Find whoever placed this order on the code hosting site. When did that person join it?",
    solution=multi_site.find_developer_here,
    difficulty="medium",
)
hometown = starting_on(
    forum_queries.user_url,
    multi_site.hometown,
    "What is the postcode of the town in which this user lives?",
    "Which postcode does the map give for the home town of the user on this page?",
    "The profile that I am looking at names a town. Tell me that town's postcode.",
    difficulty="easy",
)
phone_in_comment = starting_on(
    _place_page,
    multi_site.phone_in_comment,
    'Comment on the forum post "{title}" with the phone number of this place, and nothing else.',
    'Somebody needs the phone number of the place on this page. Write only that, as a comment below "{title}" in the '
    "forum.",
    'Look up the phone number of this place, and leave just the number as a comment on the post "{title}" in the '
    "forum.",
    solution=multi_site.write_phone_here,
    difficulty="medium",
)
issue_about_product = starting_on(
    shop_queries.product_url,
    multi_site.issue_about_product,
    'Open an issue in my project {project} of the code hosting site with the title "{title}" and, as its description, '
    "just the SKU of this product.",
    'My project {project} on the code hosting site needs an issue called "{title}". Its description is the SKU of the '
    "product on this page, and nothing more.",
    'File an issue titled "{title}" in my project {project}, where I keep my code. Put only the SKU of this product '
    "into the description.",
    solution=multi_site.open_issue_here,
    difficulty="medium",
)
review_to_post = starting_on(
    shop_queries.product_url,
    cross_site.review_to_post,
    "Warn the people on the forum board {board} of this product: write a post with the name of the product as its "
    "title, and as text only the summary (the headline) of its worst review in the shop.",
    "What does the headline of the review with the fewest stars say about the product on this page? Post just that on "
    "{board} in the forum. The title of the post is the name of the product.",
    "Copy the summary of the lowest rated review of this product into a post on the board {board} of the forum, and "
    "nothing else. Give the post the name of the product as its title.",
    solution=_post_worst,
    mistake=lambda page, board: _post_worst(page, board, -1),
    difficulty="medium",
)
top_post_to_file = starting_on(
    forum_queries.board_url,
    cross_site.top_post_to_file,
    "Add the file {file} to the default branch of {project}. It holds one line: the title of the post with the highest "
    "score on this board of the forum.",
    "Which post on the board on this page has the highest score of all? Commit a new file {file} to {project}, on its "
    "default branch, with just the title of that post in it.",
    "In {project}, create {file} on the default branch. Its only content is the title of the best rated post of the "
    "board that I am looking at.",
    solution=cross_site.keep_top_title_here,
    mistake=lambda page, project, file: cross_site.keep_top_title_here(page, project, file, 1),
)
author_to_file = starting_on(
    forum_queries.post_url,
    cross_site.author_to_file,
    "Thank the author of this post: add the file {file} to the default branch of {project} with only the author's user "
    f'name in it. Then write the comment "{cross_site.COMMENT}" below the post.',
    "Commit a new file {file} to the default branch of {project} whose only content is the name of the user who wrote "
    f'the post on this page. After that, comment on the post with "{cross_site.COMMENT}"',
    f'Below this post, comment "{cross_site.COMMENT}" But first make that true: {{file}}, a new file on the default '
    "branch of {project}, is to hold just the user name of the post's author.",
    solution=cross_site.keep_author_here,
    mistake=lambda page, project, file: cross_site.keep_author_here(page, project, file, "Kept."),
)
issue_to_post = starting_on(
    code_queries.project_url,
    cross_site.issue_to_post,
    'Write a post on the forum board {board} with the title "{title}". Its text is just the title of the open issue of '
    "this project that was opened last.",
    "Which of the open issues of the project on this page is the newest? Post its title, and nothing else, on {board} "
    'in the forum, under "{title}".',
    'On the board {board} of the forum, publish "{title}": as text only the title of the most recently opened of the '
    "open issues in this project.",
    solution=cross_site.post_newest_issue_here,
    mistake=lambda page, board, title: cross_site.post_newest_issue_here(page, board, title, 1),
    difficulty="medium",
)
issue_to_order = starting_on(
    code_queries.project_url,
    cross_site.issue_to_order,
    "Order {number} is late because of the open issue of this project that was opened last. Comment on the order in "
    "the shop's administration with just the title of that issue, and notify the customer.",
    "Tell the customer of order {number} what holds it up: add the title of the newest open issue of the project on "
    "this page, and nothing else, as a comment on the order, and have the customer notified by e-mail.",
    "Look up which of the open issues in this project is the most recent. In the shop's administration, comment on "
    "order {number} with its title alone, notifying the customer.",
    solution=cross_site.explain_delay_here,
    mistake=lambda page, number: cross_site.explain_delay_here(page, number, 1),
    difficulty="medium",
)

TEMPLATES = [one for one in vars().values() if isinstance(one, Template)]

"""Tasks that start on the page of a product, an order or a category of the shop."""

from __future__ import annotations

from agentgym_envs.webarena.sites import clock
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.shopping import (
    account,
    browsing,
    cart,
    catalogue,
    combined,
    lookups,
    ordering,
    orders,
    queries,
    reviews,
    steps,
)
from agentgym_envs.webarena.tasks.steps import ALL_PARAMETERS, answer, click, do, given
from agentgym_envs.webarena.tasks.template import starting_on


def _order_page(world: World, day: str) -> str:
    """Return the page of the order that was placed on a day."""
    return queries.order_url(next(row["number"] for row in queries.orders(world) if clock.day(row["moment"]) == day))


def _category_page(world: World, department: str, category: str) -> str:
    """Return the page of a category; its name is unique, but the instances name its department, too."""
    return queries.category_url(world, category)


def _order_number(page: PageReader) -> str:
    return page.search(r"^Order # ?(\d+)$")[0]


product_attribute = starting_on(
    queries.product_url,
    catalogue.product_attribute,
    'What does the shop give as "{attribute}" for this product?',
    'Look at the details of this product: what is listed under "{attribute}"?',
    'For the thing on this page, what does it say for "{attribute}"?',
)
rated_reviews = starting_on(
    queries.product_url,
    browsing.rated_reviews,
    "Show me the reviews of this product that give {stars} stars, and only these.",
    "Open the list of all {stars}-star reviews of the product on this page.",
    "I want to read what those say who gave this product {stars} stars. Bring up the page of just these reviews.",
    solution=[do(steps.show_reviews), click("link", "{stars} stars")],
    mistake=[do(steps.show_reviews)],
    difficulty="easy",
)
count_stars = starting_on(
    queries.product_url,
    reviews.count_stars,
    "How many {stars}-star reviews does this product have? Answer with the number alone.",
    "How many customers gave the product on this page exactly {stars} stars? Give just the number.",
    "Count the reviews of this product with a rating of {stars}. One number will do.",
    solution=[
        do(steps.read_reviews),
        answer(lambda found, stars: sum(review.stars == stars for review in found)),
    ],
)
unhappy_reviewers = starting_on(
    queries.product_url,
    reviews.unhappy_reviewers,
    "Who gave this product {stars} stars or fewer? List the nicknames of the reviewers.",
    "List the reviewers (by nickname) who rated the product on this page at most {stars} stars.",
    "I want to know who was unhappy with this product: name everybody whose review has {stars} stars or fewer.",
    solution=[
        do(steps.read_reviews),
        answer(lambda found, stars: ", ".join(review.nickname for review in found if review.stars <= stars)),
    ],
)
review_title = starting_on(
    queries.product_url,
    reviews.review_title,
    'What is the title of the review that "{nickname}" wrote about this product?',
    '"{nickname}" has reviewed the product on this page. Under which heading?',
    'Find the review of this product by "{nickname}" and tell me its title.',
    solution=[
        do(steps.read_reviews),
        answer(lambda found, nickname: next(review.title for review in found if review.nickname == nickname)),
    ],
)
write_review = starting_on(
    queries.product_url,
    reviews.write_review,
    'Write a review of this product: {stars} stars, nickname "{nickname}", title "{title}", text "{text}"',
    'Review the product on this page for me with {stars} stars. Sign as "{nickname}", call it "{title}", and write: '
    '"{text}"',
    'Give this product {stars} stars. The nickname is "{nickname}", the summary "{title}" and the review "{text}"',
    difficulty="medium",
)
add_to_cart = starting_on(
    queries.product_url,
    cart.add_to_cart,
    "Add this product to my cart.",
    "Put one of what I am looking at into my shopping cart.",
    "I would like to buy the product on this page. Please put it into the cart, but do not check out yet.",
    solution=[click("button", "Add to Cart")],
)
add_with_options = starting_on(
    queries.product_url,
    cart.add_with_options,
    "Add {quantity} of this product to my cart ({options}).",
    "I need {quantity} pieces of the product on this page, {options}. Put them into my cart.",
    "Put this product into the cart with these options: {options}. Quantity: {quantity}.",
    difficulty="easy",
)
cart_with_coupon = starting_on(
    queries.product_url,
    cart.cart_with_coupon,
    'Add this product to my cart and apply the coupon code "{coupon}".',
    "Put one of what is on this page into my cart, then use the code {coupon} to get the discount. Do not order yet.",
    "I have a coupon, {coupon}. Add this product to the cart and make sure that the discount is applied.",
    solution=[click("button", "Add to Cart"), do(steps.open_cart), do(steps.apply_coupon, "{coupon}")],
    difficulty="easy",
)
add_wish = starting_on(
    queries.product_url,
    account.add_wish,
    "Add this product to my wish list.",
    "Put what I am looking at on my wish list.",
    "I want to remember the product on this page for later. Save it to my wish list.",
)
add_and_checkout = starting_on(
    queries.product_url,
    ordering.add_and_checkout,
    "Add one of this product to my cart and order everything in it: {shipping}, to my address at {street}, paid by "
    "{payment}.",
    "I want to buy this together with what is in my cart already. Send it by {shipping} to my address in {street}; I "
    "pay by {payment}.",
    "Put the product on this page into the cart, then check out with {shipping} and {payment}. It should go to "
    "{street}.",
    solution=[click("button", "Add to Cart"), do(steps.open_cart), do(steps.check_out, ALL_PARAMETERS)],
)
missing_colour = starting_on(
    queries.product_url,
    lookups.missing_colour,
    "Add this product in the colour {colour} to my cart.",
    "I want the product on this page in {colour}, and in no other colour. Put one into my cart.",
    "Put one of what is on this page into the shopping cart. Colour: {colour}.",
)
order_tracking_number = starting_on(
    _order_page,
    orders.order_tracking_number,
    "What is the tracking number of this order?",
    "I want to follow the parcel of the order on this page. What is its tracking number?",
    "Find the tracking number for this order.",
    difficulty="easy",
)
chosen_option = starting_on(
    _order_page,
    orders.chosen_option,
    "Which {option} of the {product} did I choose in this order?",
    "The {product} is in the order on this page. In which {option}?",
    "I want to buy the {product} again as in this order. Which {option} did I take?",
    mistake=answer("{product}"),
    difficulty="easy",
)
reorder = starting_on(
    queries.order_url,
    ordering.reorder,
    "Reorder this: put everything from this order into the cart again, in the same quantities.",
    "I want the same things again as in the order on this page. Put them all into my cart.",
    "Fill my cart with what I bought in this order, without checking out.",
    difficulty="easy",
)
cancel_pending_order = starting_on(
    _order_page,
    ordering.cancel_pending_order,
    "Cancel this order.",
    "I no longer need what is in the order on this page. Cancel it.",
    "Please cancel the pending order that I am looking at.",
    difficulty="easy",
)
review_ordered = starting_on(
    _order_page,
    combined.review_ordered,
    'There is a single product in this order. Write a review of it: {stars} stars, nickname "{nickname}", title '
    '"{title}", text "{text}"',
    'Review what I bought in this order (there is just one product in it) with {stars} stars. Sign as "{nickname}", '
    'call it "{title}", and write: "{text}"',
    'Give the only product of the order on this page {stars} stars. The nickname is "{nickname}", the summary '
    '"{title}" and the review "{text}"',
    difficulty="medium",
)
contact_shop = starting_on(
    _order_page,
    account.contact_shop,
    'Write to the shop by its contact form about this order. Subject: "{subject}". Message: "{text}" Give the number '
    "of the order in its field, and leave my name and e-mail address as they are.",
    "Use the form Contact us to tell the shop about the order on this page; put the number of the order into the form. "
    'The subject is "{subject}", and the message is: "{text}"',
    'Send the shop a message with the subject "{subject}" and the text "{text}", for this order (fill in its number, '
    "too).",
    solution=[do(account.fill_in_enquiry, given(_order_number), "{subject}", "{text}")],
    difficulty="medium",
)
extreme_price = starting_on(
    _category_page,
    catalogue.extreme_price,
    "What is the {extreme} product in this category?",
    "I am looking at a category of the shop. Which product in it is the {extreme}?",
    "Name the {extreme} product of the category on this page.",
)
most_reviewed = starting_on(
    _category_page,
    catalogue.most_reviewed,
    "Which product in this category has the most customer reviews?",
    "Of all products of the category on this page, what has been reviewed most often?",
    "Find the product of this category that has got more reviews than any other in it.",
    solution=catalogue.most_reviewed_here,
    difficulty="easy",
)
narrowed_category = starting_on(
    _category_page,
    browsing.filtered_category,
    'In this category, show only the products with {attribute} "{value}", sorted by "{order}".',
    "Narrow the category on this page down to the products whose {attribute} is {value}, and sort them by {order}.",
    'Of this list, I want to see only the products with {attribute}: {value}, in the order "{order}".',
    difficulty="easy",
)
count_filtered = starting_on(
    _category_page,
    browsing.count_filtered,
    'How many products in this category have {attribute} "{value}"? Answer with the number alone.',
    "In the category on this page, how many products are there with {attribute}: {value}? Give just the number.",
    'Count the products of this category whose {attribute} is "{value}". One number will do.',
    difficulty="easy",
)
wish_cheapest = starting_on(
    _category_page,
    combined.wish_cheapest,
    'Find the cheapest product of this category with {attribute} "{value}", put it on my wish list, and write the '
    'comment "{comment}" to it.',
    "In the category on this page, which product with {attribute}: {value} costs least? Add it to my wish list with "
    'the comment "{comment}".',
    'Put the least expensive product of this category whose {attribute} is "{value}" on my wish list. The comment '
    'there should read "{comment}".',
    difficulty="medium",
)

"""Tasks that start on the page of an order, a product, a customer or something else in the administration."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.cms import (
    browsing,
    combined,
    content,
    customers,
    fulfilling,
    marketing,
    orders,
    products,
    queries,
    reviews,
    steps,
)
from agentgym_envs.webarena.tasks.cms.queries import ADMIN
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.parameters import Params, call_by_name
from agentgym_envs.webarena.tasks.steps import do
from agentgym_envs.webarena.tasks.template import starting_on


def _find_documents(page: PageReader, entry: str) -> Iterator[str]:
    """List the invoices, shipments or credit memos of the order on the page."""
    (number,) = page.search(r"#(\d{9})")
    yield from steps.open_from_menu(page, "Sales", entry)
    yield from steps.filter_grid(page, {"Order number": number})


def _find_product(page: PageReader, section: str, entry: str) -> Iterator[str]:
    """Filter a list from the menu by the product on the page."""
    name = steps.field_value(page, "Product Name")
    yield from steps.open_from_menu(page, section, entry)
    yield from steps.filter_grid(page, {"Product": name})


def _content_page(world: World, old: str) -> str:
    return f"{ADMIN}/pages/{world.value('SELECT id FROM shop_pages WHERE title = ?', old)}"


def _review(world: World, product: str, nickname: str) -> str:
    return f"{ADMIN}/reviews/{reviews.pending_review(world, product, nickname)}"


def _new_titles(world: World) -> list[Params]:
    """Return the instances whose new title does not name the old one."""
    found = call_by_name(content.retitle_page.instances, {"world": world})
    return [params for params in found if params["old"] not in params["new"]]


def _enquiry(world: World, customer: str, subject: str) -> str:
    query = "SELECT id FROM shop_enquiries WHERE name = ? AND subject = ?"
    return f"{ADMIN}/enquiries/{world.value(query, customer, subject)}"


refunded_amount = starting_on(
    queries.order_url,
    orders.refunded_amount,
    "How much money was refunded for this order?",
    "What is the total of the credit memo for the order on this page?",
    "Tell me the amount that the customer got back for the order that I am looking at.",
    skip=2,
    lead=[do(_find_documents, "Credit Memos")],
)
most_expensive_item = starting_on(
    queries.customer_url,
    orders.most_expensive_item,
    "Which item of this customer's most recent order costs the most apiece?",
    "Look at the latest order of the customer on this page. What is the most expensive product in it, by the price of "
    "one?",
    "What is the priciest single item in the newest order that this customer placed?",
)
order_customer = starting_on(
    queries.order_url,
    browsing.order_customer,
    "Open the account page of the customer who placed this order.",
    "Go to the page of the customer behind the order on this page.",
    "Show me the customer of this order, on the customer's own page.",
)
cancel_open_order = starting_on(
    queries.order_url,
    fulfilling.cancel_open_order,
    "Cancel this order.",
    "The customer has changed their mind: please cancel the order on this page.",
    "The order that I am looking at was placed by mistake. Cancel it.",
    difficulty="easy",
)
hold_order = starting_on(
    queries.order_url,
    fulfilling.hold_order,
    "Put this order on hold.",
    "We have to ask the customer something first: put the order on this page on hold.",
    "Hold this order until further notice.",
)
release_order = starting_on(
    queries.order_url,
    fulfilling.release_order,
    "Take this order off hold.",
    "The question about the order on this page is settled. Release it, so that it is no longer on hold.",
    "This order has been on hold long enough: unhold it.",
)
invoice_order = starting_on(
    queries.order_url,
    fulfilling.invoice_order,
    "Create the invoice for this order.",
    "The money for the order on this page has arrived: invoice the order.",
    "Invoice everything in this order.",
    difficulty="easy",
)
ship_order = starting_on(
    queries.order_url,
    fulfilling.ship_order,
    "Ship this order with {carrier}, tracking number {track}.",
    "Create the shipment for the order on this page. The carrier is {carrier}, and the tracking number is {track}.",
    "The parcel of this order has gone out with {carrier} as number {track}. Enter the shipment.",
)
add_tracking_number = starting_on(
    queries.order_url,
    fulfilling.add_tracking_number,
    "Add the {carrier} tracking number {track} to the shipment of this order.",
    "The order on this page was shipped without a tracking number. It is {track}, with {carrier}: please add it.",
    "Update the order that I am looking at with its tracking number: {carrier} {track}.",
    skip=2,
    lead=[do(_find_documents, "Shipments")],
)
refund_order = starting_on(
    queries.order_url,
    fulfilling.refund_order,
    "Refund this order with its shipping, less an adjustment fee of ${fee}.00. Do not return items to stock.",
    "Create a credit memo for the order on this page: shipping refunded in full, an adjustment fee of ${fee}.00, "
    "nothing put back into stock.",
    "Give the customer of this order everything back, shipping included, except for a fee of ${fee}.00. The items do "
    "not go back to stock.",
    difficulty="easy",
)
notify_customer = starting_on(
    queries.newest_order_url,
    fulfilling.notify_customer,
    'Notify the customer about this order with the message "{message}".',
    'Add the comment "{message}" to the order on this page, and notify the customer of it.',
    'Write "{message}" as a comment on this order; the customer is to be notified by e-mail.',
    skip=3,
    difficulty="easy",
)
correct_address = starting_on(
    queries.order_url,
    fulfilling.correct_address,
    'The customer of this order has moved. Change the street in the shipping address to "{street}" and the phone '
    "number to {phone}.",
    'In the shipping address of the order on this page, the street must be "{street}" and the phone {phone}. Correct '
    "it.",
    'Update the shipping address of this order: street address "{street}", phone number {phone}. Leave the billing '
    "address alone.",
)
cancel_complete_order = starting_on(
    queries.order_url,
    fulfilling.cancel_complete_order,
    "Cancel this order, please.",
    "The customer no longer wants what is in the order on this page. Cancel the order (a refund is not what we are "
    "looking for).",
    "Please set this order to canceled.",
)
fulfil_order = starting_on(
    queries.order_url,
    combined.fulfil_order,
    "This order is paid and packed: create its invoice, then ship it with {carrier}, tracking number {track}.",
    "Invoice the order on this page and enter its shipment with {carrier} under the tracking number {track}.",
    "Complete this order. It needs an invoice, and a shipment with the {carrier} tracking number {track}.",
    difficulty="medium",
)
correct_both_addresses = starting_on(
    queries.order_url,
    combined.correct_both_addresses,
    'The street in both addresses of this order, shipping and billing, must be "{street}". Correct them.',
    'Change the street address of the order on this page to "{street}", in the billing address as well as in the '
    "shipping address.",
    'The billing and the shipping address of this order have an old street. Set it to "{street}" in each.',
    difficulty="medium",
)
set_price = starting_on(
    queries.product_url,
    products.set_price,
    "Set the price of this product to ${price}.",
    "The product on this page is to cost ${price} from now on. Change its price.",
    "Change the regular price of this product to ${price}.",
    difficulty="easy",
)
reduce_price = starting_on(
    queries.product_url,
    products.reduce_price,
    "Reduce the price of this product by {percent}%.",
    "Make the product on this page {percent}% cheaper by changing its regular price.",
    "This sells badly. Lower the price of the product that I am looking at by {percent} percent.",
    difficulty="easy",
)
end_sale = starting_on(
    queries.product_url,
    products.end_sale,
    "End the sale of this product: it must have no special price any more.",
    "Remove the special price of the product on this page.",
    "This product is to be sold at its regular price again. Clear its special price.",
    difficulty="easy",
)
take_delivery = starting_on(
    queries.product_url,
    products.take_delivery,
    "{count} more units of this product have arrived. Add them to its quantity in stock.",
    "We got a delivery of {count} pieces of the product on this page. Increase its stock by that many.",
    "Raise the stock of this product by {count}.",
    difficulty="easy",
)
add_options = starting_on(
    queries.product_url,
    products.add_options,
    "Offer this product in two more colours: add {one} and {other} as values of its option Colour, at no extra price.",
    'Add two values to the option "Colour" of the product on this page: {one} and {other}, both without an extra '
    "price.",
    "Customers must be able to choose this product in the colours {one} and {other}, too, for the same price. Add "
    "these values of the option Colour.",
    difficulty="medium",
)
set_two_prices = starting_on(
    queries.product_url,
    products.set_two_prices,
    "Set the price of this product to ${price}, and that of {other} to ${second}.",
    "Change two prices: the product on this page costs ${price} from now on, and {other} ${second}.",
    "What I am looking at is to cost ${price}, and {other} is to cost ${second}. Change both regular prices.",
    lead=[do(products.set_price_here, "{price}")],
    mistake=[do(products.set_price_here, "{price}")],
    difficulty="medium",
)
supplier_phone = starting_on(
    queries.product_url,
    products.supplier_phone,
    "What is the telephone number of the supplier of this product?",
    "Which phone number does our supplier of the product on this page have?",
    "I want to call whoever supplies us with this. What is their number?",
)
unhappiest_reviewer = starting_on(
    queries.product_url,
    reviews.unhappiest_reviewer,
    "Which reviewer gave this product the lowest rating? Tell me the nickname.",
    "Who is the least happy with the product on this page, by the stars in the reviews? Give the nickname.",
    "What is the nickname of whoever rated this product worst?",
    skip=2,
    lead=[do(_find_product, "Marketing", "All Reviews")],
)
average_rating = starting_on(
    queries.product_url,
    reviews.average_rating,
    "What is the average rating of this product in the product reviews report?",
    "Look at the report on product reviews. Which average rating does the product on this page have?",
    "According to the report on product reviews, what do reviewers rate this product on average?",
    skip=2,
    lead=[do(_find_product, "Reports", "Product Reviews Report")],
)
change_group = starting_on(
    queries.customer_url,
    customers.change_group,
    "Move this customer to the group {target}.",
    "The customer on this page is a {target} customer now. Change the group of the account accordingly.",
    "Set the group of the customer that I am looking at to {target}.",
    difficulty="easy",
)
change_email = starting_on(
    queries.customer_url,
    customers.change_email,
    "This customer has a new e-mail address: {email}. Enter it in the account.",
    "Change the e-mail address of the account on this page to {email}.",
    "Update the customer that I am looking at: the e-mail address is {email} from now on.",
    difficulty="easy",
)
unsubscribe_customer = starting_on(
    queries.customer_url,
    customers.unsubscribe_customer,
    "Unsubscribe this customer from the newsletter.",
    "The customer on this page does not want our newsletter any longer. End the subscription without deleting it.",
    "Set the newsletter subscription of this customer to unsubscribed.",
)
subscribe_customer = starting_on(
    queries.customer_url,
    customers.subscribe_customer,
    "Subscribe this customer to the newsletter.",
    "The customer on this page wants to get our newsletter. Enter the subscription.",
    "Set the customer that I am looking at to be subscribed to the newsletter.",
)
enquiry_order = starting_on(
    _enquiry,
    customers.enquiry_order,
    "This enquiry is about an order. What is its grand total?",
    "How much did the order that the enquiry on this page is about come to?",
    "What is the grand total of the order that the customer mentions in this enquiry?",
    skip=2,
    difficulty="easy",
)
moderate_review = starting_on(
    _review,
    reviews.moderate_review,
    "Set this pending review to {status}.",
    "The review on this page is still pending. It is to be {status}.",
    "Change the status of the review that I am looking at to {status}.",
    skip=3,
    difficulty="easy",
)
switch_rule = starting_on(
    queries.rule_url,
    marketing.switch_rule,
    "{switch} this cart price rule.",
    "{switch} the rule on this page, and change nothing else of it.",
    "{switch} the coupon of the cart price rule that I am looking at.",
    difficulty="easy",
)
extend_rule = starting_on(
    queries.rule_url,
    marketing.extend_rule,
    "Let the coupon of this rule be valid until {end}: change the end of the rule.",
    "Set the last day of the cart price rule on this page to {end}.",
    "This rule must end on {end}. Change it accordingly.",
    difficulty="easy",
)
retitle_page = starting_on(
    _content_page,
    content.retitle_page,
    'Change the title of this page to "{new}".',
    'Rename the content page that I have open: its title is to be "{new}".',
    'This page of the shop must be called "{new}" from now on. Keep its URL key.',
    instances=_new_titles,
    skip=2,
    difficulty="easy",
)

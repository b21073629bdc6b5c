"""The shop's text pages as (title, URL key, content, enabled)."""

from __future__ import annotations

PAGES = (
    (
        "About us",
        "about-us",
        "{store_name} began in a single room in {street}, {town}, with forty kettles and a cash box. Today we send "
        "parcels to every town of {country}, and the kettles are still here.\n\n"
        "## What we care about\n\n"
        "- Things that last, and that can be mended\n- Fair prices, all year round\n- Answers from people, not machines"
        "\n\nCome and see us: {hours}.",
        1,
    ),
    (
        "Shipping",
        "shipping",
        "## What it costs\n\n- Standard Shipping: {standard_rate}, free from {free_shipping_from}\n"
        "- Express Shipping: {express_rate}\n- Store Pickup: free\n\n"
        "## How long it takes\n\nStandard parcels arrive within {delivery_days} working days, express ones on the next "
        "working day if you order before noon. You find the tracking number in your order once it has left us.\n\n"
        "We deliver everywhere in {country}, and nowhere else so far.",
        1,
    ),
    (
        "Returns and refunds",
        "returns",
        "You may send anything back within {return_days} days, unworn and unopened in the case of food and "
        "cosmetics.\n\n## How it works\n\n- Write to us by the form Contact us, with the number of your order\n"
        "- We send you a label\n- Within a week of the parcel's arrival you get your money back\n\n"
        "The cost of shipping is refunded if the fault was ours.",
        1,
    ),
    (
        "Customer Service",
        "customer-service",
        "We are here for you: {hours}.\n\n- Telephone: {phone}\n- E-mail: {email}\n\n"
        "Have the number of your order at hand; it begins with zeros and is in every letter that we send.",
        1,
    ),
    (
        "Privacy",
        "privacy",
        "We keep what we need to send parcels: your name, your addresses and what you ordered. We keep it for as long "
        "as the tax office wants us to, and not a day longer.\n\n"
        "We do not sell it, lend it or look at it for fun. You may ask us at any time what we know about you.",
        1,
    ),
    (
        "Size guide",
        "size-guide",
        "Measure over what you usually wear beneath.\n\n- XS: chest 80 to 86 cm\n- S: chest 87 to 93 cm\n"
        "- M: chest 94 to 101 cm\n- L: chest 102 to 110 cm\n- XL: chest 111 to 120 cm\n\n"
        "Between two sizes? Take the larger one for jackets, the smaller one for shirts.",
        1,
    ),
    (
        "Gift wrapping",
        "gift-wrapping",
        "We wrap presents in brown paper, with string and a sprig of whatever is green outside. Say so in a comment on "
        "your order; it is free from {free_shipping_from}.",
        1,
    ),
    (
        "Terms of sale",
        "terms",
        "A contract is made when we send the parcel. All prices are in dollars, before {tax_percent} % tax, which the "
        "cart adds.\n\nCoupons cannot be combined. If we have made a mistake in a price, we tell you before we send "
        "anything.",
        1,
    ),
    (
        "Payment",
        "payment",
        "You choose how to pay at the end of the checkout.\n\n- Bank Transfer: we pack as soon as the money has come\n"
        "- Cash on Delivery: you pay whoever brings the parcel\n- Check / Money Order: made out to {store_name}, "
        "{street}, {town}\n\nWhat has not been paid after fourteen days, we cancel.",
        1,
    ),
    (
        "Where is my parcel?",
        "tracking",
        "Sign in, open My Orders and then the order. If its status is complete, you see there who carries it, and "
        "under which number.\n\n## What the status means\n\n- Pending: we have it, and nobody has begun to pack\n"
        "- Processing: it is being packed, or waits for the carrier\n- On hold: something is unclear; we will write\n"
        "- Complete: it has left our house\n- Closed: it came back, and you have your money\n\n"
        "As long as an order is pending, you can cancel it yourself.",
        1,
    ),
    (
        "Warranty",
        "warranty",
        "Whatever breaks within two years although it was used as it should be, we mend or replace. Keep the invoice."
        "\n\n## What is not covered\n\n- Batteries and bulbs\n- What was dropped, drowned or taken apart\n"
        "- The colour of things that stood in the sun",
        1,
    ),
    (
        "Our store",
        "our-store",
        "You find us in {street}, {town}. We are there {hours}.\n\n"
        "- Parcels for Store Pickup wait at the counter for ten days\n- Dogs are welcome, and get water\n"
        "- Wheelchairs come in by the yard\n\nCall us before you come for something large: {phone}.",
        1,
    ),
    (
        "Autumn fair",
        "autumn-fair",
        "In October we put tables into the street and sell what is left of the summer. There is soup.\n\n"
        "The date will be told here.",
        0,
    ),
    (
        "Careers",
        "careers",
        "We are looking for people who like to pack parcels, to answer letters, and to explain the difference between "
        "a saucepan and a casserole.\n\nThis page is being rewritten.",
        0,
    ),
    (
        "Page not found",
        "no-route",
        "What you are looking for may have been sold, or it never was here. Try the search, or ask us: {phone}.",
        1,
    ),
)

-- The shop's tables, and the administration's. Money is in cents, weight in grams; moments are text, the clock's.

CREATE TABLE shop_settings (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE, -- store_name, email, phone, hours, street, town, free_shipping_from, flat_rate, ...
    value TEXT NOT NULL
);

CREATE TABLE shop_categories (
    id INTEGER PRIMARY KEY,
    parent INTEGER REFERENCES shop_categories, -- NULL at the top; products are in the second level only
    name TEXT NOT NULL,
    slug TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL DEFAULT '',
    position INTEGER NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX shop_categories_parent ON shop_categories (parent);

CREATE TABLE shop_products (
    id INTEGER PRIMARY KEY,
    sku TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    slug TEXT NOT NULL UNIQUE,
    category INTEGER NOT NULL REFERENCES shop_categories,
    brand TEXT NOT NULL,
    price INTEGER NOT NULL,
    special_price INTEGER, -- what it is sold for while it is not NULL
    cost INTEGER NOT NULL,
    stock INTEGER NOT NULL,
    enabled INTEGER NOT NULL DEFAULT 1,
    summary TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL DEFAULT '',
    weight INTEGER NOT NULL DEFAULT 0,
    created TEXT NOT NULL
);
CREATE INDEX shop_products_category ON shop_products (category);
CREATE INDEX shop_products_brand ON shop_products (brand);

CREATE TABLE shop_attributes (
    id INTEGER PRIMARY KEY,
    product INTEGER NOT NULL REFERENCES shop_products,
    name TEXT NOT NULL, -- "Colour", "Material", "Capacity", ...
    value TEXT NOT NULL,
    UNIQUE (product, name)
);
CREATE INDEX shop_attributes_value ON shop_attributes (name, value);

CREATE TABLE shop_options ( -- what a customer has to choose; one value of each name
    id INTEGER PRIMARY KEY,
    product INTEGER NOT NULL REFERENCES shop_products,
    name TEXT NOT NULL, -- "Colour" or "Size"
    value TEXT NOT NULL,
    extra INTEGER NOT NULL DEFAULT 0, -- added to the price
    position INTEGER NOT NULL,
    UNIQUE (product, name, value)
);

CREATE TABLE shop_customers (
    id INTEGER PRIMARY KEY, -- 1 is people[0], who the agent acts for
    email TEXT NOT NULL UNIQUE,
    first TEXT NOT NULL,
    last TEXT NOT NULL,
    customer_group TEXT NOT NULL DEFAULT 'General', -- General, Wholesale, Retailer
    joined TEXT NOT NULL,
    address INTEGER REFERENCES shop_addresses -- the default one
);

CREATE TABLE shop_addresses (
    id INTEGER PRIMARY KEY,
    customer INTEGER NOT NULL REFERENCES shop_customers,
    name TEXT NOT NULL,
    street TEXT NOT NULL,
    town TEXT NOT NULL,
    region TEXT NOT NULL,
    zip TEXT NOT NULL,
    phone TEXT NOT NULL
);
CREATE INDEX shop_addresses_customer ON shop_addresses (customer);

CREATE TABLE shop_carts (
    id INTEGER PRIMARY KEY,
    customer INTEGER NOT NULL UNIQUE REFERENCES shop_customers,
    coupon TEXT NOT NULL DEFAULT '' -- the code that was applied
);

CREATE TABLE shop_cart_lines (
    id INTEGER PRIMARY KEY,
    cart INTEGER NOT NULL REFERENCES shop_carts,
    product INTEGER NOT NULL REFERENCES shop_products,
    options TEXT NOT NULL DEFAULT '', -- "Colour: Blue, Size: M"
    quantity INTEGER NOT NULL,
    UNIQUE (cart, product, options)
);

CREATE TABLE shop_wishes (
    id INTEGER PRIMARY KEY,
    customer INTEGER NOT NULL REFERENCES shop_customers,
    product INTEGER NOT NULL REFERENCES shop_products,
    comment TEXT NOT NULL DEFAULT '',
    added TEXT NOT NULL,
    UNIQUE (customer, product)
);

CREATE TABLE shop_compares (
    id INTEGER PRIMARY KEY,
    customer INTEGER NOT NULL REFERENCES shop_customers,
    product INTEGER NOT NULL REFERENCES shop_products,
    UNIQUE (customer, product)
);

CREATE TABLE shop_reviews (
    id INTEGER PRIMARY KEY,
    product INTEGER NOT NULL REFERENCES shop_products,
    customer INTEGER REFERENCES shop_customers, -- NULL: a guest
    nickname TEXT NOT NULL,
    rating INTEGER NOT NULL, -- 1 to 5
    title TEXT NOT NULL,
    text TEXT NOT NULL,
    moment TEXT NOT NULL,
    status TEXT NOT NULL -- approved, pending, rejected; only the approved are seen in the shop
);
CREATE INDEX shop_reviews_product ON shop_reviews (product, status);
CREATE INDEX shop_reviews_customer ON shop_reviews (customer);

CREATE TABLE shop_orders (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE, -- "000000123"
    customer INTEGER NOT NULL REFERENCES shop_customers,
    moment TEXT NOT NULL,
    status TEXT NOT NULL, -- pending, processing, complete (shipped), canceled, on hold, closed (refunded)
    shipping_method TEXT NOT NULL,
    payment_method TEXT NOT NULL,
    coupon TEXT NOT NULL DEFAULT '',
    subtotal INTEGER NOT NULL, -- the sum of the lines
    discount INTEGER NOT NULL DEFAULT 0, -- not negative
    shipping INTEGER NOT NULL,
    tax INTEGER NOT NULL,
    total INTEGER NOT NULL -- subtotal - discount + shipping + tax
);
CREATE INDEX shop_orders_customer ON shop_orders (customer);
CREATE INDEX shop_orders_moment ON shop_orders (moment);

CREATE TABLE shop_order_addresses (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES shop_orders,
    kind TEXT NOT NULL, -- shipping, billing
    name TEXT NOT NULL,
    street TEXT NOT NULL,
    town TEXT NOT NULL,
    region TEXT NOT NULL,
    zip TEXT NOT NULL,
    phone TEXT NOT NULL,
    UNIQUE (order_id, kind)
);

CREATE TABLE shop_order_lines (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES shop_orders,
    product INTEGER NOT NULL REFERENCES shop_products,
    sku TEXT NOT NULL,
    name TEXT NOT NULL,
    options TEXT NOT NULL DEFAULT '', -- "Colour: Blue, Size: M"
    price INTEGER NOT NULL, -- of one
    quantity INTEGER NOT NULL
);
CREATE INDEX shop_order_lines_order ON shop_order_lines (order_id);
CREATE INDEX shop_order_lines_product ON shop_order_lines (product);

CREATE TABLE shop_invoices (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    order_id INTEGER NOT NULL REFERENCES shop_orders,
    moment TEXT NOT NULL,
    total INTEGER NOT NULL
);
CREATE INDEX shop_invoices_order ON shop_invoices (order_id);

CREATE TABLE shop_shipments (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    order_id INTEGER NOT NULL REFERENCES shop_orders,
    moment TEXT NOT NULL
);
CREATE INDEX shop_shipments_order ON shop_shipments (order_id);

CREATE TABLE shop_tracks ( -- tracking numbers; a shipment may have none
    id INTEGER PRIMARY KEY,
    shipment INTEGER NOT NULL REFERENCES shop_shipments,
    carrier TEXT NOT NULL,
    number TEXT NOT NULL
);
CREATE INDEX shop_tracks_shipment ON shop_tracks (shipment);

CREATE TABLE shop_refunds (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    order_id INTEGER NOT NULL REFERENCES shop_orders,
    moment TEXT NOT NULL,
    total INTEGER NOT NULL, -- of which `shipping`
    shipping INTEGER NOT NULL
);
CREATE INDEX shop_refunds_order ON shop_refunds (order_id);

CREATE TABLE shop_order_comments (
    id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES shop_orders,
    moment TEXT NOT NULL,
    status TEXT NOT NULL, -- of the order, then
    text TEXT NOT NULL,
    visible INTEGER NOT NULL DEFAULT 0, -- to the customer, in the shop
    notified INTEGER NOT NULL DEFAULT 0 -- whether the customer was sent it
);
CREATE INDEX shop_order_comments_order ON shop_order_comments (order_id);

CREATE TABLE shop_rules ( -- cart price rules
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    coupon TEXT NOT NULL DEFAULT '', -- the code that calls for it; '' applies to every cart
    kind TEXT NOT NULL, -- percent, fixed
    amount INTEGER NOT NULL, -- percent, or cents off the whole cart
    minimum INTEGER NOT NULL DEFAULT 0, -- the subtotal from which it applies
    customer_group TEXT NOT NULL DEFAULT '', -- '' is all of them
    active INTEGER NOT NULL,
    starts TEXT, -- days, "2026-03-01"; NULL is no limit
    ends TEXT,
    used INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE shop_pages (
    id INTEGER PRIMARY KEY,
    title TEXT NOT NULL,
    url_key TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL, -- paragraphs, with an empty line between two; "## " begins a heading, "- " an item
    enabled INTEGER NOT NULL DEFAULT 1,
    updated TEXT NOT NULL
);

CREATE TABLE shop_subscribers ( -- of the newsletter
    id INTEGER PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    customer INTEGER REFERENCES shop_customers, -- NULL: a guest
    status TEXT NOT NULL, -- subscribed, unsubscribed
    moment TEXT NOT NULL
);
CREATE INDEX shop_subscribers_customer ON shop_subscribers (customer);

CREATE TABLE shop_searches (
    id INTEGER PRIMARY KEY,
    term TEXT NOT NULL UNIQUE,
    results INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    last TEXT NOT NULL -- when it was last searched for
);

CREATE TABLE shop_enquiries ( -- what was written by the form "Contact us"
    id INTEGER PRIMARY KEY,
    customer INTEGER REFERENCES shop_customers, -- NULL: a guest
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    phone TEXT NOT NULL DEFAULT '',
    subject TEXT NOT NULL,
    order_number TEXT NOT NULL DEFAULT '',
    text TEXT NOT NULL,
    moment TEXT NOT NULL
);

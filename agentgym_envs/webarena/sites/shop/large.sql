-- Further indices of a large shop. An ordinary one is read as fast without them.

CREATE INDEX shop_products_created ON shop_products (created);
CREATE INDEX shop_reviews_moment ON shop_reviews (moment);
CREATE INDEX shop_reviews_ratings ON shop_reviews (product, status, rating, moment);
CREATE INDEX shop_order_lines_sold ON shop_order_lines (product, quantity);
CREATE INDEX shop_order_lines_counted ON shop_order_lines (order_id, product, quantity, price);
CREATE INDEX shop_orders_spent ON shop_orders (customer, status, total, moment);
CREATE INDEX shop_invoices_moment ON shop_invoices (moment);
CREATE INDEX shop_shipments_moment ON shop_shipments (moment);
ANALYZE;

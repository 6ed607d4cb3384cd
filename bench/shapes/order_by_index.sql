-- The last five of ten rows, in an index's order.
\set customer random(1, :customers)
SELECT id, total FROM orders WHERE customer_id = :customer ORDER BY id DESC LIMIT 5;

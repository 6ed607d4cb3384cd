-- Three rows by a key of two columns.
\set a random(1, :orders)
\set b random(1, :orders)
\set c random(1, :orders)
SELECT quantity, price FROM items WHERE (order_id, line) IN ((:a, 1), (:b, 2), (:c, 3));

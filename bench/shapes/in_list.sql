-- Four rows by primary key.
\set a random(1, :orders)
\set b random(1, :orders)
\set c random(1, :orders)
\set d random(1, :orders)
SELECT id, total FROM orders WHERE id IN (:a, :b, :c, :d);

-- The largest five of a hundred rows, in no index's order.
\set order random(1, :orders - 99)
SELECT id, total FROM orders WHERE id BETWEEN :order AND :order + 99 ORDER BY total DESC, id LIMIT 5;

-- The distinct values of a hundred rows.
\set order random(1, :orders - 99)
SELECT DISTINCT state FROM orders WHERE id BETWEEN :order AND :order + 99;

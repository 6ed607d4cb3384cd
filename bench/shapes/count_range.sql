-- How many rows a range has: a hundred.
\set order random(1, :orders - 99)
SELECT count(*) FROM orders WHERE id BETWEEN :order AND :order + 99;

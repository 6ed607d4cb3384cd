-- Groups over a hundred neighbouring rows.
\set order random(1, :orders - 99)
SELECT state, count(*), sum(total) FROM orders WHERE id BETWEEN :order AND :order + 99 GROUP BY state;

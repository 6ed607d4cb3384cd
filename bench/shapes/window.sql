-- A running sum over ten rows.
\set customer random(1, :customers)
SELECT id, total, sum(total) OVER (ORDER BY id), rank() OVER (ORDER BY total DESC)
  FROM orders WHERE customer_id = :customer;

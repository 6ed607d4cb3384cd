-- Rows of two tables by key.
\set order random(1, :orders)
\set customer random(1, :customers)
SELECT id, total FROM orders WHERE id = :order UNION ALL
  SELECT id, balance FROM customers WHERE id = :customer;

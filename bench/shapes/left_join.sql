-- Ten rows by an index, each with a row of another table or none.
\set customer random(1, :customers)
SELECT o.id, o.total, p.name FROM orders o LEFT JOIN products p ON p.id = o.gift_id
  WHERE o.customer_id = :customer;

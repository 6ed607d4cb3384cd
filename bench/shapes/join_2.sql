-- Two tables by primary key.
\set order random(1, :orders)
SELECT o.total, c.name FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.id = :order;

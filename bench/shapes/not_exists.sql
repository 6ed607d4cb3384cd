-- Of ten rows those that have no matching row by key.
\set customer random(1, :customers)
SELECT o.id FROM orders o WHERE o.customer_id = :customer
  AND NOT EXISTS (SELECT 1 FROM items i WHERE i.order_id = o.id AND i.quantity > 8);

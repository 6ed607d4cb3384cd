-- Three tables by key: five rows, ordered.
\set order random(1, :orders)
SELECT i.line, i.quantity, p.name FROM orders o JOIN items i ON i.order_id = o.id
  JOIN products p ON p.id = i.product_id WHERE o.id = :order ORDER BY i.line;

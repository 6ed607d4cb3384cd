-- A query of WITH over ten rows, joined by key.
\set customer random(1, :customers)
WITH recent AS (SELECT id, total FROM orders WHERE customer_id = :customer ORDER BY id DESC LIMIT 3)
  SELECT r.id, r.total, i.price FROM recent r JOIN items i ON i.order_id = r.id AND i.line = 1;

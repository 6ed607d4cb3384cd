-- A row, with a sum over five rows of another table.
\set order random(1, :orders)
SELECT o.total, (SELECT sum(i.quantity) FROM items i WHERE i.order_id = o.id) AS quantity
  FROM orders o WHERE o.id = :order;

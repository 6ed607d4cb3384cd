-- A page of ten rows behind a key of two columns.
\set customer random(1, :customers)
\set order random(1, :orders)
SELECT customer_id, id, total FROM orders WHERE (customer_id, id) > (:customer, :order)
  ORDER BY customer_id, id LIMIT 10;

-- Two ranges of ten rows.
\set a random(1, :orders - 9)
\set b random(1, :orders - 9)
SELECT id, total FROM orders WHERE id BETWEEN :a AND :a + 9 OR id BETWEEN :b AND :b + 9;

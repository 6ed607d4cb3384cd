-- The tables of every script. NULLs, repeated values and the ends of each type are on purpose.
drop table if exists a, b, c, e, n, items, orders, customers, nums, tree, ts;

create table a (id int primary key, x int, y int, s text);
insert into a values
  (1, 1, 10, 'one'), (2, 2, 20, 'two'), (3, null, 30, 'three'), (4, 4, null, null),
  (5, 2, 50, ''), (6, 6, 20, 'Six'), (7, null, null, 'ä'), (8, 1, 10, 'one');

create table b (id int primary key, x int, y bigint, s varchar(10));
insert into b values
  (1, 1, 10, 'one'), (2, 3, 20, 'two'), (3, null, 30, 'b3'), (4, 4, null, null),
  (10, 2, 20, 'two'), (11, 2, 9223372036854775807, 'TWO'), (12, null, null, '');

create table c (x smallint, z numeric(10,2), t text);
create index c_x on c (x);
insert into c values
  (1, 1.50, 'p'), (1, 2.50, 'q'), (2, null, 'p'), (null, 4.00, 'r'), (4, -1.00, null), (9, 0, 'p');

-- Without rows.
create table e (id int primary key, x int, s text);

-- The ends of types.
create table n (id int primary key, i2 smallint, i4 int, i8 bigint, f4 real, f8 double precision,
  d numeric, b boolean, t text, y bytea);
insert into n values
  (1, 0, 0, 0, 0, 0, 0, true, '', ''),
  (2, -32768, -2147483648, -9223372036854775808, '-infinity', '-infinity', '-infinity', false, 'a', '\x00'),
  (3, 32767, 2147483647, 9223372036854775807, 'infinity', 'infinity', 'infinity', null, 'Z', '\xff'),
  (4, null, null, null, null, null, null, null, null, null),
  (5, 1, 1, 1, 'nan', 'nan', 'nan', true, 'ÄÖ', '\x616263'),
  (6, -1, -1, -1, -0.0, -0.0, -0.00, false, 'a ', '\x61'),
  (7, 2, 2, 2, 1.5, 0.1, 1.50, true, 'a', '\x6162');

create table customers (id int primary key, name text not null, city text, since date);
insert into customers values
  (1, 'Ada', 'Paris', '2020-01-15'), (2, 'Bob', 'Rome', '2021-03-01'), (3, 'Cid', 'Paris', null),
  (4, 'Dee', null, '2022-12-31'), (5, 'Eve', 'Oslo', '2020-02-29');

create table orders (id int primary key, customer_id int, placed date, total numeric(12,2), state text);
create index orders_customer on orders (customer_id);
insert into orders values
  (10, 1, '2023-01-01', 100.00, 'paid'), (11, 1, '2023-01-02', 50.50, 'open'),
  (12, 2, '2023-01-02', 75.25, 'paid'), (13, 2, '2023-02-01', null, 'open'),
  (14, 3, '2023-02-03', 0.00, 'void'), (15, null, '2023-02-03', 20.00, 'open'),
  (16, 1, '2023-03-01', 100.00, 'paid'), (17, 99, '2023-03-05', 5.00, null);

create table items (order_id int, line int, sku text, quantity int, price numeric(8,2),
  primary key (order_id, line));
insert into items values
  (10, 1, 'A', 2, 25.00), (10, 2, 'B', 1, 50.00), (11, 1, 'A', 2, 25.25), (12, 1, 'C', 3, 25.00),
  (12, 2, 'A', null, 0.25), (13, 1, 'B', 1, null), (16, 1, 'C', 4, 25.00), (16, 2, 'D', 0, 1.00);

-- Many rows: k repeats every 7, m every 13, some are NULL.
create table nums (id int primary key, k int, m int, t text);
create index nums_k on nums (k, id);
insert into nums values
  (1,1,1,'t1'), (2,2,2,'t2'), (3,3,3,'t3'), (4,4,4,'t4'), (5,5,5,'t0'), (6,6,6,'t1'),
  (7,0,7,'t2'), (8,1,8,'t3'), (9,2,9,'t4'), (10,null,10,'t0'), (11,4,11,'t1'), (12,5,12,'t2'),
  (13,6,0,'t3'), (14,0,1,'t4'), (15,1,2,'t0'), (16,2,3,'t1'), (17,3,4,'t2'), (18,4,5,'t3'),
  (19,5,6,'t4'), (20,null,7,'t0'), (21,0,8,'t1'), (22,1,9,'t2'), (23,2,10,'t3'), (24,3,11,'t4'),
  (25,4,12,'t0'), (26,5,0,'t1'), (27,6,1,'t2'), (28,0,2,'t3'), (29,1,3,'t4'), (30,null,4,'t0'),
  (31,3,5,'t1'), (32,4,6,'t2'), (33,5,7,'t3'), (34,6,8,'t4'), (35,0,9,'t0'), (36,1,10,'t1'),
  (37,2,11,'t2'), (38,3,12,'t3'), (39,4,0,'t4'), (40,null,1,'t0'), (41,6,2,'t1'), (42,0,3,'t2'),
  (43,1,4,'t3'), (44,2,5,'t4'), (45,3,6,'t0'), (46,4,7,'t1'), (47,5,8,'t2'), (48,6,9,'t3'),
  (49,0,10,'t4'), (50,null,11,'t0'), (51,2,12,'t1'), (52,3,0,'t2'), (53,4,1,'t3'), (54,5,2,'t4'),
  (55,6,3,'t0'), (56,0,4,'t1'), (57,1,5,'t2'), (58,2,6,'t3'), (59,3,7,'t4'), (60,null,8,'t0'),
  (61,5,9,'t1'), (62,6,10,'t2'), (63,0,11,'t3'), (64,1,12,'t4'), (65,2,0,'t0'), (66,3,1,'t1'),
  (67,4,2,'t2'), (68,5,3,'t3'), (69,6,4,'t4'), (70,null,5,'t0'), (71,1,6,'t1'), (72,2,7,'t2'),
  (73,3,8,'t3'), (74,4,9,'t4'), (75,5,10,'t0'), (76,6,11,'t1'), (77,0,12,'t2'), (78,1,0,'t3'),
  (79,2,1,'t4'), (80,null,2,'t0'), (81,4,3,'t1'), (82,5,4,'t2'), (83,6,5,'t3'), (84,0,6,'t4'),
  (85,1,7,'t0'), (86,2,8,'t1'), (87,3,9,'t2'), (88,4,10,'t3'), (89,5,11,'t4'), (90,null,12,'t0'),
  (91,0,0,'t1'), (92,1,1,'t2'), (93,2,2,'t3'), (94,3,3,'t4'), (95,4,4,'t0'), (96,5,5,'t1'),
  (97,6,6,'t2'), (98,0,7,'t3'), (99,1,8,'t4'), (100,null,9,'t0'), (101,3,10,'t1'),
  (102,4,11,'t2'), (103,5,12,'t3'), (104,6,0,'t4'), (105,0,1,'t0'), (106,1,2,'t1'),
  (107,2,3,'t2'), (108,3,4,'t3'), (109,4,5,'t4'), (110,null,6,'t0'), (111,6,7,'t1'),
  (112,0,8,'t2'), (113,1,9,'t3'), (114,2,10,'t4'), (115,3,11,'t0'), (116,4,12,'t1'),
  (117,5,0,'t2'), (118,6,1,'t3'), (119,0,2,'t4'), (120,null,3,'t0'), (121,2,4,'t1'),
  (122,3,5,'t2'), (123,4,6,'t3'), (124,5,7,'t4'), (125,6,8,'t0'), (126,0,9,'t1'),
  (127,1,10,'t2'), (128,2,11,'t3'), (129,3,12,'t4'), (130,null,0,'t0'), (131,5,1,'t1'),
  (132,6,2,'t2'), (133,0,3,'t3'), (134,1,4,'t4'), (135,2,5,'t0'), (136,3,6,'t1'), (137,4,7,'t2'),
  (138,5,8,'t3'), (139,6,9,'t4'), (140,null,10,'t0'), (141,1,11,'t1'), (142,2,12,'t2'),
  (143,3,0,'t3'), (144,4,1,'t4'), (145,5,2,'t0'), (146,6,3,'t1'), (147,0,4,'t2'), (148,1,5,'t3'),
  (149,2,6,'t4'), (150,null,7,'t0'), (151,4,8,'t1'), (152,5,9,'t2'), (153,6,10,'t3'),
  (154,0,11,'t4'), (155,1,12,'t0'), (156,2,0,'t1'), (157,3,1,'t2'), (158,4,2,'t3'),
  (159,5,3,'t4'), (160,null,4,'t0'), (161,0,5,'t1'), (162,1,6,'t2'), (163,2,7,'t3'),
  (164,3,8,'t4'), (165,4,9,'t0'), (166,5,10,'t1'), (167,6,11,'t2'), (168,0,12,'t3'),
  (169,1,0,'t4'), (170,null,1,'t0'), (171,3,2,'t1'), (172,4,3,'t2'), (173,5,4,'t3'),
  (174,6,5,'t4'), (175,0,6,'t0'), (176,1,7,'t1'), (177,2,8,'t2'), (178,3,9,'t3'),
  (179,4,10,'t4'), (180,null,11,'t0'), (181,6,12,'t1'), (182,0,0,'t2'), (183,1,1,'t3'),
  (184,2,2,'t4'), (185,3,3,'t0'), (186,4,4,'t1'), (187,5,5,'t2'), (188,6,6,'t3'), (189,0,7,'t4'),
  (190,null,8,'t0'), (191,2,9,'t1'), (192,3,10,'t2'), (193,4,11,'t3'), (194,5,12,'t4'),
  (195,6,0,'t0'), (196,0,1,'t1'), (197,1,2,'t2'), (198,2,3,'t3'), (199,3,4,'t4'),
  (200,null,5,'t0');

create table tree (id int primary key, parent int, name text);
create index tree_parent on tree (parent);
insert into tree values
  (1, null, 'root'), (2, 1, 'a'), (3, 1, 'b'), (4, 2, 'a1'), (5, 2, 'a2'), (6, 3, 'b1'), (7, 6, 'b11'),
  (8, null, 'other');

create table ts (id int primary key, d date, t timestamp, z timestamptz);
insert into ts values
  (1, '2024-02-29', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789+02'),
  (2, '1999-12-31', '1999-12-31 23:59:59', '1999-12-31 23:59:59+00'),
  (3, null, null, null), (4, 'infinity', 'infinity', 'infinity'),
  (5, '0044-03-15 BC', '-infinity', '-infinity');

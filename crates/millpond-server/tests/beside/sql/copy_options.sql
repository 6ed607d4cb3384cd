-- Statements by line
-- Options that the format or the direction does not have.
copy b to stdout (force_quote (s));
copy b to stdout (force_quote *);
copy b from stdin (format csv, force_quote (s));
copy b from stdin (format csv, force_quote *);
copy b from stdin (force_null (s));
copy b from stdin (force_not_null (s));
copy b to stdout (format csv, force_null (s));
copy b to stdout (format csv, force_not_null (s));
copy b to stdout (quote '"');
copy b to stdout (escape '"');
copy b to stdout (header match);
copy b to stdout (format csv, header 'MATCH');
copy b to stdout (freeze);
copy b to stdout (format binary, delimiter ',');
copy b to stdout (format binary, null ',');
-- Columns.
copy b to stdout (format csv, force_quote (nosuch));
copy b to stdout (format csv, force_quote (s, s));
copy b (id) to stdout (format csv, force_quote (s));
copy b from stdin (format csv, force_null (nosuch));
copy b from stdin (format csv, force_not_null (nosuch));
copy b (id) from stdin (format csv, force_not_null (s));
copy (select 1 as one) to stdout (format csv, force_quote (nosuch));
copy (select 1 as one) to stdout (format csv, force_quote (one, one));
copy b to stdout (format csv, force_quote s);
copy b to stdout (format csv, force_quote);
copy b (nosuch) to stdout;
-- Characters.
copy b to stdout (delimiter 'xx');
copy b to stdout (delimiter '');
copy b to stdout (format csv, delimiter 'é');
copy b to stdout (delimiter E'\n');
copy b to stdout (delimiter 'a');
copy b to stdout (delimiter 'A');
copy b to stdout (delimiter '\');
copy b to stdout (format csv, quote '');
copy b to stdout (format csv, quote 'xx');
copy b to stdout (format csv, quote ',');
copy b to stdout (format csv, escape 'xx');
copy b to stdout (format csv, null '"');
copy b to stdout (format csv, null 'axb', quote 'x');
copy b to stdout (format csv, null ',');
copy b to stdout (null 'a|b', delimiter '|');
copy b to stdout (null E'\r');
-- Values.
copy b to stdout (header 'x');
copy b to stdout (header 2);
copy b to stdout (header 0);
copy b to stdout (freeze 'x');
copy b to stdout (format nosuch);
copy b to stdout (nosuch);
copy b to stdout (delimiter ',', delimiter ';');
copy b to stdout (encoding 'Unicode');
copy b to stdout (encoding 'utf-8');

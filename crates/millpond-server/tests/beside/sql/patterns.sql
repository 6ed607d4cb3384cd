-- SIMILAR TO with brackets: a class within them does not end them, nor does a bracket at their start.
select '_' similar to '[[:digit:]_]', '%' similar to '[[:digit:]%]', '%x' similar to '[[:digit:]%]x';
select '.' similar to '[[:digit:]_]', '_' similar to '[]_]', '_' similar to '[^]_]', 'a' similar to '[^]_]';
select 'a_c' similar to '[^[:digit:]_]+', '5_' similar to '[[:digit:]]+[[:space:]_]', '|' similar to '[[:alpha:]|]';
select '^' similar to '[a^]', '^' similar to '[^^]', ']' similar to '[^^]', ']' similar to '[]^]', '(a' similar to '[(]a';
select substring('x_y' from '%#"[[:digit:]_]#"%' for '#'), 'a]' similar to '[a#]]+' escape '#';
select 'a%' similar to 'a[%]', 'ab' similar to 'a[%]', 'a(b)' similar to 'a[(]b[)]', 'x' similar to '[^]]';
-- A character of a pattern stands for itself in both cases.
select 'É' ~* 'é', 'é' ~* 'É', 'Σ' ~* 'σ', 'σ' ~* 'Σ', 'K' ~* 'k', 'é' ~* '[À-Ö]', 'É' ~* '[^à-ö]';
select 'S' ~* 'ſ', 'ſ' ~* 'S', 'I' ~* 'ı', 'ı' ~* 'I', 'i' ~* 'İ', 'İ' ~* 'i', 'ß' ~* 'ẞ', 'ẞ' ~* 'ß';
select 'ς' ~* 'Σ', 'Σ' ~* 'ς', 'µ' ~* 'μ', 'μ' ~* 'µ', 'ǅ' ~* 'ǆ', 'ǆ' ~* 'ǅ', 'ǅ' ~* 'ǅ', U&'\212A' ~* 'k', 'k' ~* U&'\212A';
select 'ſ' ~* '[a-z]', 's' ~* '[ſ-ƀ]', 'ẞ' ~* '[^a-cK-é]', 'K' ~* '[[:lower:]]', 'k' ~* '[^[:upper:]]';
-- Conditions on the end that are reached again.
select 'x' ~ '(?:$)*a', 'xa' ~ '($|b)*a', 'bar' ~ '(foo|$)*bar', 'x' ~ '(b*$)+a', 'b' ~ '(^|$)*b', ',' ~ '(,|$)+;';
select '' ~ '(?:$)+', 'ab' ~ '(b*$)+$', 'a' ~ '(?:(?:$)*)*a', 'x' ~ '(\s*$)*#', 'a#' ~ '(\s*$)*#', 'a' ~ '(\Z)*b{1,}';
-- What is before a place.
select 'aab' ~ '(?<=a)b', 'aab' ~ '(?<=ab)b', 'xaab' ~ '(?<=^xa{2})b', 'abab' ~ '(?<=(ab){2})$', 'aaab' ~ '(?<=a+)b';
select regexp_replace('abcabc', '(?<=a|bc)(b|a)', 'X', 'g'), regexp_replace('aXbXc', '(?<!a)X', '-', 'g');
select regexp_replace('one two', '(?<=\y\w{2})\w', '*', 'g'), regexp_replace('1234567', '(?<=^\d(\d{3})*)(?=(\d{3})+$)', ',', 'g');
select regexp_match('price: 12 EUR', '(?<=price: )\d+'), regexp_match('aéb', '(?<=é)b'), regexp_match('ab', '(?<=b)$'), regexp_match('', '(?<=a{0})');
-- Classes outside ASCII: a space at which no line may break separates no words.
select code, class, chr(code) ~ format('[[:%s:]]', class) from (values (133), (160), (5760), (8195), (8199), (8232), (8239), (12288), (453), (452), (454), (223), (7838), (960), (178), (189), (1635), (8544), (9312), (888), (57344), (127280), (120792)) c (code),
  (values ('space'), ('blank'), ('cntrl'), ('graph'), ('print'), ('punct'), ('upper'), ('lower'), ('alpha'), ('alnum'), ('digit'), ('xdigit'), ('word')) k (class) order by 1, 2;
select initcap('x²y ½a ٣b ①c ⅷd'), 'a²b' ~ '^\w+$', 'a٣b' ~ '^\w+$', chr(888) ~ '[[:graph:]]';
select chr(160) ~ '\s', chr(160) ~ '\S', regexp_replace('a' || chr(160) || ' b', '\s+', '_'), chr(12288) ~ '^\s$', chr(8232) ~ '\s';
select '.y' similar to '[\.^]%', '.y' similar to '[\.^]_', '^yz' similar to '[#.^]%' escape '#', substring('.bc' from '[#.^]#"b#"c' for '#');

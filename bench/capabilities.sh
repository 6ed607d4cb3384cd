#!/usr/bin/env bash
# Ordinary statements of each capability (capabilities/*.sql) on Millpond and PostgreSQL, in turn.
#
#   bench/capabilities.sh RUNS [FILE...]         # all files, or those whose names begin so
#   bench/capabilities.sh check [FILE...]        # only compares the answers
#
# Each statement stands on one line after its name. A table for each size: medians of the runs of
# each system in milliseconds as psql's \timing has them, with their extremes, and PostgreSQL's time
# divided by Millpond's. A summary follows: the geometric mean, and the statements that Millpond is
# slower at. Answers are compared before anything is timed. The statements of writes.sql run in a
# transaction that is rolled back, and the tables are vacuumed after each.
#
# ROWS="20000 1000000" are the sizes: of `events`, which has most rows. PG="pg15 pg18" compares with
# both (default: pg15). BUFFERS (1GB) are the shared_buffers. lib.sh describes the other variables.
set -euo pipefail
if [ "${1:?runs, or check}" = check ]; then runs=0; else runs=$1; fi
shift
wanted=("$@")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
read -ra others <<<"${PG:-pg15}"
read -ra sizes <<<"${ROWS:-20000 1000000}"
systems=("${others[@]}" mp)

# shellcheck disable=SC2046
session() { "$bin/psql" $(where "$1") -XqAt -v ON_ERROR_STOP=1 "${@:2}" postgres; }

# Makes the tables of a size unless they exist.
filled() { # system
  local system=$1
  if [ "$(query "$system" 'select rows from size' 2>/dev/null)" = "$rows" ]; then return; fi
  say "$(name_of "$system"): $rows rows"
  session "$system" >/dev/null 2>>"$errors" <<SQL || fail "$(name_of "$system"): no tables, see $errors"
set client_min_messages = warning;
drop table if exists cities, customers, events, copies, jobs, visits, size;
create table cities (id int primary key, name text not null);
create table customers (id int primary key, name text not null, city int not null, parent int, balance int not null);
create table events (id int primary key, customer int not null, at timestamptz not null, kind text not null,
  quantity int not null, amount numeric(10,2) not null, score float8 not null, note text not null, payload text not null);
create table copies (id int, customer int, at timestamptz, kind text, amount numeric(10,2));
create table jobs (id int primary key, event int not null, attempts int not null, done_at timestamptz, failed_at timestamptz);
create table visits (id int primary key, day date not null, started timestamp not null, status text not null, page varchar(60) not null, seconds real not null);
create table size (rows int primary key);
insert into cities select i, 'City ' || i from generate_series(0, 99) i;
insert into customers select i, 'Customer ' || i, i * 7 % 100, nullif(i / 3, 0), i * 7919 % 100000 from generate_series(1, $rows / 20) i;
insert into events select i, i * 7919::bigint % ($rows / 20) + 1,
  timestamptz '2024-01-01 00:00+00' + make_interval(secs => (i * 104729::bigint % 63072000)::int),
  (array['view', 'view', 'buy', 'cart', 'refund'])[i % 5 + 1], i * 31 % 10, (i * 7919::bigint % 100003) / 100.0,
  (i * 104729::bigint % 100003) / 97.0, 'code ' || i % 500 || ' in module ' || i % 13 || ' of host ' || i % 71,
  '{"color": "' || (array['red', 'green', 'blue'])[i % 3 + 1] || '", "size": ' || i % 40 || ', "tags": [' || i % 7 || ', ' || i % 100 || ']}'
  from generate_series(1, $rows) i;
insert into jobs select i, i * 7 % $rows + 1, i % 4,
  case when i % 500 > 0 then timestamptz '2025-06-01 00:00+00' + make_interval(secs => i) end,
  case when i % 300 = 0 then timestamptz '2025-06-01 00:00+00' + make_interval(secs => i) end
  from generate_series(1, $rows / 4) i;
insert into visits select i, date '2025-01-01' + i % 365,
  timestamp '2025-01-01 00:00' + make_interval(secs => (i * 104729::bigint % 31536000)::int),
  (array['done', 'done', 'done', 'open', 'new', 'failed'])[i % 6 + 1], '/item/' || i * 7919::bigint % 9973, i * 31 % 6007 / 10.0
  from generate_series(1, $rows / 4) i;
create index events_customer_at on events (customer, at);
create index events_at on events (at);
create index jobs_event_failed_at on jobs (event, failed_at);
create index jobs_done_at on jobs (done_at);
create index jobs_failed_at on jobs (failed_at);
create index visits_day on visits (day);
create index visits_started on visits (started);
create index visits_status_page on visits (status, page);
create index visits_page on visits (page);
create index visits_seconds on visits (seconds);
insert into size values ($rows);
vacuum analyze;
checkpoint;
SQL
}

# The names of a file's statements, and the statement of a name.
names_in() { sed -n 's/^-- //p' "$1"; }
statement() { grep -A1 -x -- "-- $2" "$1" | tail -1; }

# The settings that statements read, as an application sets them when it connects.
prepare="set app.customer = '17';"
# What psql runs for a statement of a file. Writing leaves the tables as they were.
script() { # file statement
  case $1 in
    */writes.sql) echo "$prepare begin; \\timing on
$2;
\\timing off
rollback;" ;;
    *) echo "$prepare \\timing on
$2;
$2;" ;;
  esac
}

compare_answers() { # file name
  local text system answer first=
  text=$(statement "$1" "$2")
  for system in "${systems[@]}"; do
    answer=$(echo "$prepare begin; $text; select sum(id), count(*) from events; rollback;" | { session "$system" 2>&1 || true; } | md5sum)
    [ -n "$first" ] || first=$answer
    [ "$first" = "$answer" ] || { say "$2: answers differ"; different=$((different + 1)); }
  done
}

measure() { # file name: a line of the table
  local text system
  text=$(statement "$1" "$2")
  forget
  for _ in $(seq "$runs"); do for system in "${systems[@]}"; do
    # The first run of a session plans, and warms its caches: where there are two, the second counts.
    script "$1" "$text" | session "$system" -o /dev/null 2>>"$errors" |
      sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | tail -1 >>"$work/$system.t"
    [[ $1 != */writes.sql ]] || session "$system" -c 'vacuum events, customers, copies'
  done; done
  for system in "${others[@]}"; do
    echo "$(mid <"$work/$system.t") $(mid <"$work/mp.t") $system $rows $2" >>"$cells"
  done
  echo "| $2 |$(spreads)$(ratios less t "${others[@]}")"
}
spreads() {
  local system
  for system in "${systems[@]}"; do
    sort -n "$work/$system.t" | awk '{v[NR]=$1} END {printf " %.2f (%.2f to %.2f) |", v[int((NR+1)/2)], v[1], v[NR]}'
  done
}

cells=$work/cells
: >"$cells"
different=0
files=()
for file in "$top"/bench/capabilities/*.sql; do
  base=$(basename "$file" .sql)
  if [ ${#wanted[@]} = 0 ]; then files+=("$file"); fi
  for prefix in "${wanted[@]}"; do [[ $base != "$prefix"* ]] || files+=("$file"); done
done
for system in "${systems[@]}"; do start "$system" "${BUFFERS:-1GB}"; done
for rows in "${sizes[@]}"; do
  for system in "${systems[@]}"; do filled "$system"; done
  for file in "${files[@]}"; do for name in $(names_in "$file"); do compare_answers "$file" "$name"; done; done
  say "$rows rows: answers compared, $different differ"
  [ "$runs" -gt 0 ] || continue
  printf '\n%s rows:\n\n' "$rows"
  heading "| statement |$(names "NAME ms" "${systems[@]}")$(names "NAME / Millpond" "${others[@]}")"
  for file in "${files[@]}"; do for name in $(names_in "$file"); do measure "$file" "$name"; done; done
done
[ "$runs" -gt 0 ] || exit $((different > 0))
for system in "${others[@]}"; do for rows in "${sizes[@]}"; do
  awk -v of="$system" -v rows="$rows" -v name="$(name_of "$system")" '
    $3 == of && $4 == rows {sum += log($1 / $2); n++; if ($1 < $2) slower = slower sprintf(", %s %.2f", $5, $1 / $2)}
    END {printf "\n%d rows beside %s: geometric mean %.2f; slower: %s\n", rows, name, exp(sum / n), (slower ? substr(slower, 3) : "none")}' "$cells"
done; done
exit $((different > 0))

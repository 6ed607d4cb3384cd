#!/usr/bin/env bash
# The queries of applications (shapes/*.sql) on Millpond and PostgreSQL, in turn.
#
#   bench/shapes.sh SECONDS RUNS [SHAPE...]      # all shapes, or those whose names begin so
#   bench/shapes.sh check                        # only compares the answers
#
# A table for each shape: medians of the runs with their extremes, ratios, 99th percentiles of the
# latency, and processor time of the server for each transaction. A summary follows: for each number
# of clients the geometric mean of the ratios, and each cell that misses a goal. Answers are
# compared before anything is timed.
#
# ROWS="20000 5000000" are the sizes: of `items`, which has most rows. PG="pg15 pg18" compares with
# both (default: pg15). CLIENTS (1 2 27 107), MODES (simple prepared) and BUFFERS (1GB) are the
# series. LATENCY is the fraction of logged transactions (0.2). lib.sh describes the other
# variables.
set -euo pipefail
if [ "${1:?seconds, or check}" = check ]; then seconds=0 runs=0; shift; else seconds=$1 runs=${2:?runs}; shift 2; fi
wanted=("$@")
export LATENCY=${LATENCY:-0.2} PROCESSOR=1
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
read -ra others <<<"${PG:-pg15}"
read -ra sizes <<<"${ROWS:-20000 5000000}"
read -ra modes <<<"${MODES:-simple prepared}"
read -ra clients <<<"${CLIENTS:-1 2 27 107}"
systems=("${others[@]}" mp)
cells=$work/cells.csv
: >"$cells"

# shellcheck disable=SC2046
copy_into() { "$bin/psql" $(where "$1") -Xq -v ON_ERROR_STOP=1 -c "copy $2 from stdin" postgres >/dev/null; }
definitions='
drop table if exists customers, orders, items, products, sizes;
create table customers (id int primary key, name text not null, city int not null, balance int not null);
create table products (id int primary key, name text not null, price int not null);
create table orders (id int primary key, customer_id int not null, gift_id int, state int not null, total int not null);
create table items (order_id int, line int, product_id int not null, quantity int not null, price int not null,
  primary key (order_id, line));
create table sizes (rows int primary key)'

# Makes the tables of a size unless they exist. Columns that no key is made of follow from the row's
# number, so that all systems have the same rows.
filled() { # system
  local system=$1
  if [ "$(query "$system" 'select rows from sizes' 2>/dev/null)" = "$rows" ]; then return; fi
  say "$(name_of "$system"): $rows rows"
  query "$system" "$definitions" >/dev/null 2>>"$errors" || fail "$(name_of "$system"): no tables, see $errors"
  numbers "$customers" '{print $1 "\tcustomer " $1 "\t" ($1 * 7) % 100 "\t" ($1 * 7919) % 100000}' | copy_into "$system" customers
  numbers "$products" '{print $1 "\tproduct " $1 "\t" ($1 * 31) % 1000}' | copy_into "$system" products
  numbers "$orders" '{g = ($1 * 13) % (2 * n); print $1 "\t" ($1 * 7919) % c + 1 "\t" (g < n ? g + 1 : "\\N") "\t" $1 % 5 "\t" ($1 * 104729) % 100003}' |
    copy_into "$system" orders
  numbers "$orders" '{for (l = 1; l <= 5; l++) print $1 "\t" l "\t" ($1 * 17 + l * 101) % n + 1 "\t" ($1 + l * 3) % 10 "\t" ($1 * l) % 997}' |
    copy_into "$system" items
  query "$system" 'create index orders_customer on orders (customer_id, id)' >/dev/null
  query "$system" "insert into sizes values ($rows)" >/dev/null
  query "$system" 'vacuum analyze' >/dev/null
  query "$system" checkpoint >/dev/null
}
numbers() { seq "$1" | awk -v n="$products" -v c="$customers" "$2"; }

# The answer of a shape for one choice of its variables.
answer() { # system shape choice
  local system=$1 shape=$2 k=$3
  # shellcheck disable=SC2046
  grep -v '^\\set' "$shape" | "$bin/psql" $(where "$system") -XqAt -v ON_ERROR_STOP=1 -v customer=$((k * 37 % customers + 1)) \
    -v order=$((k * 7331 % (orders - 99) + 1)) -v a=$((k * 11 % (orders - 9) + 1)) -v b=$((k * 977 % (orders - 9) + 1)) \
    -v c=$((k * 5 + 3)) -v d=$((k * 5 + 4)) postgres 2>&1 | sort
}
checked() { # shape
  local shape=$1 system k expected found
  for k in 1 2 3 40 500; do
    expected=$(answer "${others[0]}" "$shape" $k)
    for system in "${systems[@]:1}"; do
      found=$(answer "$system" "$shape" $k)
      if [ "$found" != "$expected" ]; then
        say "$(basename "$shape" .sql): $(name_of "$system") answers differently: ${found:0:300}"
        echo "${rows},$(basename "$shape" .sql)" >>"$work/wrong"
        return 1
      fi
    done
  done
}

measure() { # shape
  local shape=$1 mode c system reached p99 used name
  name=$(basename "$shape" .sql)
  printf '\n%s: %s %s rows\n\n' "$name" "$(head -1 "$shape" | cut -c4-)" "$rows"
  heading "| mode | clients |$(names "NAME tps" "${systems[@]}")$(names "Millpond / NAME" "${others[@]}")$(names "NAME p99 µs" "${systems[@]}")$(names "NAME processor µs" "${systems[@]}")"
  for mode in "${modes[@]}"; do for c in "${clients[@]}"; do
    forget
    for _ in $(seq "$runs"); do for system in "${systems[@]}"; do
      read -r reached p99 used < <(tps "$system" "$c" "$mode" "$seconds" -f "$shape" -D orders="$orders" -D customers="$customers")
      echo "$reached" >>"$work/$system.t"; echo "$p99" >>"$work/$system.l"; echo "$used" >>"$work/$system.p"
    done; done
    echo "| $mode | $c |$(medians t "${systems[@]}")$(ratios more t "${others[@]}")$(medians l "${systems[@]}")$(medians p "${systems[@]}")"
    for system in "${others[@]}"; do
      echo "$system,$rows,$name,$mode,$c,$(ratio t "$system"),$(ratio l "$system"),$(ratio p "$system")" >>"$cells"
    done
  done; done
}
ratio() { echo "$(mid <"$work/mp.$1") $(mid <"$work/$2.$1")" | awk '{printf "%.3f", ($2 > 0 ? $1 / $2 : 0)}'; }

summary() {
  printf '\nMillpond beside each system, over all shapes and modes:\n\n'
  heading "| beside | rows | clients | cells | geometric mean | worst cell | longer p99 | more than half the processor time |"
  awk -F, '
    { key = $1 "," $2 "," $5; if (!(key in n)) order[++keys] = key
      n[key]++; logs[key] += log($6 > 0 ? $6 : 0.001)
      if (!(key in worst) || $6 < worst[key]) { worst[key] = $6; where[key] = $3 " " $4 }
      late[key] += $7 > 1; costly[key] += $8 > 0.5 }
    END { for (i = 1; i <= keys; i++) { k = order[i]; split(k, part, ",")
      printf "| %s | %s | %s | %d | %.2f | %.2f (%s) | %d | %d |\n", part[1], part[2], part[3], n[k], exp(logs[k] / n[k]), worst[k], where[k], late[k], costly[k] } }' "$cells"
}

for system in "${systems[@]}"; do start "$system" "${BUFFERS:-1GB}"; done
rm -f "$work/wrong"
for rows in "${sizes[@]}"; do
  orders=$((rows / 5)) customers=$((rows / 50)) products=$((rows / 20))
  for system in "${systems[@]}"; do filled "$system"; done
  for shape in "$top"/bench/shapes/*.sql; do
    name=$(basename "$shape" .sql)
    if [ ${#wanted[@]} -gt 0 ]; then
      match=; for prefix in "${wanted[@]}"; do case $name in "$prefix"*) match=1 ;; esac; done
      [ -n "$match" ] || continue
    fi
    if checked "$shape" && [ "$runs" -gt 0 ]; then measure "$shape"; fi
  done
done
[ "$runs" = 0 ] || summary
if [ -s "$work/wrong" ]; then
  # Without this the directory with the reasons would go.
  say "answers differ:"; cat "$work/wrong" >&2
  exit 1
fi
say "all answers agree"

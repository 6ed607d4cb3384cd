#!/usr/bin/env bash
# Durable commits of one row beside PostgreSQL, alternating, medians: how many, how slow, and how many fsyncs they take.
#
#   bench/commits.sh SECONDS RUNS
#
# Every client changes a row of its own (KINDS=update) or inserts rows (insert), a transaction each, synchronous_commit
# on. PG=pg18 takes PostgreSQL 18 instead of 15; CLIENTS, KINDS and MODE override 1 2 8 32 128, "update insert" and
# prepared; SET="commit_delay=100 commit_siblings=5" goes to both servers. The ratio is that of the medians, and
# in brackets the least and the largest of the runs' own ratios. lib.sh has the rest.
set -euo pipefail
seconds=${1:?seconds} runs=${2:?runs}
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
pg=${PG:-pg15}
pg_name=$(name_of "$pg")
mode=${MODE:-prepared}

declare -A script=(
  [update]='\set n random(1, 1000000)
update commits set n = :n where id = :client_id;'
  [insert]='\set n random(1, 1000000)
insert into inserted (client, n) values (:client_id, :n);'
)

# fsyncs of the log so far.
fsyncs() {
  case $1 in
    pg15) query pg15 'select wal_sync from pg_stat_wal' ;;
    # A server without the query engine does not tell.
    *) query "$1" "select coalesce(sum(fsyncs), 0)::int8 from pg_stat_io where object = 'wal'" 2>/dev/null || echo 0 ;;
  esac
}

# Prints commits a second, the 99th percentile in microseconds, and fsyncs per commit.
run() { # system kind clients
  local system=$1 kind=$2 clients=$3 threads=2 before after out="$work/pgbench.out" p99
  [ "$clients" = 1 ] && threads=1
  rm -rf "$work/latency"; mkdir "$work/latency"
  before=$(fsyncs "$system")
  # shellcheck disable=SC2046
  timeout $((seconds + 120)) "$bin/pgbench" $(where "$system") -n -M "$mode" -c "$clients" -j $threads -T "$seconds" \
    -l --log-prefix="$work/latency/log" -f "$work/$kind.sql" postgres >"$out" 2>>"$errors"
  # PostgreSQL counts when a session ends.
  sleep 1
  after=$(fsyncs "$system")
  p99=$(cat "$work"/latency/log.* | awk '{print $3}' | percentile 99)
  awk -v p99="$p99" -v syncs=$((after - before)) '/^tps/ {tps=$3} /actually processed/ {done=$6}
    END {printf "%.1f %s %.4f\n", tps, p99, done ? syncs/done : 0}' "$out"
}
# The median of a column of a file, divided.
column() { awk -v c="$2" '{print $c}' "$1" | mid | awk -v by="${3:-1}" -v digits="${4:-2}" '{printf "%.*f", digits, $1/by}'; }
spread() { paste "$work/mp.t" "$work/$pg.t" | awk '{r=$1/$4; if (NR==1||r<a) a=r; if (NR==1||r>b) b=r} END {printf "%.2f to %.2f", a, b}'; }

for side in $pg mp; do
  # shellcheck disable=SC2086
  start "$side" 128MB ${SET:-}
  query "$side" 'drop table if exists commits, inserted' >/dev/null
  query "$side" 'create table commits (id int primary key, n int, filler char(500))' >/dev/null
  query "$side" 'create table inserted (client int, n int)' >/dev/null
  query "$side" "insert into commits values $(seq 0 399 | sed "s/.*/(&, 0, '')/" | paste -sd,)" >/dev/null
done
for kind in "${!script[@]}"; do echo "${script[$kind]}" >"$work/$kind.sql"; done
echo "| commit of | clients | $pg_name commits/s | Millpond commits/s | ratio | $pg_name p99 ms | Millpond p99 ms | $pg_name fsyncs/commit | Millpond fsyncs/commit |"
echo "|---|---|---|---|---|---|---|---|---|"
for kind in ${KINDS:-update insert}; do for clients in ${CLIENTS:-1 2 8 32 128}; do
  rm -f "$work"/{pg15,pg18,mp}.t
  for _ in $(seq "$runs"); do for side in $pg mp; do run "$side" "$kind" "$clients" >>"$work/$side.t"; done; done
  ratio=$(echo "$(column "$work/mp.t" 1) $(column "$work/$pg.t" 1)" | awk '{printf "%.2f", $1/$2}')
  echo "| $kind | $clients | $(column "$work/$pg.t" 1 1 0) | $(column "$work/mp.t" 1 1 0) | $ratio ($(spread)) | $(column "$work/$pg.t" 2 1000) | $(column "$work/mp.t" 2 1000) | $(column "$work/$pg.t" 3) | $(column "$work/mp.t" 3) |"
done; done

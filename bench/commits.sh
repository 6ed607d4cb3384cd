#!/usr/bin/env bash
# Durable commits of one row on Millpond and PostgreSQL: how many, how slow, and how many fsyncs
# they take. The systems alternate; figures are medians.
#
#     bench/commits.sh SECONDS RUNS
#
# Every client updates its own row (KINDS=update) or inserts rows (insert), one transaction each,
# with synchronous_commit on. PG="pg15 pg18" compares with both (default: pg15). CLIENTS, KINDS and
# MODE override 1 2 8 32 128, "update insert" and prepared. SET="commit_delay=100 commit_siblings=5"
# goes to all servers. The ratio is that of the medians. In brackets are the smallest and the
# largest ratio of single runs. lib.sh describes the other variables.
set -euo pipefail
seconds=${1:?seconds} runs=${2:?runs}
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
read -ra others <<<"${PG:-pg15}"
systems=("${others[@]}" mp) mode=${MODE:-prepared}

declare -A script=(
  [update]='\set n random(1, 1000000)
update commits set n = :n where id = :client_id;'
  [insert]='\set n random(1, 1000000)
insert into inserted (client, n) values (:client_id, :n);'
)

# The fsyncs of the log so far.
fsyncs() {
  case $1 in
    pg15) query pg15 'select wal_sync from pg_stat_wal' ;;
    # A server without the query engine has no such view.
    *) query "$1" "select coalesce(sum(fsyncs), 0)::int8 from pg_stat_io where object = 'wal'" 2>/dev/null || echo 0 ;;
  esac
}

# One run. Commits/s go to .t, the 99th percentile in ms to .l, fsyncs per commit to .f.
run() { # system kind clients
  local system=$1 kind=$2 clients=$3 threads=2 before after out="$work/pgbench.out"
  [ "$clients" = 1 ] && threads=1
  rm -rf "$work/latency"; mkdir "$work/latency"
  before=$(fsyncs "$system")
  # shellcheck disable=SC2046
  timeout $((seconds + 120)) "$bin/pgbench" $(where "$system") -n -M "$mode" -c "$clients" -j $threads -T "$seconds" \
    -l --log-prefix="$work/latency/log" -f "$work/$kind.sql" postgres >"$out" 2>>"$errors"
  settle "$system"
  after=$(fsyncs "$system")
  awk '/^tps/ {print $3}' "$out" >>"$work/$system.t"
  cat "$work"/latency/log.* | awk '{print $3 / 1000}' | percentile 99 2 >>"$work/$system.l"
  awk -v syncs=$((after - before)) '/actually processed/ {printf "%.4f\n", $6 ? syncs / $6 : 0}' "$out" >>"$work/$system.f"
}
cells() { local kind=$1 decimals=$2 system; shift 2; for system; do printf " %.${decimals}f |" "$(mid <"$work/$system.$kind")"; done; }
ratios_with_range() {
  local system
  for system; do
    echo "$(ratios more t "$system")" "$(paste "$work/mp.t" "$work/$system.t" | awk '{r=$1/$2; if (NR==1||r<a) a=r; if (NR==1||r>b) b=r} END {printf "%.2f to %.2f", a, b}')" |
      sed 's/ | \(.*\)/ (\1) |/'
  done | tr -d '\n'
}

for system in "${systems[@]}"; do
  # shellcheck disable=SC2086
  start "$system" 128MB ${SET:-}
  query "$system" 'drop table if exists commits, inserted' >/dev/null
  query "$system" 'create table commits (id int primary key, n int, filler char(500))' >/dev/null
  query "$system" 'create table inserted (client int, n int)' >/dev/null
  query "$system" "insert into commits values $(seq 0 399 | sed "s/.*/(&, 0, '')/" | paste -sd,)" >/dev/null
done
for kind in "${!script[@]}"; do echo "${script[$kind]}" >"$work/$kind.sql"; done
heading "| commit of | clients |$(names "NAME commits/s" "${systems[@]}")$(names "Millpond / NAME" "${others[@]}")$(names "NAME p99 ms" "${systems[@]}")$(names "NAME fsyncs/commit" "${systems[@]}")"
for kind in ${KINDS:-update insert}; do for clients in ${CLIENTS:-1 2 8 32 128}; do
  forget
  for _ in $(seq "$runs"); do for system in "${systems[@]}"; do run "$system" "$kind" "$clients"; done; done
  echo "| $kind | $clients |$(cells t 0 "${systems[@]}")$(ratios_with_range "${others[@]}")$(cells l 2 "${systems[@]}")$(cells f 2 "${systems[@]}")"
done; done

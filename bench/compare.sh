#!/usr/bin/env bash
# Millpond beside PostgreSQL 15 under pgbench, alternating, medians: the tables of docs/benchmarks.md.
#
#   bench/compare.sh select  SCALE SECONDS RUNS     # -S at several client counts, simple and prepared
#   bench/compare.sh tpcb    SCALE SECONDS RUNS     # the default script, synchronous_commit on
#   bench/compare.sh init    SCALE 0 RUNS           # pgbench -i
#   bench/compare.sh queries SCALE 0 RUNS           # count(*), sum, group by over the accounts
#   bench/compare.sh limit   SCALE SECONDS RUNS     # -S against a server that does nothing (NULLPG=program)
#
# Both servers get shared_buffers=128MB. CLIENTS and MODES override the series.
# Needs PostgreSQL 15 in /usr/lib/postgresql/15/bin and, when run as root, the user postgres.
set -euo pipefail
what=${1:?what} scale=${2:?scale} seconds=${3:?seconds} runs=${4:?runs}
top=$(cd "$(dirname "$0")/.." && pwd)
bin=/usr/lib/postgresql/15/bin
millpond=${MILLPOND:-$top/target/release/millpond}
work=${WORK:-$(mktemp -d /tmp/millpond-compare.XXXXXX)}
mkdir -p "$work/pg" "$work/mp"
chmod 755 "$work"
as_postgres() { if [ "$(id -u)" = 0 ]; then su postgres -c "$*"; else bash -c "$*"; fi; }
[ "$(id -u)" = 0 ] && chown -R postgres "$work/pg"

start_pg() {
  [ -d "$work/pg/data" ] || as_postgres "$bin/initdb -D $work/pg/data -A trust -U postgres >/dev/null"
  as_postgres "$bin/pg_ctl -D $work/pg/data -l $work/pg/log -w -o \"-c listen_addresses='' -c unix_socket_directories=$work/pg -c port=5415 -c max_connections=450 -c shared_buffers=128MB -c autovacuum=on\" start" >/dev/null
}
start_mp() {
  "$millpond" serve --data "$work/mp/data" --listen 127.0.0.1:5416 --socket-dir "$work/mp" \
    --set shared_buffers=128MB --set max_connections=450 >"$work/mp/log" 2>&1 &
  mp_pid=$!
  for _ in $(seq 100); do "$bin/psql" -h "$work/mp" -p 5416 -U postgres -qAtc 'select 1' postgres >/dev/null 2>&1 && return; sleep 0.1; done
  echo "millpond did not start" >&2; cat "$work/mp/log" >&2; exit 1
}
stop_all() {
  as_postgres "$bin/pg_ctl -D $work/pg/data -m fast stop" >/dev/null 2>&1 || true
  [ -n "${mp_pid:-}" ] && kill "$mp_pid" 2>/dev/null && wait "$mp_pid" 2>/dev/null || true
}
trap stop_all EXIT

where() { case $1 in pg) echo "-h $work/pg -p 5415";; mp) echo "-h $work/mp -p 5416";; esac; }
median() { sort -n | awk '{v[NR]=$1} END {printf "%.0f (%.0f to %.0f)", v[int((NR+1)/2)], v[1], v[NR]}'; }
mid() { sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }
tps() { # side clients mode script
  local c=$2 j=2; [ "$c" = 1 ] && j=1
  # shellcheck disable=SC2046
  "$bin/pgbench" $(where "$1") -U postgres -n -M "$3" -b "$4" -c "$c" -j "$j" -T "$seconds" postgres 2>>"$work/errors" |
    awk '/^tps/ {print $3}'
}
series() { # script modes clients...
  local script=$1 modes=$2; shift 2
  echo "| mode | clients | PostgreSQL 15 tps | Millpond tps | ratio of medians |"
  echo "|---|---|---|---|---|"
  for mode in $modes; do for c in "$@"; do
    : >"$work/pg.t"; : >"$work/mp.t"
    for _ in $(seq "$runs"); do for side in pg mp; do tps $side "$c" "$mode" "$script" >>"$work/$side.t"; done; done
    echo "| $mode | $c | $(median <"$work/pg.t") | $(median <"$work/mp.t") | $(echo "$(mid <"$work/mp.t") $(mid <"$work/pg.t")" | awk '{printf "%.2f", $1/$2}') |"
  done; done
}
seconds_of() { local t0 t1; t0=$(date +%s.%N); "$@" >/dev/null 2>>"$work/errors"; t1=$(date +%s.%N); echo "$t0 $t1" | awk '{print ($2-$1)*1000}'; }
# shellcheck disable=SC2046
init() { "$bin/pgbench" $(where "$1") -U postgres -i -q -s "$scale" postgres; }
# shellcheck disable=SC2046
query() { "$bin/psql" $(where "$1") -U postgres -qAtc "$2" postgres; }
loaded() { query "$1" "select 1 from pgbench_branches where bid = $scale" 2>/dev/null | grep -q 1 || init "$1" >/dev/null 2>&1; }

start_pg; start_mp
case $what in
  init)
    echo "| | PostgreSQL 15 ms | Millpond ms |"; echo "|---|---|---|"; : >"$work/pg.t"; : >"$work/mp.t"
    for _ in $(seq "$runs"); do for side in pg mp; do seconds_of init $side >>"$work/$side.t"; done; done
    echo "| pgbench -i -s $scale | $(median <"$work/pg.t") | $(median <"$work/mp.t") |" ;;
  select) loaded pg; loaded mp; query pg checkpoint; query mp checkpoint; series select-only "${MODES:-simple prepared}" ${CLIENTS:-1 2 27 107 397} ;;
  tpcb) loaded pg; loaded mp; series tpcb-like "${MODES:-simple prepared}" ${CLIENTS:-1 16 64} ;;
  queries)
    loaded pg; loaded mp; query pg 'vacuum analyze'; query mp 'vacuum analyze'
    echo "| query | PostgreSQL 15 ms | Millpond ms | ratio of medians |"; echo "|---|---|---|---|"
    for q in 'select count(*) from pgbench_accounts' 'select sum(abalance) from pgbench_accounts' 'select bid, count(*) from pgbench_accounts group by bid'; do
      : >"$work/pg.t"; : >"$work/mp.t"
      for _ in $(seq "$runs"); do for side in pg mp; do seconds_of query $side "$q" >>"$work/$side.t"; done; done
      echo "| $q | $(median <"$work/pg.t") | $(median <"$work/mp.t") | $(echo "$(mid <"$work/pg.t") $(mid <"$work/mp.t")" | awk '{printf "%.2f", $1/$2}') |"
    done ;;
  limit)
    "${NULLPG:?a server that does nothing}" "$work/mp/.s.PGSQL.5499" epoll 2 & null=$!
    printf '\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n' >"$work/select.sql"
    echo "| mode | clients | nothing tps |"; echo "|---|---|---|"
    for mode in ${MODES:-simple prepared}; do for c in ${CLIENTS:-1 2 27 107 397}; do
      j=2; [ "$c" = 1 ] && j=1; : >"$work/n.t"
      for _ in $(seq "$runs"); do "$bin/pgbench" -h "$work/mp" -p 5499 -U x -n -s "$scale" -f "$work/select.sql" -M "$mode" -c "$c" -j $j -T "$seconds" x 2>>"$work/errors" | awk '/^tps/ {print $3}' >>"$work/n.t"; done
      echo "| $mode | $c | $(median <"$work/n.t") |"
    done; done; kill $null ;;
  *) echo "unknown: $what" >&2; exit 2 ;;
esac
if grep -qE 'ERROR|FATAL|aborted' "$work/errors" 2>/dev/null; then echo "errors, see $work/errors" >&2; grep -E 'ERROR|FATAL|aborted' "$work/errors" | sort | uniq -c | head -5 >&2; fi

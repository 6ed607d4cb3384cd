#!/usr/bin/env bash
# Millpond beside PostgreSQL 15 under pgbench, alternating, medians: the tables of docs/benchmarks.md.
#
#   bench/compare.sh select  SCALE SECONDS RUNS     # -S at several client counts, simple and prepared
#   bench/compare.sh tpcb    SCALE SECONDS RUNS     # the default script
#   bench/compare.sh update  SCALE SECONDS RUNS     # -N: the default script without the rows that everybody changes
#   bench/compare.sh hot     SCALE SECONDS RUNS     # everybody changes one row
#   bench/compare.sh init    SCALE 0 RUNS           # pgbench -i
#   bench/compare.sh queries SCALE 0 RUNS           # count(*), sum, group by over the accounts
#   bench/compare.sh limit   SCALE SECONDS RUNS     # -S against a server that does nothing (NULLPG=program)
#
# Both servers get shared_buffers=128MB, or what BUFFERS says. CLIENTS and MODES override the series; SYNC="on off" measures what
# writes with each of these as synchronous_commit (on); PG=pg18 takes PostgreSQL 18 instead of 15; LATENCY=0.1 logs a tenth of the
# transactions and adds columns of 99th percentiles; lib.sh has the rest.
set -euo pipefail
what=${1:?what} scale=${2:?scale} seconds=${3:?seconds} runs=${4:?runs}
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
pg=${PG:-pg15}
pg_name=$(name_of "$pg")
sides="$pg mp" buffers=${BUFFERS:-128MB}

# What pgbench is told to run: `-b NAME` or `-f FILE`.
script=()
series() { # modes clients...
  local modes=$1 side mode c reached p99; shift
  echo "| mode | clients | $pg_name tps | Millpond tps | ratio of medians |${LATENCY:+ $pg_name p99 µs | Millpond p99 µs |}"
  echo "|---|---|---|---|---|${LATENCY:+---|---|}"
  for mode in $modes; do for c in "$@"; do
    rm -f "$work"/{pg15,pg18,mp}.{t,l}
    for _ in $(seq "$runs"); do for side in $sides; do
      read -r reached p99 < <(tps "$side" "$c" "$mode" "$seconds" "${script[@]}")
      echo "$reached" >>"$work/$side.t"; echo "$p99" >>"$work/$side.l"
    done; done
    echo "| $mode | $c | $(median <"$work/$pg.t") | $(median <"$work/mp.t") | $(ratio "$work/mp.t" "$work/$pg.t") |${LATENCY:+ $(median <"$work/$pg.l") | $(median <"$work/mp.l") |}"
  done; done
}
# Series of what writes, for each synchronous_commit.
writing() { # modes clients...
  local sync side; local syncs=(${SYNC:-on})
  for sync in "${syncs[@]}"; do
    for side in $sides; do start "$side" "$buffers" "synchronous_commit=$sync"; loaded "$side" "$scale"; done
    [ ${#syncs[@]} = 1 ] || printf '\nsynchronous_commit = %s:\n\n' "$sync"
    series "$@"
    stop_all
  done
}
took_ms() { local t0; t0=$(now_ms); "$@" >/dev/null 2>>"$errors"; echo $(($(now_ms) - t0)); }
compare_ms() { # label command: the command is called with the side in place of SIDE
  local label=$1 side; shift
  rm -f "$work"/{pg15,pg18,mp}.t
  for _ in $(seq "$runs"); do for side in $sides; do took_ms "${@/#SIDE/$side}" >>"$work/$side.t"; done; done
  echo "| $label | $(median <"$work/$pg.t") | $(median <"$work/mp.t") | $(ratio "$work/$pg.t" "$work/mp.t") |"
}

case $what in init | select | queries) for side in $sides; do start "$side" "$buffers"; done ;; esac
case $what in
  init)
    echo "| | $pg_name ms | Millpond ms | ratio of medians |"; echo "|---|---|---|---|"
    compare_ms "pgbench -i -s $scale" init SIDE "$scale" ;;
  select)
    for side in $sides; do loaded "$side" "$scale"; query "$side" checkpoint; done
    script=(-b select-only)
    # shellcheck disable=SC2086
    series "${MODES:-simple prepared}" ${CLIENTS:-1 2 27 107 397} ;;
  tpcb | update)
    if [ "$what" = tpcb ]; then script=(-b tpcb-like); else script=(-b simple-update); fi
    # shellcheck disable=SC2086
    writing "${MODES:-simple prepared}" ${CLIENTS:-1 2 8 16 64 128} ;;
  hot)
    printf '\\set delta random(-5000, 5000)\nUPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = 1;\n' >"$work/hot.sql"
    script=(-f "$work/hot.sql")
    # shellcheck disable=SC2086
    writing "${MODES:-simple}" ${CLIENTS:-1 2 8 64} ;;
  queries)
    for side in $sides; do loaded "$side" "$scale"; query "$side" 'vacuum analyze'; done
    echo "| query | $pg_name ms | Millpond ms | ratio of medians |"; echo "|---|---|---|---|"
    for q in 'select count(*) from pgbench_accounts' 'select sum(abalance) from pgbench_accounts' 'select bid, count(*) from pgbench_accounts group by bid'; do
      compare_ms "$q" query SIDE "$q"
    done ;;
  limit)
    "${NULLPG:?a server that does nothing}" "$work/mp/.s.PGSQL.5499" epoll 2 & null=$!
    printf '\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n' >"$work/select.sql"
    echo "| mode | clients | nothing tps |"; echo "|---|---|---|"
    for mode in ${MODES:-simple prepared}; do for c in ${CLIENTS:-1 2 27 107 397}; do
      : >"$work/n.t"
      for _ in $(seq "$runs"); do MP_PORT=5499 tps mp "$c" "$mode" "$seconds" -s "$scale" -f "$work/select.sql" >>"$work/n.t"; done
      echo "| $mode | $c | $(median <"$work/n.t") |"
    done; done; kill $null ;;
  *) fail "unknown: $what" ;;
esac

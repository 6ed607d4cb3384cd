#!/usr/bin/env bash
# Millpond beside PostgreSQL under pgbench, in turn: medians, as in the tables of
# docs/benchmarks.md.
#
#   bench/compare.sh select  SCALE SECONDS RUNS     # -S at several client counts, both modes
#   bench/compare.sh tpcb    SCALE SECONDS RUNS     # the default script
#   bench/compare.sh update  SCALE SECONDS RUNS     # -N: the default script without the rows that
#                                                   # all clients update
#   bench/compare.sh hot     SCALE SECONDS RUNS     # all clients update one row
#   bench/compare.sh init    SCALE 0 RUNS           # pgbench -i
#   bench/compare.sh queries SCALE 0 RUNS           # count(*), sum, group by over the accounts
#   bench/compare.sh limit   SCALE SECONDS RUNS     # -S on a server without work (CANNED=program)
#
# CANNED is the example `canned` of millpond-server. With READ=FILE it reads pages of that file, 92
# for a hundred selects.
#
# PG="pg15 pg18" compares with both (default: pg15). BUFFERS is the shared_buffers of all servers
# (default: 128MB). CLIENTS and MODES override the series. SYNC="on off" runs the benchmarks that
# write with each of these values of synchronous_commit (default: on). LATENCY=0.1 logs a tenth of
# the transactions and adds columns of 99th percentiles. lib.sh describes the other variables.
set -euo pipefail
what=${1:?what} scale=${2:?scale} seconds=${3:?seconds} runs=${4:?runs}
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
read -ra others <<<"${PG:-pg15}"
systems=("${others[@]}" mp) buffers=${BUFFERS:-128MB}

# pgbench's arguments for its script: `-b NAME` or `-f FILE`.
script=()
series() { # modes clients...
  local modes=$1 system mode c reached p99; shift
  heading "| mode | clients |$(names "NAME tps" "${systems[@]}")$(names "Millpond / NAME" "${others[@]}")${LATENCY:+$(names "NAME p99 µs" "${systems[@]}")}"
  for mode in $modes; do for c in "$@"; do
    forget
    for _ in $(seq "$runs"); do for system in "${systems[@]}"; do
      read -r reached p99 < <(tps "$system" "$c" "$mode" "$seconds" "${script[@]}")
      echo "$reached" >>"$work/$system.t"; echo "$p99" >>"$work/$system.l"
    done; done
    echo "| $mode | $c |$(medians t "${systems[@]}")$(ratios more t "${others[@]}")${LATENCY:+$(medians l "${systems[@]}")}"
  done; done
}
# Series of the benchmarks that write, one for each synchronous_commit.
writing() { # modes clients...
  local sync system; local syncs=(${SYNC:-on})
  for sync in "${syncs[@]}"; do
    for system in "${systems[@]}"; do start "$system" "$buffers" "synchronous_commit=$sync"; loaded "$system" "$scale"; done
    [ ${#syncs[@]} = 1 ] || printf '\nsynchronous_commit = %s:\n\n' "$sync"
    series "$@"
    stop_all
  done
}
took_ms() { local t0; t0=$(now_ms); "$@" >/dev/null 2>>"$errors"; echo $(($(now_ms) - t0)); }
compare_ms() { # label command: runs the command with the system in place of SYSTEM
  local label=$1 system; shift
  forget
  for _ in $(seq "$runs"); do for system in "${systems[@]}"; do took_ms "${@/#SYSTEM/$system}" >>"$work/$system.t"; done; done
  echo "| $label |$(medians t "${systems[@]}")$(ratios less t "${others[@]}")"
}
heading_ms() { heading "| $1 |$(names "NAME ms" "${systems[@]}")$(names "NAME / Millpond" "${others[@]}")"; }

case $what in init | select | queries) for system in "${systems[@]}"; do start "$system" "$buffers"; done ;; esac
case $what in
  init)
    heading_ms ""
    compare_ms "pgbench -i -s $scale" init SYSTEM "$scale" ;;
  select)
    for system in "${systems[@]}"; do loaded "$system" "$scale"; query "$system" checkpoint; done
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
    for system in "${systems[@]}"; do loaded "$system" "$scale"; query "$system" 'vacuum analyze'; done
    heading_ms query
    for q in 'select count(*) from pgbench_accounts' 'select sum(abalance) from pgbench_accounts' 'select bid, count(*) from pgbench_accounts group by bid'; do
      compare_ms "$q" query SYSTEM "$q"
    done ;;
  limit)
    mkdir -p "$work/mp"
    "${CANNED:?a server that does nothing: the example canned}" "$work/mp" 5499 2 ${READ:+"$READ" 92} & canned=$!
    printf '\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n' >"$work/select.sql"
    heading "| mode | clients | nothing tps |"
    for mode in ${MODES:-simple prepared}; do for c in ${CLIENTS:-1 2 27 107 397}; do
      forget
      for _ in $(seq "$runs"); do MP_PORT=5499 tps mp "$c" "$mode" "$seconds" -s "$scale" -f "$work/select.sql" >>"$work/mp.t"; done
      echo "| $mode | $c |$(medians t mp)"
    done; done; kill $canned ;;
  *) fail "unknown: $what" ;;
esac

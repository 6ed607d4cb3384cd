#!/usr/bin/env bash
# How Millpond's throughput of `pgbench -S` depends on the number of connections, as CSV. Cells are
# many and short. Each round has one for each number of clients, in a random order, so that other
# work on the machine affects all of them alike. `cargo xtask bench flat` runs this script and
# reports how certain the ratio is. The options of that command explain the variables below.
#
# CANNED: the example `canned` of millpond-server, which does no work, measured in the same rounds.
# With READ=FILE it reads pages of that file, 92 for a hundred selects.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
scale=${SCALE:-100} seconds=${RUN_SECONDS:-1} runs=${RUNS:-15} warmup=${WARMUP_SECONDS:-8} mode=${MODE:-simple}
read -ra sizes <<<"${SIZES:-128MB 1GB}"
read -ra clients <<<"${CLIENTS:-1 2 3 5 7 17 27 53 83 107 139 163 191 211 239 271 307 353 397}"
budget=${BUDGET_SECONDS:-0}
script=$work/flat-select.sql
printf '\\set aid random(1, 100000 * %s)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n' "$scale" >"$script"
systems=(mp)
canned_port=5499
if [ -n "${CANNED:-}" ]; then systems+=(canned); fi

# Nanoseconds of processor time that the process has used; nothing where the system does not tell.
cpu_ns() { cat "/proc/$1/task/"*/schedstat 2>/dev/null | awk '{ns += $1} END {printf "%.0f", ns}'; }
cell() { # system clients
  local pid=$mp_pid port=${MP_PORT:-5416} before threads=2
  if [ "$1" = canned ]; then pid=$canned_pid port=$canned_port; fi
  [ "$2" = 1 ] && threads=1
  before=$(cpu_ns "$pid")
  timeout $((seconds + 120)) "$bin/pgbench" -h "$work/mp" -p "$port" -U postgres -n -M "$mode" -c "$2" -j $threads -T "$seconds" \
    -f "$script" postgres 2>>"$errors" |
    awk -v before="$before" -v after_of="$pid" '
      /actually processed/ {count = $6}
      /^tps/ {tps = $3}
      END {
        command = "cat /proc/" after_of "/task/*/schedstat 2>/dev/null"
        while ((command | getline) > 0) after += $1
        if (tps) printf "%.1f,%s\n", tps, (before != "" && count) ? sprintf("%.0f", (after - before) / count) : ""
      }'
}

csv "shared_buffers,clients,run,system,tps,server_ns"
canned_pid=
if [ -n "${CANNED:-}" ]; then
  mkdir -p "$work/mp"
  "$CANNED" "$work/mp" $canned_port 2 ${READ:+"$READ" 92} & canned_pid=$!
fi
for at in "${!sizes[@]}"; do
  size=${sizes[at]}
  start mp "$size"
  loaded mp "$scale"
  say "$size: warming up"
  tps mp 16 "$mode" "$warmup" -f "$script" >/dev/null
  for run in $(seq "$runs"); do
    begun=$SECONDS
    while read -r system c; do
      ! measured "$size,$c,$run,$system" || continue
      reached=$(cell "$system" "$c")
      [ -z "$reached" ] || echo "$size,$c,$run,$system,$reached"
    done < <(for system in "${systems[@]}"; do for c in "${clients[@]}"; do echo "$system $c"; done; done | shuf)
    say "$size: round $run"
    if [ "$budget" -gt 0 ] && [ $((SECONDS + SECONDS - begun)) -gt $((budget * (at + 1) / ${#sizes[@]})) ]; then
      say "$size: the budget is used up after $run rounds"
      break
    fi
  done
  stop_all
done

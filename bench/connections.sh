#!/usr/bin/env bash
# Throughput of `pgbench -S` as connections rise, as CSV. `cargo xtask bench connections` runs this
# script and makes tables and charts of its output. The options of that command explain the
# variables below.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
scale=${SCALE:-100} seconds=${RUN_SECONDS:-3} runs=${RUNS:-3} warmup=${WARMUP_SECONDS:-8} mode=${MODE:-simple}
read -ra sizes <<<"${SIZES:-128MB 1GB}"
read -ra systems <<<"${SYSTEMS:-pg15 pg18 mp}"
read -ra clients <<<"${CLIENTS:-1 2 3 5 7 17 27 53 83 107 139 163 191 211 239 271 307 353 397}"
budget=${BUDGET_SECONDS:-0}

csv "shared_buffers,clients,run,system,tps,p99_us"
for at in "${!sizes[@]}"; do
  size=${sizes[at]}
  for system in "${systems[@]}"; do start "$system" "$size"; done
  for system in "${systems[@]}"; do
    loaded "$system" "$scale"
    say "$size: $(name_of "$system"): warming up"
    tps "$system" 16 "$mode" "$warmup" -b select-only >/dev/null
  done
  # Round by round: a machine that slows down affects all alike, and a budget cuts off whole rounds.
  for run in $(seq "$runs"); do
    begun=$SECONDS
    for c in "${clients[@]}"; do for system in "${systems[@]}"; do
      ! measured "$size,$c,$run,$system" || continue
      read -r reached p99 < <(tps "$system" "$c" "$mode" "$seconds" -b select-only)
      # There is no result if connecting took all the time. The cell may be measured again.
      [ -z "$reached" ] || echo "$size,$c,$run,$system,$reached,$p99"
      say "$size: run $run: $c clients: $(name_of "$system"): $reached"
    done; done
    # The next round takes as long as this one. Each size gets an equal share of the budget.
    if [ "$budget" -gt 0 ] && [ $((SECONDS + SECONDS - begun)) -gt $((budget * (at + 1) / ${#sizes[@]})) ]; then
      say "$size: the budget is used up after $run runs"
      break
    fi
  done
  stop_all
done

#!/usr/bin/env bash
# What settings cost: pgbench -S on Millpond without and with each of them, in turn; medians.
#
#     bench/settings.sh SCALE SECONDS RUNS NAME=VALUE...
#
# Example: bench/settings.sh 100 3 5 trace_pages=/tmp/pages.trace replacement_policy=clock-sweep
#
# Every run starts the server again and warms it up for WARMUP_SECONDS (default: 3). CLIENTS
# overrides 2 27, MODE prepared, BUFFERS 128MB. lib.sh describes the other variables.
set -euo pipefail
scale=${1:?scale} seconds=${2:?seconds} runs=${3:?runs}
settings=("" "${@:4}")
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
mode=${MODE:-prepared}
read -ra clients <<<"${CLIENTS:-2 27}"

file_of() { echo "$work/settings.$1.$2"; } # which setting, how many clients
rm -f "$work"/settings.*
for _ in $(seq "$runs"); do for at in "${!settings[@]}"; do
  # shellcheck disable=SC2086
  start mp "${BUFFERS:-128MB}" ${settings[at]}
  loaded mp "$scale"
  tps mp 16 "$mode" "${WARMUP_SECONDS:-3}" -b select-only >/dev/null
  for c in "${clients[@]}"; do
    read -r reached _ < <(tps mp "$c" "$mode" "$seconds" -b select-only)
    echo "$reached" >>"$(file_of "$at" "$c")"
  done
  stop mp
done; done
heading "| clients | as it is, tps |$(printf ' %s tps | of that |' "${settings[@]:1}")"
for c in "${clients[@]}"; do
  row="| $c |"
  for at in "${!settings[@]}"; do
    row+=" $(median <"$(file_of "$at" "$c")") |"
    [ "$at" = 0 ] || row+=$(echo "$(mid <"$(file_of "$at" "$c")") $(mid <"$(file_of 0 "$c")")" | awk '{printf " %.3f |", $1 / $2}')
  done
  echo "$row"
done

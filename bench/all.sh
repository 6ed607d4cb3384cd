#!/usr/bin/env bash
# The measurements of the buffer pool in docs/benchmarks.md, in two steps. Only the second step
# needs a quiet machine.
#
#   bench/all.sh prepare           # builds, and makes the servers' data directories in $WORK
#   bench/all.sh measure SECONDS   # measures for about SECONDS: connections, bulk, pool, trees,
#                                  # pins; and io if PARTS has it
#
# Environment: WORK (/tmp/millpond-bench), OUT (target/bench), MILLPOND (target/release/millpond),
# SCALE (100), PARTS (which of the six to run). CONNECTIONS_ARGS, BULK_ARGS and CACHES_ARGS are
# further arguments of connections, bulk, and pool and trees. lib.sh describes the others. RocksDB
# is included if Debian's librocksdb-dev and libclang1-14 are installed. io needs fio and root.
set -euo pipefail
cd "$(dirname "$0")/.."
export WORK=${WORK:-/tmp/millpond-bench}
out=${OUT:-$PWD/target/bench} scale=${SCALE:-100}
read -ra parts <<<"${PARTS:-connections bulk pool trees pins}"
millpond=${MILLPOND:-$PWD/target/release/millpond}
features=()
if [ -e /usr/lib/x86_64-linux-gnu/librocksdb.a ]; then
  features=(--features rocksdb)
  export ROCKSDB_LIB_DIR=/usr/lib/x86_64-linux-gnu ROCKSDB_INCLUDE_DIR=/usr/include
  export BINDGEN_EXTRA_CLANG_ARGS=-I/usr/lib/gcc/x86_64-linux-gnu/12/include
else
  echo "no librocksdb-dev: RocksDB is left out" >&2
fi
mkdir -p "$out"

has() { case " ${parts[*]} " in *" $1 "*) true ;; *) false ;; esac; }
xtask() { cargo xtask bench "$1" --scale "$scale" --work "$WORK" --millpond "$millpond" --out "$out" "${@:2}"; }
caches() { (cd bench/caches && CARGO_TARGET_DIR=$caches_target cargo "$1" --release --quiet "${features[@]}" "${@:2}"); }
caches_target=${CACHES_TARGET_DIR:-$PWD/bench/caches/target}

case ${1:?prepare or measure} in
  prepare)
    [ -x "$millpond" ] || cargo build --release
    cargo build --package xtask
    has pool || has trees && caches build
    has pins && cargo bench --package millpond-buffer --bench costs --no-run
    has io && cargo bench --package millpond-buffer --bench io_depth --no-run
    # A subshell: when it ends, the servers are stopped.
    (
      # shellcheck source=lib.sh
      . bench/lib.sh
      for system in pg15 pg18 mp; do
        start "$system" 256MB max_wal_size=4GB
        loaded "$system" "$scale"
        query "$system" 'vacuum analyze'
        query "$system" checkpoint
        stop "$system"
      done
    ) ;;
  measure)
    budget=${2:?seconds}
    ends=$((SECONDS + budget))
    # The time of the later parts, which does not depend on the budget.
    later=0
    has pool && later=$((later + 170))
    has trees && later=$((later + 90))
    has pins && later=$((later + 60))
    has io && later=$((later + 400))
    # At least 1, because 0 means no limit.
    left() { local left=$((ends - SECONDS - later)); echo $((left > 0 ? left : 1)); }
    if has connections; then
      # Connections gets seven tenths of the time for connections and bulk.
      time=$(left)
      has bulk && time=$((time * 7 / 10 + 1))
      # shellcheck disable=SC2086
      xtask connections --budget "$time" ${CONNECTIONS_ARGS:---seconds 2}
    fi
    # shellcheck disable=SC2086
    has bulk && xtask bulk --budget "$(left)" ${BULK_ARGS:---seconds 6 --warmup 3}
    # shellcheck disable=SC2086
    has pool && caches run -- pool ${CACHES_ARGS:-} | tee "$out/pool.md"
    # shellcheck disable=SC2086
    has trees && caches run -- trees ${CACHES_ARGS:-} | tee "$out/trees.md"
    has pins && cargo bench --quiet --package millpond-buffer --bench costs | tee "$out/pins.txt"
    # This empties the system's cache, so it comes last.
    has io && bench/io.sh "${IO_SECONDS:-3}" 3 2 | tee "$out/io.md"
    exit 0 ;;
  *) echo "prepare or measure, not $1" >&2; exit 2 ;;
esac

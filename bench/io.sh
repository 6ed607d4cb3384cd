#!/bin/sh
# Random reads of 8 KiB: the pool and fio in turn, on the same file, at the same depth; medians.
#
#     bench/io.sh [SECONDS [RUNS [GIGABYTES]]]
#
# threads: `depth` sessions, each of which waits for its page, and as many jobs of fio with pread.
# io_uring: one session with a read stream of that depth, and one job of fio with io_uring at that
# depth. Needs fio, and root to empty the system's cache. The file is in $DIR (default: in
# /var/tmp).
set -eu
seconds=${1:-5} runs=${2:-3} gigabytes=${3:-4}
cd "$(dirname "$0")/.."
io_depth() { cargo bench --quiet -p millpond-buffer --bench io_depth -- "$@"; }
cargo bench --quiet -p millpond-buffer --bench io_depth --no-run
dir=$(realpath "${DIR:-$(mktemp -d /var/tmp/millpond-io.XXXXXX)}")
[ -n "${DIR:-}" ] || trap 'rm -rf "$dir"' EXIT
io_depth "$dir" prepare $((gigabytes * 131072)) > "$dir/name"
# Segments have 1 GiB; fio gets all of them.
files=$(ls "$dir"/1 "$dir"/1.* 2>/dev/null | tr '\n' ':' | sed 's/:$//')

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)], all[1], all[NR] }'; }
cold() { sync; echo 3 > /proc/sys/vm/drop_caches; }
with_fio() { # depth, direct, engine, jobs
    fio --name=r --filename="$files" --rw=randread --bs=8k --norandommap --random_generator=tausworthe64 \
        --direct="$2" --ioengine="$3" --iodepth="$1" --numjobs="$4" --group_reporting --file_service_type=random \
        --ramp_time=1 --runtime="$seconds" --time_based --invalidate=0 --readonly --output-format=terse |
        cut -d ';' -f 8
}

echo "| cache | how | depth | fio reads a second | pool reads a second | ratio of medians |"
echo "|---|---|---|---|---|---|"
for cache in ${CACHES:-direct buffered}; do
    direct=0; [ $cache = direct ] && direct=1
    for how in ${WAYS:-threads:1 threads:4 threads:8 threads:32 io_uring:4 io_uring:8 io_uring:32}; do
        method=${how%:*} depth=${how#*:}
        case $method in
            io_uring) engine=io_uring jobs=1 fio_depth=$depth ;;
            *) engine=psync jobs=$depth fio_depth=1 ;;
        esac
        : > "$dir/fio"; : > "$dir/pool"
        for run in $(seq "$runs"); do
            cold; with_fio "$fio_depth" $direct $engine "$jobs" >> "$dir/fio"
            cold; io_depth "$dir" read "$depth" "$seconds" $cache "$method" >> "$dir/pool"
        done
        fio=$(median < "$dir/fio") pool=$(median < "$dir/pool")
        echo "$fio $pool" | awk -v cache=$cache -v how="$method" -v depth="$depth" '{
            printf "| %s | %s | %d | %d (%d to %d) | %d (%d to %d) | %.2f |\n", cache, how, depth, $1, $2, $3, $4, $5, $6, $4 / $1 }'
    done
done

#!/usr/bin/env bash
# Point readers beside bulk work, as CSV. `cargo xtask bench bulk` runs this script and makes a
# table of its output. The options of that command explain the variables below.
#
# A case: for a few seconds the point readers (two clients of `pgbench -S`) run beside a loop of one
# job. Figures are counted in a window in the middle, from `begin` to `end`:
#   hits, reads   pages that the point readers found in the pool, and pages that it had to read.
#                 They come from the server's own statistics: on PostgreSQL 18 those of the two
#                 backends (pg_stat_get_backend_io), on Millpond pg_stat_io of clients in context
#                 "normal", which excludes its bulk work
#   preads        pages that the point readers' processes or threads read from files, according to
#                 the kernel (/proc/PID/io)
#   cpu_ms        processor time of the whole server without the point readers' processes or threads
#
# With SELECTS no figure depends on the clock. Each point reader makes SELECTS selects, twice, with
# the job beside it all the time. The keys are the same beside every job. Only the second half is
# counted (hits, reads), by the backend itself at its end.
set -euo pipefail
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
scale=${SCALE:-100} seconds=${RUN_SECONDS:-10} runs=${RUNS:-3} warmup=${WARMUP_SECONDS:-4} buffers=${BUFFERS:-256MB}
copy_rows=${COPY_ROWS:-10000000} parallel=${PARALLEL:-0}
read -ra systems <<<"${SYSTEMS:-pg18 mp}"
read -ra jobs <<<"${JOBS:-alone seqscan vacuum copy indexscan}"
read -ra keys <<<"${KEYS:-uniform zipfian none}"
budget=${BUDGET_SECONDS:-0} selects=${SELECTS:-0}
tick_ms=$((1000 / $(getconf CLK_TCK)))

cat >"$work/uniform.sql" <<'SQL'
\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SQL
cat >"$work/zipfian.sql" <<'SQL'
\set rank random_zipfian(1, 100000 * :scale, 1.1)
\set aid 1 + permute(:rank - 1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
SQL
echo 'select count(*) from pgbench_accounts;' >"$work/seqscan.sql"
# PostgreSQL needs these settings; for Millpond the condition is enough.
echo 'set enable_seqscan = off; set enable_bitmapscan = off; select sum(abalance) from pgbench_accounts where aid > 0;' >"$work/indexscan.sql"
echo 'vacuum (disable_page_skipping) pgbench_accounts;' >"$work/vacuum.sql"
for key in uniform zipfian; do
  cat - "$work/$key.sql" <<<'\set n :n + 1' >"$work/$key.counted.sql"
  cat >>"$work/$key.counted.sql" <<'SQL'
\if :n = :last
insert into bench_counts select sum(hits), sum(reads) from pg_stat_get_backend_io(pg_backend_pid()) where object = 'relation' and context = 'normal';
\endif
SQL
done
printf 'truncate bench_copy;\n\\copy bench_copy from %s\n' "'$work/copy.$copy_rows'" >"$work/copy.sql"

prepare() { # system: makes what a job needs in addition to pgbench's tables
  [ "$selects" = 0 ] || query "$1" 'create table if not exists bench_counts (hits int8, reads int8)' 2>>"$errors"
  case " ${jobs[*]} " in *' copy '*)
    if [ ! -s "$work/copy.$copy_rows" ]; then
      awk -v n="$copy_rows" 'BEGIN {for (i = 1; i <= n; i++) printf "%d\t%d\t0\t\n", i, i / 100000 + 1}' >"$work/copy.$copy_rows"
    fi
    query "$1" 'create table if not exists bench_copy (aid int, bid int, abalance int, filler char(84))' 2>>"$errors" ;;
  esac
}
before() { # system job
  # Makes a dead row in nearly every page.
  [ "$2" != vacuum ] || query "$1" 'update pgbench_accounts set abalance = abalance + 1 where aid % 61 = 0'
  query "$1" checkpoint
}

points() { # system keys seconds: runs two clients of -S, "points" in pg_stat_activity
  # With another default_seed, each pgbench would want other accounts: a cold pool for them.
  # shellcheck disable=SC2046
  PGAPPNAME=points timeout $(($3 + 60)) "$bin/pgbench" $(where "$1") -n -M simple -c 2 -j 2 -T "$3" -s "$scale" -D default_seed=1 \
    -f "$work/$2.sql" postgres 2>>"$errors"
}
counted_points() { # system keys seed: runs $selects selects each; counts go to bench_counts
  query "$1" 'truncate bench_counts'
  # shellcheck disable=SC2046
  "$bin/pgbench" $(where "$1") -n -M simple -c 2 -j 2 -t "$selects" -s "$scale" --random-seed="$3" -D default_seed=1 -D n=0 -D last="$selects" \
    -f "$work/$2.counted.sql" postgres 2>>"$errors"
}
jobs_loop() { # system job: repeats the job; the milliseconds of each go to $work/times
  local t0 job
  while [ ! -e "$work/enough" ]; do
    t0=$(now_ms)
    # shellcheck disable=SC2046
    "$bin/psql" $(where "$1") -XqAt -v ON_ERROR_STOP=1 -f "$work/$2.sql" postgres >/dev/null 2>>"$work/job.errors" & job=$!
    echo $job >"$work/job.pid"
    if wait $job; then echo $(($(now_ms) - t0)) >>"$work/times"; else [ -e "$work/enough" ] || { cat "$work/job.errors" >>"$errors"; return; }; fi
  done
}

# utime + stime of processes, in ticks. `reaped`: those of a process's ended children.
ticks() { cat "$@" 2>/dev/null | sed 's/^.*) //' | awk '{n += $12 + $13} END {print n + 0}'; }
reaped() { sed 's/^.*) //' "/proc/$1/stat" | awk '{print $14 + $15}'; }
rchar() { cat "$@" 2>/dev/null | awk '/^rchar/ {n += $2} END {print n + 0}'; }
# Prints: milliseconds, hits, reads, bytes read by the point readers, ticks of everything else.
sample() { # system keys
  local pid all own io at counts=
  pid=$(pid_of "$1")
  if [ "$1" = mp ]; then
    local loops=() task
    for task in /proc/"$pid"/task/*; do case $(cat "$task/comm" 2>/dev/null) in loop*) loops+=("$task") ;; esac; done
    counts=$(query mp "select sum(hits), sum(reads) from pg_stat_io where backend_type = 'client backend' and context = 'normal'" 2>/dev/null || true)
    at=$(now_ms); all=$(ticks "/proc/$pid/stat"); own=$(ticks "${loops[@]/%//stat}"); io=$(rchar "${loops[@]/%//io}")
  else
    local readers children
    mapfile -t readers < <(query "$1" "select '/proc/' || pid from pg_stat_activity where application_name = 'points'")
    if [ "$1" = pg18 ] && [ ${#readers[@]} -gt 0 ]; then
      counts=$(query pg18 "select sum(hits), sum(reads) from pg_stat_activity a, pg_stat_get_backend_io(a.pid) where application_name = 'points' and object = 'relation'")
    fi
    mapfile -t children < <(sed 's/ *$//; s/ /\n/g' "/proc/$pid/task/$pid/children" | sed '/^$/d; s|.*|/proc/&/stat|')
    at=$(now_ms); all=$(($(ticks "/proc/$pid/stat" "${children[@]}") + $(reaped "$pid")))
    own=$(ticks "${readers[@]/%//stat}" </dev/null); io=$(rchar "${readers[@]/%//io}" </dev/null)
  fi
  # There are no point readers: all of the server's work belongs to the job.
  [ "$2" != none ] || own=0
  echo "$at ${counts:--|-} $io $((all - own))" | tr '|' ' '
}

counted_case_of() { # system keys job run
  local system=$1 key=$2 job=$3 run=$4 loop= counts tps begin end
  rm -f "$work/times" "$work/enough" "$work/job.errors"; : >"$work/times"
  before "$system" "$job"
  if [ "$job" != alone ]; then jobs_loop "$system" "$job" & loop=$!; fi
  counted_points "$system" "$key" 1 >/dev/null
  begin=$(now_ms)
  tps=$(counted_points "$system" "$key" 2 | awk '/^tps/ {printf "%.1f", $3}')
  end=$(now_ms)
  counts=$(query "$system" 'select sum(hits), sum(reads) from bench_counts')
  end_loop "$loop"
  echo "$system,$key,$job,$run,$tps,$((end - begin)),${counts/|/,},,,$(mid <"$work/times")"
}
end_loop() { # process of jobs_loop, or empty
  touch "$work/enough"
  [ -n "$1" ] || return 0
  # Cancels the running job, unless no job has ended yet: then the time of this one is needed.
  [ ! -s "$work/times" ] || kill -INT "$(cat "$work/job.pid")" 2>/dev/null || true
  wait "$1" || true
}
case_of() { # system keys job run
  local system=$1 key=$2 job=$3 run=$4 loop= reader= begin end times tps=
  rm -f "$work/times" "$work/enough" "$work/job.errors"; : >"$work/times"
  before "$system" "$job"
  [ "$key" = none ] || points "$system" "$key" "$warmup" >/dev/null
  if [ "$job" != alone ]; then jobs_loop "$system" "$job" & loop=$!; fi
  if [ "$key" != none ]; then points "$system" "$key" $((seconds + 2)) >"$work/points" & reader=$!; fi
  sleep 1
  begin=$(sample "$system" "$key")
  sleep "$seconds"
  end=$(sample "$system" "$key")
  if [ -n "$reader" ]; then wait "$reader" || true; tps=$(awk '/^tps/ {printf "%.1f", $3}' "$work/points"); fi
  end_loop "$loop"
  times=$(mid <"$work/times")
  echo "$begin $end" | awk -v OFS=, -v system_="$system" -v key="$key" -v job="$job" -v run="$run" -v tps="$tps" -v ms="$times" -v tick="$tick_ms" '{
    # Counts that decrease belong to readers that have already ended.
    known = $2 != "-" && $7 != "-" && $7 >= $2
    print system_, key, job, run, tps, $6 - $1, known ? $7 - $2 : "", known ? $8 - $3 : "", key == "none" || $9 < $4 ? "" : int(($9 - $4) / 8192), ($10 - $5) * tick, ms }'
}

csv "system,keys,job,run,tps,window_ms,hits,reads,preads,cpu_ms,job_ms"
for system in "${systems[@]}"; do
  settings=()
  # Without these settings, PostgreSQL scans the index for count(*), with several processes.
  [ "$system" = mp ] || settings=(enable_indexonlyscan=off "max_parallel_workers_per_gather=$parallel")
  start "$system" "$buffers" autovacuum=off max_wal_size=4GB "${settings[@]}"
done
for system in "${systems[@]}"; do loaded "$system" "$scale"; prepare "$system"; done
for run in $(seq "$runs"); do
  begun=$SECONDS
  for key in "${keys[@]}"; do for job in "${jobs[@]}"; do
    [ "$key $job" != "none alone" ] || continue
    [ "$key" != none ] || [ "$selects" = 0 ] || continue
    for system in "${systems[@]}"; do
      ! measured "$system,$key,$job,$run" || continue
      if [ "$selects" = 0 ]; then line=$(case_of "$system" "$key" "$job" "$run"); else line=$(counted_case_of "$system" "$key" "$job" "$run"); fi
      echo "$line"
      say "run $run: $key beside $job: $(name_of "$system"): $line"
    done
  done; done
  if [ "$budget" -gt 0 ] && [ $((SECONDS + SECONDS - begun)) -gt "$budget" ]; then say "the budget is used up after $run runs"; break; fi
done

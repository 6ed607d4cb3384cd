#!/usr/bin/env bash
# TPC-H's queries on PostgreSQL and Millpond: whether the answers are the same, and what they cost.
#
#   bench/tpch.sh QUERIES DATA [RUNS]
#
# QUERIES holds 1.sql to 22.sql, with the parameters of the specification's validation. DATA holds
# the eight tables as NAME.tbl: `tpchgen-cli -s 1 --output-dir DATA` makes them. The tables have
# their primary keys and no other index. Each query runs RUNS times (1) on each system in turn.
#
# Prints CSV: the query; for each system the milliseconds and the server's processor time in
# milliseconds, both of the fastest run; whether all answers are the same. A query that takes longer
# than TIMEOUT (60s), or fails, has the word error in place of its figures.
#
# Environment, beside that of lib.sh: PG ("pg15"), BUFFERS (1GB), TIMEOUT, QUERY ("1 2 ... 22"),
# MP_SET and PG_SET (more settings, NAME=VALUE ...)
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; exit 2; }
queries=$1 data=$2 runs=${3:-1}
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
systems="${PG-pg15} mp"
timeout=${TIMEOUT:-60s}

tables() {
  cat <<'SQL'
create table region (r_regionkey int primary key, r_name char(25) not null, r_comment varchar(152));
create table nation (n_nationkey int primary key, n_name char(25) not null,
  n_regionkey int not null, n_comment varchar(152));
create table supplier (s_suppkey int primary key, s_name char(25) not null,
  s_address varchar(40) not null, s_nationkey int not null, s_phone char(15) not null,
  s_acctbal numeric(15,2) not null, s_comment varchar(101) not null);
create table part (p_partkey int primary key, p_name varchar(55) not null, p_mfgr char(25) not null,
  p_brand char(10) not null, p_type varchar(25) not null, p_size int not null,
  p_container char(10) not null, p_retailprice numeric(15,2) not null,
  p_comment varchar(23) not null);
create table partsupp (ps_partkey int not null, ps_suppkey int not null, ps_availqty int not null,
  ps_supplycost numeric(15,2) not null, ps_comment varchar(199) not null,
  primary key (ps_partkey, ps_suppkey));
create table customer (c_custkey int primary key, c_name varchar(25) not null,
  c_address varchar(40) not null, c_nationkey int not null, c_phone char(15) not null,
  c_acctbal numeric(15,2) not null, c_mktsegment char(10) not null, c_comment varchar(117) not null);
create table orders (o_orderkey int primary key, o_custkey int not null,
  o_orderstatus char(1) not null, o_totalprice numeric(15,2) not null, o_orderdate date not null,
  o_orderpriority char(15) not null, o_clerk char(15) not null, o_shippriority int not null,
  o_comment varchar(79) not null);
create table lineitem (l_orderkey int not null, l_partkey int not null, l_suppkey int not null,
  l_linenumber int not null, l_quantity numeric(15,2) not null,
  l_extendedprice numeric(15,2) not null, l_discount numeric(15,2) not null,
  l_tax numeric(15,2) not null, l_returnflag char(1) not null, l_linestatus char(1) not null,
  l_shipdate date not null, l_commitdate date not null, l_receiptdate date not null,
  l_shipinstruct char(25) not null, l_shipmode char(10) not null, l_comment varchar(44) not null,
  primary key (l_orderkey, l_linenumber));
SQL
}

filled() { # system
  local rows table
  rows=$(query "$1" 'select count(*) from lineitem' 2>/dev/null || echo 0)
  [ "$rows" = 0 ] || return 0
  say "$(name_of "$1"): tables"
  query "$1" "$(tables)" 2>>"$errors" || fail "$(name_of "$1"): the tables could not be made"
  for table in region nation supplier part partsupp customer orders lineitem; do
    # Each line ends in a separator.
    # shellcheck disable=SC2046
    sed 's/|$//' "$data/$table.tbl" |
      "$bin/psql" $(where "$1") -Xqc "copy $table from stdin (delimiter '|')" postgres
  done
  query "$1" 'vacuum analyze'
}

# Runs a query; its milliseconds, processor time, and the digest of its answer.
measured_query() { # system number
  local before at ms ticks answer=$work/answer.$1
  before=$(processor_ticks "$1") at=$(now_ms)
  # shellcheck disable=SC2046
  PGOPTIONS="-c statement_timeout=$timeout" "$bin/psql" $(where "$1") -XqAtf "$queries/$2.sql" postgres \
    >"$answer" 2>&1 || true
  ms=$(($(now_ms) - at))
  # The time of PostgreSQL's process counts once its end was noted.
  [ "$1" = mp ] || sleep 0.3
  ticks=$(($(processor_ticks "$1") - before))
  if grep -q ERROR "$answer"; then
    say "$(name_of "$1"), query $2: $(grep -m1 -o 'ERROR.*' "$answer")"
    echo "error error -"
  else
    echo "$ms $((ticks * 1000 / $(getconf CLK_TCK))) $(md5sum <"$answer" | cut -c1-8)"
  fi
}

for system in $systems; do
  # shellcheck disable=SC2086
  if [ "$system" = mp ]; then start mp "${BUFFERS:-1GB}" ${MP_SET:-}; else start "$system" "${BUFFERS:-1GB}" ${PG_SET:-}; fi
  filled "$system"
done

header=query
for system in $systems; do header+=",$system ms,$system processor ms"; done
echo "$header,same"
for number in ${QUERY:-$(seq 22)}; do
  declare -A best=()
  digests=
  for ((run = 0; run < runs; run++)); do
    for system in $systems; do
      result=$(measured_query "$system" "$number")
      digests+="${result##* }"$'\n'
      figures=${result% *}
      if [ -z "${best[$system]:-}" ] || [ "${figures%% *}" -lt "${best[$system]%% *}" ] 2>/dev/null; then
        best[$system]=$figures
      fi
    done
  done
  line=$number
  for system in $systems; do line+=",${best[$system]// /,}"; done
  same=$([ "$(sort -u <<<"${digests%$'\n'}" | wc -l)" = 1 ] && echo yes || echo no)
  echo "$line,$same"
done

//! The functions of comparisons: `int4eq`, `text_lt`, and so on.

use millpond_types::other::CID;

use super::super::catalog::{
    ANYARRAY, BOOL, BPCHAR, BYTEA, DATE, FLOAT4, FLOAT8, INT2, INT4, INT8, JSONB_TYPE, LSN_TYPE,
    NAME, NUMERIC, OID, OIDVECTOR_TYPE, Proc, RECORD_TYPE, TEXT, TID_TYPE, TIMESTAMPTZ, UUID_TYPE,
    XID_TYPE, XID8_TYPE, other,
};
use super::super::datetime::{INTERVAL, TIME, TIMESTAMP, TIMETZ};
use super::{of, of_zone};

/// For two types the functions of `=`, `<>`, `<`, `<=`, `>` and `>=`, in this order.
macro_rules! compared {
    ([$kind:ident] $($left:ident $right:ident:
        $eq:literal $is_eq:literal, $ne:literal $is_ne:literal,
        $lt:literal $is_lt:literal, $le:literal $is_le:literal,
        $gt:literal $is_gt:literal, $ge:literal $is_ge:literal;)*) => {
        &[$(
            $kind($eq, $is_eq, &[$left, $right], BOOL, "="),
            $kind($ne, $is_ne, &[$left, $right], BOOL, "<>"),
            $kind($lt, $is_lt, &[$left, $right], BOOL, "<"),
            $kind($le, $is_le, &[$left, $right], BOOL, "<="),
            $kind($gt, $is_gt, &[$left, $right], BOOL, ">"),
            $kind($ge, $is_ge, &[$left, $right], BOOL, ">="),
        )*]
    };
}

pub(in super::super) static COMPARISONS: &[Proc] = compared! { [of]
    ANYARRAY ANYARRAY: 744 "array_eq", 390 "array_ne", 391 "array_lt", 393 "array_le",
        392 "array_gt", 396 "array_ge";
    BPCHAR BPCHAR: 1048 "bpchareq", 1053 "bpcharne", 1049 "bpcharlt", 1050 "bpcharle",
        1051 "bpchargt", 1052 "bpcharge";
    BYTEA BYTEA: 1948 "byteaeq", 1953 "byteane", 1949 "bytealt", 1950 "byteale", 1951 "byteagt",
        1952 "byteage";
    DATE DATE: 1086 "date_eq", 1091 "date_ne", 1087 "date_lt", 1088 "date_le", 1089 "date_gt",
        1090 "date_ge";
    DATE TIMESTAMP: 2340 "date_eq_timestamp", 2343 "date_ne_timestamp", 2338 "date_lt_timestamp",
        2339 "date_le_timestamp", 2341 "date_gt_timestamp", 2342 "date_ge_timestamp";
    FLOAT4 FLOAT8: 299 "float48eq", 300 "float48ne", 301 "float48lt", 302 "float48le",
        303 "float48gt", 304 "float48ge";
    FLOAT4 FLOAT4: 287 "float4eq", 288 "float4ne", 289 "float4lt", 290 "float4le", 291 "float4gt",
        292 "float4ge";
    FLOAT8 FLOAT4: 305 "float84eq", 306 "float84ne", 307 "float84lt", 308 "float84le",
        309 "float84gt", 310 "float84ge";
    FLOAT8 FLOAT8: 293 "float8eq", 294 "float8ne", 295 "float8lt", 296 "float8le", 297 "float8gt",
        298 "float8ge";
    INT2 INT4: 158 "int24eq", 164 "int24ne", 160 "int24lt", 166 "int24le", 162 "int24gt",
        168 "int24ge";
    INT2 INT8: 1850 "int28eq", 1851 "int28ne", 1852 "int28lt", 1854 "int28le", 1853 "int28gt",
        1855 "int28ge";
    INT2 INT2: 63 "int2eq", 145 "int2ne", 64 "int2lt", 148 "int2le", 146 "int2gt", 151 "int2ge";
    INT4 INT2: 159 "int42eq", 165 "int42ne", 161 "int42lt", 167 "int42le", 163 "int42gt",
        169 "int42ge";
    INT4 INT8: 852 "int48eq", 853 "int48ne", 854 "int48lt", 856 "int48le", 855 "int48gt",
        857 "int48ge";
    INT4 INT4: 65 "int4eq", 144 "int4ne", 66 "int4lt", 149 "int4le", 147 "int4gt", 150 "int4ge";
    INT8 INT2: 1856 "int82eq", 1857 "int82ne", 1858 "int82lt", 1860 "int82le", 1859 "int82gt",
        1861 "int82ge";
    INT8 INT4: 474 "int84eq", 475 "int84ne", 476 "int84lt", 478 "int84le", 477 "int84gt",
        479 "int84ge";
    INT8 INT8: 467 "int8eq", 468 "int8ne", 469 "int8lt", 471 "int8le", 470 "int8gt", 472 "int8ge";
    INTERVAL INTERVAL: 1162 "interval_eq", 1163 "interval_ne", 1164 "interval_lt",
        1165 "interval_le", 1167 "interval_gt", 1166 "interval_ge";
    JSONB_TYPE JSONB_TYPE: 4043 "jsonb_eq", 4038 "jsonb_ne", 4039 "jsonb_lt", 4041 "jsonb_le",
        4040 "jsonb_gt", 4042 "jsonb_ge";
    LSN_TYPE LSN_TYPE: 3233 "pg_lsn_eq", 3236 "pg_lsn_ne", 3231 "pg_lsn_lt", 3232 "pg_lsn_le",
        3235 "pg_lsn_gt", 3234 "pg_lsn_ge";
    NAME NAME: 62 "nameeq", 659 "namene", 655 "namelt", 656 "namele", 657 "namegt", 658 "namege";
    NAME TEXT: 240 "nameeqtext", 245 "namenetext", 241 "namelttext", 242 "nameletext",
        244 "namegttext", 243 "namegetext";
    NUMERIC NUMERIC: 1718 "numeric_eq", 1719 "numeric_ne", 1722 "numeric_lt", 1723 "numeric_le",
        1720 "numeric_gt", 1721 "numeric_ge";
    OID OID: 184 "oideq", 185 "oidne", 716 "oidlt", 717 "oidle", 1638 "oidgt", 1639 "oidge";
    OIDVECTOR_TYPE OIDVECTOR_TYPE: 679 "oidvectoreq", 619 "oidvectorne", 677 "oidvectorlt",
        678 "oidvectorle", 681 "oidvectorgt", 680 "oidvectorge";
    RECORD_TYPE RECORD_TYPE: 2981 "record_eq", 2982 "record_ne", 2983 "record_lt", 2985 "record_le",
        2984 "record_gt", 2986 "record_ge";
    TEXT TEXT: 67 "texteq", 157 "textne", 740 "text_lt", 741 "text_le", 742 "text_gt",
        743 "text_ge";
    TEXT NAME: 247 "texteqname", 252 "textnename", 248 "textltname", 249 "textlename",
        251 "textgtname", 250 "textgename";
    TIME TIME: 1145 "time_eq", 1106 "time_ne", 1102 "time_lt", 1103 "time_le", 1104 "time_gt",
        1105 "time_ge";
    TIMESTAMP TIMESTAMP: 2052 "timestamp_eq", 2053 "timestamp_ne", 2054 "timestamp_lt",
        2055 "timestamp_le", 2057 "timestamp_gt", 2056 "timestamp_ge";
    TIMESTAMP DATE: 2366 "timestamp_eq_date", 2369 "timestamp_ne_date", 2364 "timestamp_lt_date",
        2365 "timestamp_le_date", 2367 "timestamp_gt_date", 2368 "timestamp_ge_date";
    TIMESTAMPTZ TIMESTAMPTZ: 1152 "timestamptz_eq", 1153 "timestamptz_ne", 1154 "timestamptz_lt",
        1155 "timestamptz_le", 1157 "timestamptz_gt", 1156 "timestamptz_ge";
    TIMETZ TIMETZ: 1352 "timetz_eq", 1353 "timetz_ne", 1354 "timetz_lt", 1355 "timetz_le",
        1357 "timetz_gt", 1356 "timetz_ge";
    TID_TYPE TID_TYPE: 1292 "tideq", 1265 "tidne", 2791 "tidlt", 2793 "tidle", 2790 "tidgt",
        2792 "tidge";
    UUID_TYPE UUID_TYPE: 2956 "uuid_eq", 2959 "uuid_ne", 2954 "uuid_lt", 2955 "uuid_le",
        2958 "uuid_gt", 2957 "uuid_ge";
    XID8_TYPE XID8_TYPE: 5084 "xid8eq", 5085 "xid8ne", 5034 "xid8lt", 5036 "xid8le",
        5035 "xid8gt", 5037 "xid8ge";
};

/// Those of types that have equality and no order.
pub(in super::super) static EQUALITIES: &[Proc] = &[
    of(68, "xideq", &[XID_TYPE, XID_TYPE], BOOL, "="),
    of(3308, "xidneq", &[XID_TYPE, XID_TYPE], BOOL, "<>"),
    of(1319, "xideqint4", &[XID_TYPE, INT4], BOOL, "="),
    of(3309, "xidneqint4", &[XID_TYPE, INT4], BOOL, "<>"),
    of(69, "cideq", &[other(CID), other(CID)], BOOL, "="),
];

/// Those that ask for the session's time zone.
pub(in super::super) static COMPARISONS_IN_ZONE: &[Proc] = compared! { [of_zone]
    DATE TIMESTAMPTZ: 2353 "date_eq_timestamptz", 2356 "date_ne_timestamptz",
        2351 "date_lt_timestamptz", 2352 "date_le_timestamptz", 2354 "date_gt_timestamptz",
        2355 "date_ge_timestamptz";
    TIMESTAMP TIMESTAMPTZ: 2522 "timestamp_eq_timestamptz", 2525 "timestamp_ne_timestamptz",
        2520 "timestamp_lt_timestamptz", 2521 "timestamp_le_timestamptz",
        2523 "timestamp_gt_timestamptz", 2524 "timestamp_ge_timestamptz";
    TIMESTAMPTZ DATE: 2379 "timestamptz_eq_date", 2382 "timestamptz_ne_date",
        2377 "timestamptz_lt_date", 2378 "timestamptz_le_date", 2380 "timestamptz_gt_date",
        2381 "timestamptz_ge_date";
    TIMESTAMPTZ TIMESTAMP: 2529 "timestamptz_eq_timestamp", 2532 "timestamptz_ne_timestamp",
        2527 "timestamptz_lt_timestamp", 2528 "timestamptz_le_timestamp",
        2530 "timestamptz_gt_timestamp", 2531 "timestamptz_ge_timestamp";
};

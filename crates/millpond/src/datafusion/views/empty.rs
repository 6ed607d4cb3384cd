//! Relations of things that Millpond does not have. Clients join with them.

use super::Kind::{Array, Bool, Char, Int2, Int4, Name, Oid, Text};
use super::{Cell, Kind, Source, View};

fn nothing(_: &Source<'_>) -> Vec<Vec<Cell>> {
    Vec::new()
}

const fn empty(name: &'static str, oid: u32, columns: &'static [(&'static str, Kind)]) -> View {
    View { schema: "pg_catalog", name, oid, columns, rows: nothing }
}

/// The views of this file.
pub const VIEWS: &[View] = &[
    empty(
        "pg_auth_members",
        1261,
        &[("roleid", Oid), ("member", Oid), ("grantor", Oid), ("admin_option", Bool)],
    ),
    empty(
        "pg_description",
        2609,
        &[("objoid", Oid), ("classoid", Oid), ("objsubid", Int4), ("description", Text)],
    ),
    empty("pg_shdescription", 2396, &[("objoid", Oid), ("classoid", Oid), ("description", Text)]),
    empty(
        "pg_enum",
        3501,
        &[("oid", Oid), ("enumtypid", Oid), ("enumsortorder", Kind::Float4), ("enumlabel", Name)],
    ),
    empty(
        "pg_extension",
        3079,
        &[
            ("oid", Oid),
            ("extname", Name),
            ("extowner", Oid),
            ("extnamespace", Oid),
            ("extversion", Text),
        ],
    ),
    empty("pg_event_trigger", 3466, &[("oid", Oid), ("evtname", Name)]),
    empty("pg_foreign_server", 1417, &[("oid", Oid), ("srvname", Name)]),
    empty("pg_foreign_table", 3118, &[("ftrelid", Oid), ("ftserver", Oid), ("ftoptions", Array)]),
    empty(
        "pg_inherits",
        2611,
        &[("inhrelid", Oid), ("inhparent", Oid), ("inhseqno", Int4), ("inhdetachpending", Bool)],
    ),
    empty(
        "pg_partitioned_table",
        3350,
        &[("partrelid", Oid), ("partstrat", Char), ("partnatts", Int2), ("partdefid", Oid)],
    ),
    empty(
        "pg_policy",
        3256,
        &[
            ("oid", Oid),
            ("polname", Name),
            ("polrelid", Oid),
            ("polcmd", Char),
            ("polpermissive", Bool),
            ("polroles", Array),
            ("polqual", Text),
            ("polwithcheck", Text),
        ],
    ),
    empty(
        "pg_proc",
        1255,
        &[
            ("oid", Oid),
            ("proname", Name),
            ("pronamespace", Oid),
            ("proowner", Oid),
            ("prokind", Char),
            ("prorettype", Oid),
            ("proargtypes", Array),
            ("prosrc", Text),
            ("proisstrict", Bool),
            ("provolatile", Char),
            ("prolang", Oid),
        ],
    ),
    empty(
        "pg_publication",
        6104,
        &[("oid", Oid), ("pubname", Name), ("pubowner", Oid), ("puballtables", Bool)],
    ),
    empty("pg_publication_namespace", 6237, &[("oid", Oid), ("pnpubid", Oid), ("pnnspid", Oid)]),
    empty(
        "pg_publication_rel",
        6106,
        &[("oid", Oid), ("prpubid", Oid), ("prrelid", Oid), ("prqual", Text), ("prattrs", Array)],
    ),
    empty(
        "pg_range",
        3541,
        &[
            ("rngtypid", Oid),
            ("rngsubtype", Oid),
            ("rngmultitypid", Oid),
            ("rngcollation", Oid),
            ("rngsubopc", Oid),
        ],
    ),
    empty(
        "pg_rewrite",
        2618,
        &[
            ("oid", Oid),
            ("rulename", Name),
            ("ev_class", Oid),
            ("ev_type", Char),
            ("ev_enabled", Char),
            ("is_instead", Bool),
        ],
    ),
    empty("pg_sequence", 2224, &[("seqrelid", Oid), ("seqtypid", Oid), ("seqstart", Kind::Int8)]),
    empty(
        "pg_statistic_ext",
        3381,
        &[
            ("oid", Oid),
            ("stxrelid", Oid),
            ("stxname", Name),
            ("stxnamespace", Oid),
            ("stxkind", Array),
        ],
    ),
    empty("pg_subscription", 6100, &[("oid", Oid), ("subname", Name)]),
    empty(
        "pg_trigger",
        2620,
        &[
            ("oid", Oid),
            ("tgrelid", Oid),
            ("tgname", Name),
            ("tgfoid", Oid),
            ("tgenabled", Char),
            ("tgisinternal", Bool),
            ("tgparentid", Oid),
            ("tgconstraint", Oid),
        ],
    ),
    empty(
        "pg_views",
        12050,
        &[("schemaname", Name), ("viewname", Name), ("viewowner", Name), ("definition", Text)],
    ),
    empty(
        "pg_matviews",
        12051,
        &[("schemaname", Name), ("matviewname", Name), ("matviewowner", Name)],
    ),
    empty(
        "pg_sequences",
        12052,
        &[("schemaname", Name), ("sequencename", Name), ("sequenceowner", Name)],
    ),
    empty(
        "pg_prepared_xacts",
        12053,
        &[("transaction", Oid), ("gid", Text), ("owner", Name), ("database", Name)],
    ),
];

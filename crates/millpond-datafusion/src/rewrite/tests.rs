use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

fn adapted(sql: &str) -> String {
    let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
    let Statement::Query(mut query) = statements.remove(0) else { panic!("not a query: {sql}") };
    super::adapt(&mut query);
    query.to_string()
}

#[test]
fn operators_collations_and_schemas_are_spelled_plainly() {
    assert_eq!(
        adapted(
            "SELECT pg_catalog.f(a) FROM t WHERE a OPERATOR(pg_catalog.~) '^(t)$' COLLATE pg_catalog.default"
        ),
        "SELECT f(a) AS \"f\" FROM t WHERE a ~ '^(t)$'"
    );
    assert_eq!(adapted("SELECT a FROM public.t"), "SELECT a FROM t");
}

#[test]
fn casts_to_registered_names_are_calls() {
    assert_eq!(
        adapted("SELECT c.oid::pg_catalog.regclass, 't'::regclass::oid FROM c"),
        "SELECT regclass_name(c.oid) AS \"oid\", regclass_oid('t') AS \"regclass\" FROM c"
    );
}

#[test]
fn a_name_stands_for_a_relation_where_a_function_takes_one() {
    assert_eq!(
        adapted("SELECT pg_relation_size('t') AS a, pg_catalog.pg_table_size(c.oid) AS b FROM c"),
        "SELECT pg_relation_size(regclass_oid('t')) AS a, pg_table_size(c.oid) AS b FROM c"
    );
}

#[test]
fn a_series_is_called_as_its_function_is() {
    assert_eq!(
        adapted("SELECT g FROM generate_series(1, 3) g"),
        "SELECT g FROM generate_series(1, 3) g (g)"
    );
    assert_eq!(
        adapted("SELECT * FROM generate_series(1, 3)"),
        "SELECT * FROM generate_series(1, 3) AS generate_series (generate_series)"
    );
    let named = "SELECT x FROM generate_series(1, 3) AS g (x)";
    assert_eq!(adapted(named), named);
}

#[test]
fn functions_in_from_are_found_by_their_names() {
    assert_eq!(
        adapted("SELECT 1 AS a FROM pg_catalog.pg_buffercache_summary() AS s"),
        "SELECT 1 AS a FROM pg_buffercache_summary() AS s"
    );
    let rewritten = adapted("SELECT 1 AS a FROM pg_catalog.pg_stat_get_backend_io($1)");
    assert!(
        rewritten.starts_with("SELECT 1 AS a FROM (SELECT backend_type, object, "),
        "{rewritten}"
    );
    assert!(
        rewritten.ends_with(" WHERE \"of pid\" = $1) AS pg_stat_get_backend_io"),
        "{rewritten}"
    );
    // An argument that names columns has them from the tables before it.
    let lateral_sql = "SELECT 1 AS a FROM pg_stat_activity a, pg_stat_get_backend_io(a.pid) i";
    let lateral = adapted(lateral_sql);
    assert!(lateral.contains("LATERAL (SELECT ") && lateral.ends_with(" = a.pid) i"), "{lateral}");
    let explicit = lateral_sql.replace(", pg_stat_get", ", LATERAL pg_catalog.pg_stat_get");
    assert_eq!(adapted(&explicit), lateral);
    let joined =
        adapted("SELECT 1 AS a FROM t JOIN LATERAL pg_stat_get_backend_io(t.a) AS i ON true");
    assert!(joined.contains("JOIN LATERAL (SELECT "), "{joined}");
    assert!(joined.ends_with(" = t.a) AS i ON true"), "{joined}");
    // Others are left alone, and what would get a column more.
    for others in [
        "SELECT 1 AS a FROM pg_stat_get_backend_io(1, 2)",
        "SELECT 1 AS a FROM pg_stat_get_backend_io(1) WITH ORDINALITY AS i",
        "SELECT 1 AS a FROM t, LATERAL pg_stat_get_backend_io(t.a) WITH ORDINALITY AS i",
        "SELECT 1 AS a FROM t, LATERAL another_function(t.a) AS i",
    ] {
        assert_eq!(adapted(others), others);
    }
}

#[test]
fn an_alias_may_name_some_columns_of_a_function() {
    assert_eq!(
        adapted("SELECT 1 AS a FROM pg_buffercache_usage_counts() AS c (usage, n)"),
        "SELECT 1 AS a FROM pg_buffercache_usage_counts() AS c (usage, n, dirty, pinned)"
    );
    let io = adapted("SELECT 1 AS a FROM pg_stat_get_backend_io(1) AS i (kind)");
    assert!(io.contains(") AS i (kind, object, context, reads, "), "{io}");
    let all = "SELECT 1 AS a FROM pg_buffercache_usage_counts() AS c (u, n, d, p)";
    assert_eq!(adapted(all), all);
}

#[test]
fn joins_with_empty_relations_are_empty() {
    assert_eq!(
        adapted(
            "SELECT c.oid::pg_catalog.regclass FROM pg_class c, pg_inherits i ORDER BY inhseqno"
        ),
        "SELECT NULL::TEXT AS \"oid\" WHERE false"
    );
    // An outer join keeps its left side.
    let outer = "SELECT p.partstrat FROM pg_class AS c LEFT JOIN pg_partitioned_table AS p ON (p.partrelid = c.oid)";
    assert_eq!(adapted(outer), outer);
    // An aggregate over nothing is a row.
    let counted = "SELECT count(*) AS \"count\" FROM pg_inherits";
    assert_eq!(adapted(counted), counted);
}

#[test]
fn laterals_without_from_are_names_for_expressions() {
    assert_eq!(
        adapted(
            "SELECT o.n AS \"n\" FROM pg_class AS c CROSS JOIN LATERAL (SELECT pg_catalog.f(c.x)) AS o(n) WHERE o.n IS NOT NULL GROUP BY o.n"
        ),
        "SELECT (f(c.x)) AS \"n\" FROM pg_class AS c WHERE (f(c.x)) IS NOT NULL GROUP BY (f(c.x))"
    );
}

#[test]
fn any_over_lists_and_subqueries_is_in() {
    assert_eq!(
        adapted("SELECT a = ANY(ARRAY[1, 2]) FROM t"),
        "SELECT a IN (1, 2) AS \"?column?\" FROM t"
    );
    assert_eq!(
        adapted("SELECT a FROM t WHERE a = ANY(SELECT b FROM u)"),
        "SELECT a FROM t WHERE a IN (SELECT b FROM u)"
    );
}

//! What is as before after a restart.

use crate::common::run;
use millpond::{Database, Settings};

/// How many rows a table has is known before the first count of it is planned. Only the choice of
/// DataFusion shows it.
#[test]
fn the_first_count_is_planned_as_later_ones_are() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let settings = Settings::default().with("shared_buffers", "8MB").unwrap();
        // Nothing else opens the table.
        Database::open(dir.path(), settings.with("autovacuum", "off").unwrap()).unwrap()
    };
    let explain = "explain select count(*) from t";
    let planned = {
        let database = open();
        let c = &mut database.connect().unwrap();
        c.batch("create table t (a int)").unwrap();
        let small = run(c, explain);
        let rows: Vec<_> = (0..3000).map(|a| format!("({a})")).collect();
        c.batch(&format!("insert into t values {}", rows.join(", "))).unwrap();
        let large = run(c, explain);
        assert_ne!(large, small);
        large
    };
    let database = open();
    let c = &mut database.connect().unwrap();
    assert_eq!(run(c, explain), planned);
    assert_eq!(run(c, "select count(*) from t"), "count\n3000\nSELECT 1\n");
    assert_eq!(run(c, explain), planned);
}

//! An index whose file is damaged is built again from its table.

use super::*;

#[test]
fn reindex_mends_a_damaged_index() {
    let dir = tempfile::tempdir().unwrap();
    make_tables(dir.path());
    settle(dir.path());
    let file = {
        let engine = open(dir.path());
        let session = engine.session().unwrap();
        let file = path_of(table(&session, "indexed").indexes[0].storage.fork(Fork::Main));
        drop(session);
        engine.shutdown().unwrap();
        file
    };
    let pages = fs::metadata(dir.path().join(&file)).unwrap().len() / PAGE;
    (1..pages).for_each(|page| zero(&dir.path().join(&file), page));

    let engine = open(dir.path());
    let mut session = engine.session().unwrap();
    let indexed = table(&session, "indexed");
    let error = keys(&mut session, &indexed).expect_err("the index is damaged");
    assert_names(&error, &file);
    run(&mut session, |s| s.ddl().reindex(indexed.oid, None)).unwrap();
    let indexed = table(&session, "indexed");
    assert_eq!(keys(&mut session, &indexed).unwrap(), ROWS as usize);
    assert_whole(&engine);
}

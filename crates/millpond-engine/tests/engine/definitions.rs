//! Tables and indexes: constraints, index builds, maintenance, rollback.

use std::sync::Arc;

use millpond_engine::catalog::TableDef;

use super::*;

#[test]
fn constraints_are_kept() {
    let (_dir, engine, mut session, accounts) = bank(10);
    let error = run(&mut session, |s| s.insert(&accounts, &row(5, "x", 1))).unwrap_err();
    match error {
        EngineError::Table(TableError::DuplicateKey { table, index, columns, values }) => {
            assert_eq!(
                (&*table, &*index, columns),
                ("accounts", "accounts_pkey", vec!["id".into()])
            );
            assert_eq!(values, [millpond_engine::types::Value::Int4(5)]);
        }
        other => panic!("{other}"),
    }
    let null = [Datum::Null, Datum::Text("x"), Datum::Int8(1)];
    let error = run(&mut session, |s| s.insert(&accounts, &null)).unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::NotNull { .. })), "{error}");
    run(&mut session, |s| {
        // A key can be reused once its row is deleted, even within one transaction.
        let mut found = find(s, &accounts, 5)?;
        assert!(matches!(s.delete(&accounts, &mut found)?, RowOutcome::Done(_)));
        s.insert(&accounts, &row(5, "again", 1))?;
        Ok(())
    })
    .unwrap();
    // Changing a key to an existing one is refused.
    let error = run(&mut session, |s| {
        let mut found = find(s, &accounts, 1)?;
        s.update(&accounts, &mut found, &row(2, "x", 1))
    })
    .unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::DuplicateKey { .. })), "{error}");
    run(&mut session, |s| {
        assert_eq!(balance(s, &accounts, 5)?, Some(1));
        assert_eq!(balance(s, &accounts, 1)?, Some(100));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
}

/// A table of 5000 rows without indexes.
fn filled(session: &mut Session) -> Arc<TableDef> {
    let accounts = create(session, NewTable { indexes: Vec::new(), ..common::accounts() });
    let mut batch = RowBatch::new();
    run(session, |s| {
        s.lock_table(&accounts, LockMode::RowExclusive)?;
        for id in 0..5000 {
            s.add_to_batch(&accounts, &row(id, &format!("owner {}", id % 100), 100), &mut batch)?;
        }
        assert_eq!(s.insert_batch(&accounts, &mut batch)?, 5000);
        Ok(())
    })
    .unwrap();
    accounts
}

#[test]
fn failed_index_builds_leave_nothing() {
    let (_dir, engine, mut session) = opened();
    let accounts = filled(&mut session);
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    session.ddl().create_index(index(accounts.oid, &[1])).unwrap();
    session.abort();
    assert!(session.catalog().relation("accounts_owner_idx").is_none());
    let unique = NewIndex { unique: true, ..index(accounts.oid, &[1]) };
    let error = run(&mut session, |s| s.ddl().create_index(unique)).unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::NotUnique { .. })), "{error}");
    assert!(table(&session, "accounts").indexes.is_empty());
    assert_whole(&engine);
}

#[test]
fn indexes_are_built_from_rows_and_kept_up() {
    let (_dir, engine, mut session) = opened();
    let accounts = filled(&mut session);
    run(&mut session, |s| {
        s.ddl().create_index(index(accounts.oid, &[1, 0]))?;
        s.ddl().create_index(NewIndex { primary: true, ..index(accounts.oid, &[0]) })
    })
    .unwrap();
    let stale = accounts;
    run(&mut session, |s| {
        let error = s.lock_table(&stale, LockMode::AccessShare).unwrap_err();
        assert!(matches!(error, EngineError::Table(TableError::StaleDefinition(_))), "{error}");
        Ok(())
    })
    .unwrap();
    let accounts = table(&session, "accounts");
    assert_eq!(accounts.indexes.len(), 2);
    assert!(accounts.columns[0].not_null);
    let owners = accounts.indexes[1].clone();
    assert_eq!(owners.name, "accounts_owner_id_idx");
    run(&mut session, |s| {
        let key = [Datum::Text("owner 42")];
        let ids = ids_by(s, &accounts, &owners, &key, Direction::Backward)?;
        assert_eq!(ids, Vec::from_iter((0..50).map(|i| i * 100 + 42).rev()));
        for id in 0..500 {
            assert!(add(s, &accounts, id, 5)?);
        }
        Ok(())
    })
    .unwrap();
    run(&mut session, |s| {
        assert_eq!(total(s, &accounts)?, (5000, 502_500));
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
    let summary = session.maintenance().vacuum(accounts.oid).unwrap();
    assert_eq!(summary.remaining, 5000);
    assert_whole(&engine);
    run(&mut session, |s| s.ddl().drop_index(owners.oid, false)).unwrap();
    let pkey = accounts.primary_key().unwrap().oid;
    let error = run(&mut session, |s| s.ddl().drop_index(pkey, false)).unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::RequiredByConstraint { .. })));
    assert_whole(&engine);
}

#[test]
fn indexes_are_built_again_in_new_files() {
    let (dir, engine, mut session, accounts) = bank(3000);
    run(&mut session, |s| s.ddl().create_index(index(accounts.oid, &[1, 0]))).unwrap();
    let accounts = table(&session, "accounts");
    let files = engine.pool().store().relations().unwrap().len();
    let storages = |session: &Session| {
        let accounts = table(session, "accounts");
        Vec::from_iter(accounts.indexes.iter().map(|index| index.storage))
    };
    let before = storages(&session);

    // A rollback leaves the old files.
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    session.ddl().reindex(accounts.oid, None).unwrap();
    session.abort();
    assert_eq!(storages(&session), before);
    assert_eq!(engine.pool().store().relations().unwrap().len(), files);

    run(&mut session, |s| {
        for id in 1..1000 {
            let mut found = find(s, &accounts, id)?;
            assert!(matches!(s.delete(&accounts, &mut found)?, RowOutcome::Done(_)));
        }
        Ok(())
    })
    .unwrap();
    let by_owner = accounts.indexes[1].oid;
    let names = run(&mut session, |s| s.ddl().reindex(accounts.oid, Some(by_owner))).unwrap();
    assert_eq!(names, ["accounts_owner_id_idx"]);
    let after = storages(&session);
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1], before[1]);
    let names = run(&mut session, |s| s.ddl().reindex(accounts.oid, None)).unwrap();
    assert_eq!(names, ["accounts_pkey", "accounts_owner_id_idx"]);
    assert_ne!(storages(&session)[0], before[0]);
    assert_eq!(engine.pool().store().relations().unwrap().len(), files);
    let accounts = table(&session, "accounts");
    run(&mut session, |s| {
        assert_eq!(balance(s, &accounts, 500)?, None);
        assert_eq!(balance(s, &accounts, 1500)?, Some(100));
        assert_eq!(ids(s, &accounts, Direction::Forward)?, Vec::from_iter(1000..=3000));
        Ok(())
    })
    .unwrap();
    assert!(run(&mut session, |s| s.insert(&accounts, &row(1500, "x", 1))).is_err());
    assert_whole(&engine);
    close(session, engine);
    let engine = open(dir.path());
    let session = engine.session().unwrap();
    assert_eq!(table(&session, "accounts").indexes.len(), 2);
    assert_whole(&engine);
}

#[test]
fn definitions_are_transactional() {
    let (dir, engine, mut session) = opened();
    let mut other = engine.session().unwrap();
    let files = |engine: &Engine| engine.pool().store().relations().unwrap().len();
    let before = files(&engine);

    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    let created = session.ddl().create_table(accounts()).unwrap();
    session.insert(&created, &row(1, "mine", 5)).unwrap();
    assert!(session.catalog().table_by_name("accounts").is_some());
    assert!(other.catalog().table_by_name("accounts").is_none());
    session.start_statement().unwrap();
    assert_eq!(balance(&session, &created, 1).unwrap(), Some(5));
    session.abort();
    assert!(session.catalog().table_by_name("accounts").is_none());
    assert_eq!(files(&engine), before);

    let created = create(&mut session, accounts());
    fill(&mut session, &created, 100);
    let with_table = files(&engine);
    // TRUNCATE and DROP can be rolled back, too.
    session.begin(RC).unwrap();
    session.start_statement().unwrap();
    session.ddl().truncate(&[created.oid]).unwrap();
    let emptied = table(&session, "accounts");
    session.start_statement().unwrap();
    assert_eq!(total(&session, &emptied).unwrap(), (0, 0));
    session.insert(&emptied, &row(1, "new", 1)).unwrap();
    session.ddl().drop_table(created.oid).unwrap();
    assert!(session.catalog().table_by_name("accounts").is_none());
    session.abort();
    assert_eq!(files(&engine), with_table);
    let back = table(&session, "accounts");
    run(&mut session, |s| {
        assert_eq!(total(s, &back)?, (100, 10_000));
        s.ddl().truncate(&[back.oid])
    })
    .unwrap();
    assert_eq!(files(&engine), with_table);
    let emptied = table(&other, "accounts");
    fill(&mut other, &emptied, 3);
    assert_whole(&engine);
    let error = run(&mut session, |s| s.ddl().create_table(accounts())).unwrap_err();
    assert!(matches!(error, EngineError::Table(TableError::DuplicateRelation(_))));
    run(&mut session, |s| s.ddl().drop_table(emptied.oid)).unwrap();
    assert_eq!(files(&engine), before);
    assert!(other.catalog().table_by_name("accounts").is_none());
    drop((session, other));
    engine.shutdown().unwrap();
    drop(engine);
    let engine = open(dir.path());
    assert_eq!(engine.catalog().tables().count(), 0);
}

#[test]
fn every_type_can_be_a_key() {
    let (_dir, engine, mut session) = opened();
    let types = [
        DataType::Bool,
        DataType::Int2,
        DataType::Int8,
        DataType::Float8,
        DataType::Numeric { precision_scale: None },
        DataType::Char(5),
        DataType::Bytea,
        DataType::Date,
        DataType::Timestamptz(None),
    ];
    let columns = types.iter().enumerate().map(|(i, ty)| ColumnDef::new(format!("c{i}"), *ty));
    let all = Vec::from_iter(0..types.len());
    let created = create(
        &mut session,
        NewTable {
            name: "t".into(),
            columns: columns.collect(),
            fillfactor: 100,
            indexes: vec![NewIndex { unique: true, ..index(0, &all) }],
        },
    );
    assert_eq!(created.indexes[0].name, "t_c0_c1_c2_c3_c4_c5_c6_c7_c8_idx");
    let number = "12.50".parse::<millpond_engine::types::Numeric>().unwrap();
    let values = [
        Datum::Bool(true),
        Datum::Int2(-5),
        Datum::Int8(5),
        Datum::Float8(f64::NAN),
        Datum::Numeric(number.as_ref()),
        Datum::Text("ab"),
        Datum::Bytea(&[0, 255]),
        Datum::Date(-1),
        Datum::Timestamptz(i64::MAX),
    ];
    run(&mut session, |s| s.insert(&created, &values)).unwrap();
    assert!(run(&mut session, |s| s.insert(&created, &values)).is_err());
    // NULLs are never equal.
    let mut with_null = values;
    with_null[3] = Datum::Null;
    run(&mut session, |s| s.insert(&created, &with_null)).unwrap();
    run(&mut session, |s| s.insert(&created, &with_null)).unwrap();
    run(&mut session, |s| {
        let mut found = RowBuf::new();
        assert!(s.lookup(&created, &created.indexes[0], &values, &mut found)?);
        assert!(found.column(&created, 8).unwrap() == values[8]);
        Ok(())
    })
    .unwrap();
    assert_whole(&engine);
}

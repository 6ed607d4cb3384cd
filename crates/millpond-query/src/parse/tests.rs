use proptest::prelude::*;

use super::*;

fn parse(sql: &str) -> Result<Vec<Statement>> {
    super::parse(sql, &|| false)
}

fn one(sql: &str) -> Statement {
    let mut parsed = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(parsed.len(), 1, "{sql}");
    parsed.remove(0)
}

#[test]
fn what_pgbench_sends() {
    assert!(matches!(
        one("drop table if exists pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"),
        Statement::DropTable { names, if_exists: true } if names.len() == 4
    ));
    assert!(matches!(
        one(
            "create table pgbench_history(tid int,bid int,aid    int,delta int,mtime timestamp,filler char(22))"
        ),
        Statement::CreateTable(_)
    ));
    assert!(matches!(
        one(
            "create table pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84)) with (fillfactor=100)"
        ),
        Statement::CreateTable(_)
    ));
    assert!(matches!(one("begin"), Statement::Begin { .. }));
    assert!(matches!(
        one("truncate table pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"),
        Statement::Truncate { names } if names.len() == 4
    ));
    match one("copy pgbench_accounts from stdin with (freeze on)") {
        Statement::Copy(copy) => {
            assert!(copy.options.freeze && !copy.to && !copy.options.csv);
            assert_eq!(copy.options.delimiter, b'\t');
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        one("vacuum analyze pgbench_branches"),
        Statement::Vacuum { options: VacuumOptions { analyze: true, .. }, tables } if tables.len() == 1
    ));
    assert!(matches!(
        one("VACUUM (VERBOSE, BUFFER_USAGE_LIMIT '2MB') t"),
        Statement::Vacuum {
            options: VacuumOptions { verbose: true, usage_limit_kb: Some(2048), .. },
            ..
        }
    ));
    assert!(matches!(
        one("analyze (buffer_usage_limit 0)"),
        Statement::Analyze { options: VacuumOptions { usage_limit_kb: Some(0), .. }, .. }
    ));
    assert!(matches!(
        one("alter table pgbench_branches add primary key (bid)"),
        Statement::AlterTable(_)
    ));
    assert!(matches!(one("SET search_path TO a, \"B\""),
        Statement::Set { value: Some(value), .. } if value == "a, B"));
}

#[test]
fn many_small_statements() {
    assert!(matches!(
        one("START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
        Statement::Begin {
            modes: TransactionModes {
                isolation: Some(IsolationLevel::RepeatableRead),
                read_only: Some(true),
                deferrable: None
            },
            start: true
        }
    ));
    assert!(matches!(one("end"), Statement::Commit { chain: false }));
    assert!(matches!(one("abort and chain"), Statement::Rollback { chain: true }));
    assert!(matches!(one("rollback to a"), Statement::Unsupported(_)));
    assert!(matches!(one("show all"), Statement::Show(Which::All)));
    assert!(matches!(one("reset work_mem"), Statement::Reset(Which::Named(_))));
    assert!(matches!(
        one("set local statement_timeout = '5s'"),
        Statement::Set { local: true, .. }
    ));
    assert!(matches!(one("explain (costs off) select 1"), Statement::Explain(_)));
    assert!(
        matches!(one("prepare p(int, text) as select $1"), Statement::Prepare(prepare) if prepare.types.len() == 2)
    );
    assert!(matches!(one("execute p(1, 'a')"), Statement::Execute { args, .. } if args.len() == 2));
    assert!(matches!(
        one("lock table a in share mode nowait"),
        Statement::Lock { mode: tree::LockMode::Share, nowait: true, .. }
    ));
    assert!(
        matches!(one("copy (select 1) to stdout csv header"), Statement::Copy(copy) if copy.options.csv && copy.options.header)
    );
    assert!(
        matches!(one("create view v as select 1"), Statement::Unsupported(what) if what == "CREATE VIEW")
    );
    assert_eq!(parse("select 1;; select 2;").unwrap().len(), 2);
    assert!(parse("  ; ").unwrap().is_empty());
}

fn error(sql: &str) -> SqlError {
    match parse(sql) {
        Ok(parsed) => panic!("{sql} parsed: {parsed:?}"),
        Err(error) => error,
    }
}

#[test]
fn errors_have_positions() {
    let e = error("SELEC 1");
    assert_eq!((e.message.as_str(), e.position), ("syntax error at or near \"SELEC\"", Some(1)));
    let e = error("select *\nfrom t where )");
    assert_eq!(e.sqlstate, SqlState::SYNTAX_ERROR);
    assert_eq!(e.position, Some(23), "{e}");
    let e = error("select 'é', (1");
    assert_eq!(e.message, "syntax error at end of input");
    assert_eq!(e.position, Some(15));
    let e = error("select 'abc");
    assert_eq!(e.position, Some(8));
    assert!(e.message.starts_with("unterminated quoted string at or near"), "{e}");
    let e = error("begin foo");
    assert_eq!(e.message, "syntax error at or near \"foo\"");
    assert_eq!(e.position, Some(7));
}

#[test]
fn depth_is_limited() {
    let long = format!("select {}1", "1+".repeat(7_000));
    assert_eq!(error(&long).sqlstate, SqlState::STATEMENT_TOO_COMPLEX);
    let deep = format!("select {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert_eq!(error(&deep).sqlstate, SqlState::STATEMENT_TOO_COMPLEX);
    let not = format!("select {}true", "not ".repeat(5_000));
    assert_eq!(error(&not).sqlstate, SqlState::STATEMENT_TOO_COMPLEX);
    let case = format!("select {}1{}", "case when true then ".repeat(400), " end".repeat(400));
    assert!(parse(&case).is_err());
    for sql in [
        "interval ".repeat(10_000),
        "select ".to_owned() + &"interval ".repeat(10_000) + "'1 day'",
        "copy (".repeat(10_000) + "select 1" + &") to stdout".repeat(10_000),
        "copy (copy (select 1) to stdout) to stdout".to_owned(),
        "copy (explain select 1) to stdout".to_owned(),
    ] {
        assert!(parse(&sql).is_err());
    }
    let interval = format!("select {}'1'", "interval ".repeat(10_000));
    assert_eq!(error(&interval).sqlstate, SqlState::SYNTAX_ERROR);
    // A chain that is just short enough is parsed, walked and dropped on a thread with a small
    // stack.
    let fine = format!("select {}1, {}true", "1+".repeat(190), "true or ".repeat(590));
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(move || {
        let parsed = parse(&fine).unwrap();
        drop(parsed);
    });
    thread.unwrap().join().unwrap();
    // Many rows are no chain.
    let rows = format!("insert into t values {}(1, -2)", "(1, -2),".repeat(10_000));
    assert!(parse(&rows).is_ok());
}

#[test]
fn texts_that_the_parser_tries_in_many_ways_end() {
    // Each call doubles, or more than that, how often what is within is tried: none of these would
    // end.
    for start in [
        "substring(",
        "overlay(",
        "position(",
        "ceil(",
        "cast(",
        "convert(",
        "interval(",
        "not(",
        "case(",
        "f(",
        "a.b(",
        "(a).b(",
        "a.b.c[",
        "f(a := ",
        "coalesce(",
        "array[",
        "(values (",
        "(select * from (",
        "row(",
        "extract(",
    ] {
        for head in ["select ", "select * from "] {
            for tail in ["", "1 1"] {
                let sql = format!("{head}{}{tail}", start.repeat(60));
                let state = error(&sql).sqlstate;
                let known = [SqlState::SYNTAX_ERROR, SqlState::STATEMENT_TOO_COMPLEX];
                assert!(known.contains(&state), "{state:?} for {sql}");
            }
        }
    }
}

#[test]
fn calls_in_calls_and_tables_in_tables_are_parsed() {
    let calls = format!("select {}a{}", "lower(".repeat(30), ")".repeat(30));
    assert_eq!(parse(&calls).unwrap().len(), 1);
    let replace = format!("select {}a{}", "replace(".repeat(30), ", 'x', 'y')".repeat(30));
    assert_eq!(parse(&replace).unwrap().len(), 1);
    let tables = format!("select * from {}t{}", "(select * from ".repeat(15), ") x".repeat(15));
    assert_eq!(parse(&tables).unwrap().len(), 1);
    let named = "select f(a => 1, b := 2, 3)";
    assert_eq!(parse(named).unwrap().len(), 1);
}

proptest! {
    #[test]
    fn no_text_panics(text in ".{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_sequence_of_words_panics(words in prop::collection::vec(prop_oneof![
        Just("select"), Just("from"), Just("copy"), Just("("), Just(")"), Just(","), Just("'a'"),
        Just("1"), Just("set"), Just("to"), Just("="), Just("begin"), Just("vacuum"), Just("t"),
        Just("create"), Just("table"), Just("int"), Just("explain"), Just("insert"), Just("into"),
        Just("values"), Just("with"), Just("stdin"), Just(";"), Just("."), Just("*"), Just("lock"),
        Just("in"), Just("mode"), Just("$1"), Just("-"), Just("not"), Just("null"), Just("drop"),
    ], 0..12)) {
        let _ = parse(&words.join(" "));
    }
}

//! What watchers see of sessions.

use crate::common::{fresh, run};
use millpond::{Connection, Executed, Params, Value, Wait};
use millpond_engine::proc::{ActivityState, SessionInfo};

use crate::common::{Fresh, Transcript};

fn seen(fresh: &Fresh, pid: i32) -> SessionInfo {
    let sessions = fresh.database.statistics().sessions();
    let its = sessions.into_iter().find(|session| session.process_id == pid as u32);
    its.expect("a session")
}

fn state_and_query(fresh: &Fresh, c: &Connection) -> (ActivityState, String) {
    let statement = seen(fresh, c.process_id()).statement;
    (statement.state, statement.query.expect("a text"))
}

#[test]
fn the_last_statement_and_what_became_of_it_are_shown() {
    use ActivityState::{Idle, IdleInTransaction, IdleInTransactionAborted};
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    assert_eq!(state_and_query(&fresh, &c), (Idle, String::new()));
    for (sql, state) in [
        ("create table t (k int primary key, v text)", Idle),
        ("insert into t values (1, 'ü'), (2, null)", Idle),
        ("select v from t where k = 1", Idle),
        ("select v from t where k = 2", Idle),
        ("select nonsense", Idle),
        ("begin", IdleInTransaction),
        ("select v from t where k = 1 /* again */", IdleInTransaction),
        ("select 1/0", IdleInTransactionAborted),
        ("rollback; select 1", Idle),
        ("", Idle),
    ] {
        run(&mut c, sql);
        assert_eq!(state_and_query(&fresh, &c), (state, sql.to_owned()));
    }
    let long = format!("select '{}'", "ü".repeat(2000));
    run(&mut c, &long);
    let (_, shown) = state_and_query(&fresh, &c);
    assert!(long.starts_with(&shown) && (1020..1024).contains(&shown.len()), "{}", shown.len());
}

#[test]
fn prepared_statements_take_turns() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    c.batch("create table t (k int primary key); insert into t values (1)").unwrap();
    let texts = ["select k from t where k = $1", "select -k from t where k = $1"];
    let prepared = texts.map(|text| c.prepare(text, &[]).unwrap());
    // As the server does: what a client sends lasts until its Sync.
    c.set_pipelined(true);
    for turn in [0, 0, 1, 1, 0] {
        c.set_wait(Wait::Never);
        let params = Params::from_iter([Value::Int4(1)]);
        let mut portal = c.bind(&prepared[turn], params).unwrap();
        let mut sink = Transcript::default();
        assert_eq!(c.execute_portal(&mut portal, 0, &mut sink).unwrap(), Executed::Complete);
        let (state, text) = state_and_query(&fresh, &c);
        assert_eq!((state, &*text), (ActivityState::Active, texts[turn]), "Sync is to come");
        assert_eq!(c.sync(&mut sink).unwrap(), Executed::Complete);
        assert_eq!(state_and_query(&fresh, &c), (ActivityState::Idle, texts[turn].to_owned()));
        c.set_wait(Wait::Allowed);
        c.batch("select 3").unwrap();
        assert_eq!(state_and_query(&fresh, &c).1, "select 3");
    }
}

#[test]
fn times_follow_one_another() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "begin");
    let first = seen(&fresh, c.process_id());
    run(&mut c, "select pg_sleep(0.002)");
    let second = seen(&fresh, c.process_id());
    assert!(first.in_transaction && second.in_transaction);
    let (a, b) = (first.statement, second.statement);
    assert_eq!(a.transaction_began, b.transaction_began);
    assert_eq!(a.transaction_began, a.began, "the transaction begins with its first statement");
    assert!(first.activity.started <= a.began.unwrap());
    assert!(a.began <= a.state_changed && a.state_changed <= b.began);
    assert!(b.state_changed.unwrap() >= b.began.unwrap() + 2000);
}

#[test]
fn a_name_is_shown_as_it_is_now() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    let name = |c: &Connection| seen(&fresh, c.process_id()).activity.application.to_string();
    run(&mut c, "set application_name = 'one'");
    assert_eq!(name(&c), "one");
    run(&mut c, "begin; set local application_name = 'two'");
    assert_eq!(name(&c), "two");
    run(&mut c, "rollback");
    assert_eq!(name(&c), "one");
}

#[test]
fn another_session_in_the_same_place_shows_nothing_of_the_last() {
    let fresh = fresh();
    let mut c = fresh.database.connect().unwrap();
    run(&mut c, "set application_name = 'one'");
    drop(c);
    let c = fresh.database.connect().unwrap();
    let seen = seen(&fresh, c.process_id());
    assert_eq!(seen.statement.query.as_deref(), Some(""));
    assert_eq!((seen.statement.began, &*seen.activity.application), (None, ""));
}

//! Invalid statements and messages against the built server.

mod common;

use common::raw::{Raw, V3_0, bind, execute, message, parse, sync};
use common::server::ServerProcess;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::io::Write;

const CORPUS: &[&str] = &[
    "select a, b from t where a = 5",
    "select a, b from t where a between 1 and 9 order by a desc limit 3 offset 1",
    "select b from t where a in (1, 2, 3)",
    "select count(*), sum(a), min(b) from t where a > 2",
    "insert into t (a, b, c) values (100, 'text', 1.5), (101, null, -0.1) returning a",
    "update t set b = b || 'x', c = c + 1 where a = 3 returning *",
    "delete from t where a >= 90",
    "create table if not exists u (x int primary key, y numeric(10, 2) default 0, z timestamptz)",
    "create unique index on t (b, a)",
    "drop table if exists u, v",
    "alter table t add primary key (a)",
    "truncate t",
    "begin isolation level repeatable read",
    "commit",
    "rollback",
    "savepoint s",
    "set statement_timeout = '1s'",
    "show server_version",
    "explain select * from t where a = 1",
    "select -9223372036854775808, 2147483647 + 1, 1 / 0, 1e400, 'x'::int",
    "select date '2000-02-30', timestamp '1999-12-31 24:00:00', '\\xzz'::bytea",
    "vacuum analyze t",
    "copy t to stdout",
    "select $1",
    "select * from pg_class where oid = 1",
    "values (1, 2), (3, 4)",
    "select case when a > 1 then 'x' else null end, coalesce(b, 'none') from t where a < 4",
];

const WORDS: &[&str] = &[
    "select",
    "from",
    "where",
    "(",
    ")",
    ",",
    ";",
    "'",
    "\"",
    "$1",
    "$99999999999",
    "null",
    "t",
    "a",
    "b",
    "*",
    "-",
    "--",
    "/*",
    "*/",
    "::",
    "E'\\",
    "$$",
    "1e",
    "0x",
    "99999999999999999999",
    "é",
    "\u{1F600}",
    "%",
    "not",
    "and",
    "=",
    "<>",
    "order by",
    "limit",
    "-1",
    "cast(",
    "in (",
    "like '%",
    "[",
    "{",
    "\n",
    "\t",
    "U&'\\",
    "b'1",
    "exists (",
];

fn mutate(random: &mut StdRng) -> String {
    let mut text = (*CORPUS.choose(random).expect("corpus")).to_owned();
    for _ in 0..random.random_range(0..4) {
        let mut cut = |text: &str| {
            let at = random.random_range(0..=text.len());
            (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
        };
        let (one, two) = (cut(&text), cut(&text));
        let (low, high) = (one.min(two), one.max(two));
        match random.random_range(0..5) {
            0 => text.insert_str(one, WORDS.choose(random).expect("word")),
            1 => text.replace_range(low..text.floor_char_boundary(high.min(low + 8)), ""),
            2 => text.truncate(high),
            3 => text = format!("{text}; {}", CORPUS.choose(random).expect("corpus")),
            _ => {
                let part = text[low..high].to_owned();
                text.insert_str(one, &part);
            }
        }
    }
    text.retain(|c| c != '\0');
    text
}

fn seeded() -> StdRng {
    let seed = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or_else(rand::random);
    println!("seed {seed}");
    StdRng::seed_from_u64(seed)
}

fn set_up(server: &ServerProcess) -> Raw {
    let mut client = server.client();
    client.query(
        "create table t (a int primary key, b text, c float8); \
         insert into t values (1, 'one', 1), (2, 'two', 2), (3, null, -3), (5, 'five', 0)",
    );
    assert_eq!(client.kinds(), "CCZ");
    client.query("set statement_timeout = '5s'").replies();
    client
}

#[test]
fn mutated_statements_get_an_answer() {
    let server = ServerProcess::start();
    let mut random = seeded();
    let mut client = set_up(&server);
    for _ in 0..2000 {
        let sql = mutate(&mut random);
        let mut kinds = client.query(&sql).stepwise_kinds();
        if kinds.ends_with('G') {
            client.send(&message(b'f', &[b"no data\0"]));
            kinds.push_str(&client.kinds());
        }
        // A connection that ends without a reply means a panic or a crash.
        assert!(kinds.ends_with('Z'), "after {sql:?}: {kinds:?}");
    }
}

#[test]
fn mutated_prepared_statements_get_an_answer() {
    let server = ServerProcess::start();
    let mut random = seeded();
    let mut client = set_up(&server);
    for _ in 0..1000 {
        let sql = mutate(&mut random);
        let values: &[&[u8]] = &[b"", b"1", b"text", b"\0\0\0\x01", b"\xff", b"99999999999999"];
        let mut body = b"\0\0".to_vec();
        let code: u16 = random.random_range(0..3);
        body.extend_from_slice(&[0, 1]);
        body.extend_from_slice(&code.to_be_bytes());
        let count: u16 = random.random_range(0..3);
        body.extend_from_slice(&count.to_be_bytes());
        for _ in 0..count {
            let value = values.choose(&mut random).expect("value");
            body.extend_from_slice(&(value.len() as u32).to_be_bytes());
            body.extend_from_slice(value);
        }
        body.extend_from_slice(&[0, 1, 0, random.random_range(0..2)]);
        let limit = random.random_range(-1..3);
        let batch = [
            parse("", &sql),
            message(b'D', &[b"S\0"]),
            message(b'B', &[&body]),
            message(b'D', &[b"P\0"]),
            execute("", limit),
            execute("", limit),
            sync(),
        ];
        let mut kinds = client.send(&batch.concat()).stepwise_kinds();
        if kinds.ends_with('G') {
            client.send(&[message(b'f', &[b"no data\0"]), sync()].concat());
            kinds.push_str(&client.kinds());
        }
        assert!(kinds.ends_with('Z'), "after {sql:?}: {kinds:?}");
    }
    client.query("rollback").kinds();
    client.send(&[parse("", "show port"), bind("", ""), execute("", 0), sync()].concat());
    assert_eq!(client.kinds(), "12DCZ");
}

#[test]
fn random_messages_disturb_no_other_session() {
    let server = ServerProcess::start();
    let mut random = seeded();
    let mut good = set_up(&server);
    for round in 0..300 {
        let mut client = Raw::unix(&server.sockets, server.port).startup(V3_0);
        for _ in 0..10 {
            let mut body = vec![0; random.random_range(0..40)];
            random.fill(&mut body[..]);
            let kind = *b"QPBDCESHdcfFp".choose(&mut random).expect("kind");
            if client.stream.write_all(&message(kind, &[&body])).is_err() {
                break;
            }
        }
        drop(client);
        if round % 30 == 0 {
            assert_eq!(good.query("select b from t where a = 1").kinds(), "TDCZ");
        }
    }
    assert_eq!(good.query("select b from t where a = 1").kinds(), "TDCZ");
}

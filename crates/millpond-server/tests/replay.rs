//! `millpond replay`, from the recording of a live server to a table and a chart.

mod common;

use common::server::{ServerProcess, command};
use std::process::Output;

fn replay(args: &[&str]) -> (Output, String, String) {
    let output = command().arg("replay").args(args).output().expect("millpond runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    (output, out, errors)
}

#[test]
fn recorded_trace_is_replayed() {
    let dir = tempfile::tempdir().expect("directory");
    let (trace, svg) = (dir.path().join("pages.trace"), dir.path().join("hits.svg"));
    let set = format!("trace_pages={}", trace.display());
    let mut server = ServerProcess::with(&["--set", &set]);
    let mut client = server.client();
    client.query("CREATE TABLE t (id int PRIMARY KEY, v text)").replies();
    client.query("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')").replies();
    for id in (1..4).cycle().take(900) {
        let answer = client.query(&format!("SELECT v FROM t WHERE id = {id}")).replies();
        assert!(answer.iter().any(|reply| reply.kind == 'D'));
    }
    assert_eq!(server.stop().code(), Some(0));

    let path = trace.to_str().expect("path");
    let (output, table, errors) = replay(&[
        path,
        "--policy",
        "probation,lru,optimum",
        "--size",
        "100,64kB",
        "--svg",
        svg.to_str().expect("path"),
    ]);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    let mut lines = table.lines();
    // Each select reads at least one page of the index and one of the table.
    let heading = lines.next().expect("a heading");
    let accesses: u64 = heading
        .strip_prefix("pages: ")
        .and_then(|rest| rest.split(' ').next()?.parse().ok())
        .unwrap_or_else(|| panic!("{table}"));
    assert!(accesses >= 1800 && heading.ends_with("hits in per cent"), "{table}");
    assert!(table.contains(" when it was recorded\n") && !table.contains("note:"), "{table}");
    assert!(table.contains("policy       64kB     100\n"), "{table}");
    let optimum = lines.next_back().expect("a last line");
    assert!(optimum.starts_with("optimum     99."), "{table}");
    assert!(std::fs::read_to_string(svg).expect("a picture").contains("probation"));
}

#[test]
fn replay_reports_unreadable_traces() {
    let dir = tempfile::tempdir().expect("directory");
    let path = dir.path().join("trace");
    let name = path.to_str().expect("path");
    let refused = |args: &[&str], part: &str| {
        let (output, _, errors) = replay(args);
        assert!(!output.status.success() && errors.contains(part), "{errors}");
    };
    refused(&[name], "could not read");
    std::fs::write(&path, "1\n2\nthree\n").expect("written");
    refused(&[name], "\"three\" is no block number, in line 3 (at byte 4)");
    std::fs::write(&path, "# nothing\n").expect("written");
    refused(&[name, "--format", "text"], "the trace has no accesses");
    refused(&[name], "choose one with --format");
    std::fs::write(&path, "").expect("written");
    refused(&[name], "the trace has no accesses");
    refused(&[name, "--policy", "mru"], "there are probation");
    refused(&[name, "--size", "lots"], "is not a size");
    refused(
        &["/dev/null", "--svg", "/nonexistent/x.svg", "--format", "u32le"],
        "the trace has no accesses",
    );

    std::fs::write(&path, "1\n").expect("written");
    let (_, table, errors) = replay(&[name, "--policy", "lru,all"]);
    assert!(table.contains("\nprobation ") && table.contains("\noptimum "), "{table}{errors}");
    assert_eq!(table.matches("\nlru ").count(), 1, "{table}");
    refused(&[name, "--svg", "/nonexistent/x.svg"], "could not draw /nonexistent/x.svg");
    let set = format!("trace_pages={name}");
    let data = dir.path().join("data");
    let data = data.to_str().expect("path");
    let output = command()
        .args(["serve", "--data", data, "--listen", "127.0.0.1:0", "--set", &set])
        .output()
        .expect("millpond runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("is not a page trace"), "{errors}");
    assert_eq!(std::fs::read(&path).expect("left alone"), b"1\n");
}

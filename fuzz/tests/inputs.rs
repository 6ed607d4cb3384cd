//! Every target on its kept inputs and, for `FUZZ_SECONDS`, on inputs made from them.

use std::process::Command;

#[test]
fn no_input_breaks_a_decoder() {
    let mut fuzz = Command::new(env!("CARGO_BIN_EXE_fuzz"));
    match std::env::var("FUZZ_SECONDS") {
        Ok(seconds) => fuzz.args(["--seconds", &seconds]),
        Err(_) => fuzz.args(["--inputs", "0"]),
    };
    let ran = fuzz.output().expect("fuzz runs");
    // It names the input that a target failed on, and the command that runs it again (optimised).
    print!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{}", ran.status);
}

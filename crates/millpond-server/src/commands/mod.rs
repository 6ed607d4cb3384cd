//! The subcommands `serve` and `check`, and what they share with the tools of `millpond-lab`: the
//! progress bar and the log on stderr.

mod check;
mod serve;

pub use check::check;
pub use serve::serve;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// A progress bar on stderr; hidden if stderr is not a terminal.
pub fn progress_bar(length: u64, what: &'static str, name: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let template = "{prefix:10} {msg} [{bar:30}] {percent:>3}% {eta:>4} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(what);
    bar.set_message(name.to_owned());
    bar
}

/// Sends the log to stderr. `MILLPOND_LOG` is the filter; the default is `otherwise`.
pub fn log_to_stderr(otherwise: &str) {
    let wanted = std::env::var("MILLPOND_LOG").ok().filter(|text| !text.is_empty());
    let wanted = wanted.and_then(|text| text.parse().ok());
    let filter: Targets = wanted.or_else(|| otherwise.parse().ok()).unwrap_or_default();
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines).with(filter).init();
}

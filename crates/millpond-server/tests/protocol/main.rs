//! The protocol and the event loops against a scripted database.

#[path = "../common/mod.rs"]
mod common;

mod loops;
mod messages;

use common::raw::{Raw, V3_0};
use common::scripted::{Scripted, Strings};
use millpond_server::net::Listener;
use millpond_server::run::{Server, ServerConfig};
use std::sync::Arc;

const V3_2: u32 = 0x0003_0002;

struct Fixture {
    server: Option<Server<Scripted>>,
    strings: Arc<Strings>,
    dir: tempfile::TempDir,
}

impl Fixture {
    /// A server with one event loop, which all connections share.
    fn new() -> Self {
        Self::sized(500)
    }

    fn sized(max_sessions: usize) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let strings = Arc::new(Strings::default());
        let listener = Listener::unix(dir.path(), 5433).expect("listens");
        let backend = Scripted { strings: Arc::clone(&strings), max_sessions };
        let config = ServerConfig { loops: 1, max_connections: max_sessions };
        let server = Server::start(backend, vec![listener], config).expect("starts");
        Self { server: Some(server), strings, dir }
    }

    fn raw(&self) -> Raw {
        Raw::unix(self.dir.path(), 5433)
    }

    fn client(&self) -> Raw {
        self.raw().startup(V3_0)
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(None);
        }
    }
}

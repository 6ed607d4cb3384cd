//! Sockets.

mod listen;
mod socket;

pub use listen::{ListenError, Listener, UnixPath};
pub use socket::Socket;

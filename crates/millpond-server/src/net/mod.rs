//! Listening sockets, client sockets, and lock files of Unix sockets.

mod listen;
mod socket;
mod socket_lock;

pub use listen::{ListenError, Listener, UnixPath};
pub use socket::Socket;
pub use socket_lock::{SocketLock, SocketLockError};

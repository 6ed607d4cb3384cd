//! Functions of uuids.

use millpond_types::other::UUID;

use super::Body;
use super::catalog::{Proc, UUID_TYPE, proc};
use crate::error::Result;
use crate::expr::Env;
use crate::{Datum, Value};

pub(super) static PROCS: &[Proc] =
    &[proc(3432, "gen_random_uuid", &[], UUID_TYPE, Body::Datums(random)).volatile()];

/// One of version 4: all bits are random but those of version and variant.
fn random(_: &[Datum<'_>], _: &Env<'_>) -> Result<Value> {
    let mut bytes: [u8; 16] = rand::random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(Value::Other(UUID, bytes.into()))
}

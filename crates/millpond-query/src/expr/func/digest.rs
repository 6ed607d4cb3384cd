//! Hashes of texts and byte strings.

use md5::{Digest, Md5};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::catalog::{BYTEA, Proc, TEXT, proc};
use super::encoding::hex;
use super::value::body;

pub(super) static PROCS: &[Proc] = &[
    proc(2311, "md5", &[TEXT], TEXT, body!(|s: &str| hex(&hash::<Md5>(s.as_bytes())))),
    proc(2321, "md5", &[BYTEA], TEXT, body!(|b: &[u8]| hex(&hash::<Md5>(b)))),
    proc(3419, "sha224", &[BYTEA], BYTEA, body!(|b: &[u8]| hash::<Sha224>(b))),
    proc(3420, "sha256", &[BYTEA], BYTEA, body!(|b: &[u8]| hash::<Sha256>(b))),
    proc(3421, "sha384", &[BYTEA], BYTEA, body!(|b: &[u8]| hash::<Sha384>(b))),
    proc(3422, "sha512", &[BYTEA], BYTEA, body!(|b: &[u8]| hash::<Sha512>(b))),
];

fn hash<D: Digest>(bytes: &[u8]) -> Vec<u8> {
    D::digest(bytes).to_vec()
}

//! Places of rows that conditions name.

use millpond_engine::access::Tid;
use millpond_types::other::TID;

use crate::Datum;
use crate::error::Result;
use crate::expr::Env;
use crate::plan::Tids;
use crate::types::array::array_of;

/// The places of rows, each once, in descending order.
pub(super) fn tids_of(tids: &Tids, env: &Env<'_>) -> Result<Vec<Tid>> {
    let mut found = Vec::new();
    let mut add = |datum: Datum<'_>| {
        if let Datum::Other(TID, bytes) = datum {
            found.extend(bytes.try_into().ok().map(Tid::from_bytes));
        }
    };
    match tids {
        Tids::Items(items) => {
            for item in items {
                add(item.eval(env)?.datum());
            }
        }
        Tids::Array(array) => {
            let array = array.eval(env)?;
            array_of(&array.datum()).into_iter().flat_map(|array| array.iter()).for_each(add);
        }
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup();
    Ok(found)
}

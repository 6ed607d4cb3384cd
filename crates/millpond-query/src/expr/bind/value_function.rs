//! SQL's functions without parentheses: CURRENT_DATE and the like.

use millpond_syntax::tree::SqlValueFunctionOp;

use super::{Binder, Coercion, Typed};
use crate::DataType;
use crate::error::Result;
use crate::expr::types::Ty;

impl Binder<'_> {
    pub(super) fn value_function(
        &mut self,
        op: SqlValueFunctionOp,
        precision: Option<i32>,
    ) -> Result<Typed> {
        use SqlValueFunctionOp as Op;
        let name = value_function_name(op);
        let value = match op {
            Op::CurrentTimestamp => self.call("now", Vec::new()),
            Op::LocalTimestamp => {
                let now = self.call("now", Vec::new())?;
                let local = self.coerce(now, DataType::Timestamp(None), Coercion::Explicit)?;
                Ok(Typed::known(local, DataType::Timestamp(None)))
            }
            _ => self.call(name, Vec::new()),
        }?;
        match precision {
            Some(digits) => self.with_precision(value, digits),
            None => Ok(value),
        }
    }

    /// A time with that many digits after the second's point; more than six are six.
    pub(super) fn with_precision(&mut self, value: Typed, digits: i32) -> Result<Typed> {
        let digits = digits.clamp(0, 6);
        let ty = match value.ty {
            Ty::Known(DataType::Timestamp(_)) => DataType::Timestamp(Some(digits as u8)),
            Ty::Known(DataType::Timestamptz(_)) => DataType::Timestamptz(Some(digits as u8)),
            Ty::Known(DataType::Other { oid, .. }) => DataType::Other { oid, typmod: digits },
            _ => return Ok(value),
        };
        Ok(Typed::known(self.coerce(value, ty, Coercion::Explicit)?, ty))
    }
}

/// What a column is called that is one.
pub(crate) fn value_function_name(op: SqlValueFunctionOp) -> &'static str {
    use SqlValueFunctionOp as Op;
    match op {
        Op::CurrentDate => "current_date",
        Op::CurrentTime => "current_time",
        Op::CurrentTimestamp => "current_timestamp",
        Op::LocalTime => "localtime",
        Op::LocalTimestamp => "localtimestamp",
        Op::CurrentRole => "current_role",
        Op::CurrentUser => "current_user",
        Op::User => "user",
        Op::SessionUser => "session_user",
        Op::CurrentCatalog => "current_catalog",
        Op::CurrentSchema => "current_schema",
    }
}

//! SQL's functions without parentheses: CURRENT_DATE and its kin.

use millpond_syntax::tree::SqlValueFunctionOp;

use super::{Binder, Coercion, Typed};
use crate::error::Result;
use crate::expr::Expr;
use crate::expr::types::Ty;
use crate::{DataType, Value};

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
                let local = self.coerce(now, DataType::Timestamp, Coercion::Explicit)?;
                Ok(Typed::known(local, DataType::Timestamp))
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
        let name = match value.ty {
            Ty::Known(DataType::Timestamp) => "timestamp",
            Ty::Known(DataType::Timestamptz) => "timestamptz",
            Ty::Known(DataType::Other { oid, .. }) => {
                let ty = DataType::Other { oid, typmod: digits };
                return Ok(Typed::known(self.coerce(value, ty, Coercion::Explicit)?, ty));
            }
            _ => return Ok(value),
        };
        self.call(name, vec![value, Typed::known(Expr::Const(Value::Int4(digits)), DataType::Int4)])
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

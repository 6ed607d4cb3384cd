//! SQL's functions without parentheses: CURRENT_DATE and its kin.

use millpond_syntax::tree::SqlValueFunctionOp;

use super::{Binder, Coercion, Typed, beyond};
use crate::DataType;
use crate::error::Result;

impl Binder<'_> {
    pub(super) fn value_function(
        &mut self,
        op: SqlValueFunctionOp,
        precision: Option<i32>,
    ) -> Result<Typed> {
        use SqlValueFunctionOp as Op;
        let name = value_function_name(op);
        if precision.is_some() {
            return Err(beyond(&format!("{} with a precision", name.to_uppercase())));
        }
        match op {
            Op::CurrentTimestamp => self.call("now", Vec::new()),
            Op::LocalTimestamp => {
                let now = self.call("now", Vec::new())?;
                let local = self.coerce(now, DataType::Timestamp, Coercion::Explicit)?;
                Ok(Typed::known(local, DataType::Timestamp))
            }
            _ => self.call(name, Vec::new()),
        }
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

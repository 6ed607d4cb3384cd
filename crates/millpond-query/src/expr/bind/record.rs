//! Records: row values as values, whole rows, and their fields.

use std::cell::RefCell;
use std::rc::Rc;

use millpond_syntax::tree::{self, Field, Node, TypeName};
use millpond_types::other::RECORD;
use millpond_types::record;

use super::{Binder, Coercion, Scope, Typed, ambiguous_column};
use crate::error::{Result, SqlError, SqlState};
use crate::expr::func::record::{FIELD, IS_NULL, MAKE};
use crate::expr::func::{FILLED, definition};
use crate::expr::types::Ty;
use crate::expr::{Expr, Func};
use crate::{DataType, Datum, Value};

/// The names and types of a record's fields.
pub(crate) type RecordType = Rc<[(String, DataType)]>;

/// The record types of a statement. A type's modifier is the number of its fields' list.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordTypes(Rc<RefCell<Vec<(RecordType, Origin)>>>);

/// What a record is the row of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `ROW(..)` and the like.
    Constructor,
    /// A relation.
    Relation,
}

/// The row of an item of FROM.
pub struct WholeRow {
    pub(crate) fields: Vec<(String, DataType)>,
    /// It is NULL where an outer join has no row of the item.
    pub(crate) presence: Expr,
    pub(crate) values: Vec<Expr>,
    /// It is a function's value, not a row.
    pub(crate) is_value: bool,
}

/// The modifier of the first record type. -1 is that of a record of which nothing is known.
const FIRST_MODIFIER: i32 = -2;

impl RecordTypes {
    /// A record of these fields, as `ROW(..)` makes it. `presence` is NULL where there is no
    /// record.
    pub(crate) fn make(
        &self,
        fields: Vec<(String, DataType)>,
        presence: Expr,
        values: impl IntoIterator<Item = Expr>,
    ) -> Result<(Expr, DataType)> {
        self.make_of(Origin::Constructor, fields, presence, values)
    }

    fn make_of(
        &self,
        origin: Origin,
        fields: Vec<(String, DataType)>,
        presence: Expr,
        values: impl IntoIterator<Item = Expr>,
    ) -> Result<(Expr, DataType)> {
        let mut header = Vec::new();
        for (name, ty) in &fields {
            let field = record::Field { name, type_oid: ty.oid(), value: Datum::Null };
            let pushed = record::push_field(&field, &mut header);
            pushed.ok_or_else(|| SqlError::internal("a name is too long"))?;
        }
        let ty = self.add(fields.into(), origin)?;
        let mut args = vec![Expr::Const(Value::Bytea(header)), presence];
        args.extend(values);
        Ok((Expr::Func(Func::new(&MAKE), args), ty))
    }

    fn add(&self, fields: RecordType, origin: Origin) -> Result<DataType> {
        let mut types = self.0.borrow_mut();
        let added = (fields, origin);
        let place = types.iter().position(|known| *known == added).unwrap_or_else(|| {
            types.push(added);
            types.len() - 1
        });
        let place = i32::try_from(place).ok().and_then(|place| FIRST_MODIFIER.checked_sub(place));
        let typmod = place.ok_or_else(|| SqlError::internal("too many record types"))?;
        Ok(DataType::Other { oid: RECORD, typmod })
    }

    /// Whether two types of records are known to have fields of the same types.
    pub(super) fn are_alike(&self, a: Ty, b: Ty) -> bool {
        let types = |ty: Ty| {
            let Ty::Known(ty) = ty else { return None };
            let fields = self.fields(ty)?;
            Some(fields.iter().map(|(_, ty)| ty.oid()).collect::<Vec<u32>>())
        };
        types(a).is_some_and(|own| types(b).is_some_and(|other| own == other))
    }

    /// The fields of a type; `None` if it is no record, or one of which nothing is known.
    pub(crate) fn fields(&self, ty: DataType) -> Option<RecordType> {
        self.known(ty).map(|(fields, _)| fields)
    }

    /// Whether a type is that of a relation's rows.
    pub(crate) fn is_of_relation(&self, ty: DataType) -> bool {
        self.known(ty).is_some_and(|(_, origin)| origin == Origin::Relation)
    }

    fn known(&self, ty: DataType) -> Option<(RecordType, Origin)> {
        let DataType::Other { oid: RECORD, typmod } = ty else { return None };
        let place = usize::try_from(FIRST_MODIFIER.checked_sub(typmod)?).ok()?;
        self.0.borrow().get(place).cloned()
    }
}

/// How many fields a row constructor has at most.
const MAX_FIELDS: usize = 1664;

impl Binder<'_> {
    /// `ROW(a, b)`
    pub(super) fn row(&mut self, parts: &[tree::Expr], scope: &dyn Scope) -> Result<Typed> {
        let (mut fields, mut values) = (Vec::new(), Vec::new());
        for part in parts {
            let found = match is_star(part) {
                true => {
                    let record = self.bind(part, scope)?;
                    self.fields_of(&record)?.into_iter().map(|(_, value)| value).collect()
                }
                false => vec![self.bind(part, scope)?],
            };
            for value in found {
                let (value, ty) = self.settled(value)?;
                values.push(value);
                fields.push((format!("f{}", fields.len() + 1), ty));
            }
            if fields.len() > MAX_FIELDS {
                let message = format!("ROW expressions can have at most {MAX_FIELDS} entries");
                return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
            }
        }
        let (expr, ty) = self.records.make(fields, Expr::Const(Value::Bool(true)), values)?;
        Ok(Typed::known(expr, ty))
    }

    /// The value of an item's name.
    pub(super) fn record_of(&self, row: WholeRow) -> Result<Typed> {
        if row.is_value
            && let ([(_, ty)], [value]) = (&*row.fields, &*row.values)
        {
            return Ok(Typed::known(value.clone(), *ty));
        }
        let Self { records, .. } = self;
        let (expr, ty) = records.make_of(Origin::Relation, row.fields, row.presence, row.values)?;
        Ok(Typed::known(expr, ty))
    }

    /// A call that fills a row of these columns, of the type that its first argument has.
    pub(crate) fn filled_record(
        &self,
        mut args: Vec<Expr>,
        columns: &[(String, DataType)],
        ty: DataType,
    ) -> Result<Typed> {
        args.push(Expr::Const(definition(columns)?));
        Ok(Typed::known(Expr::Func(Func::new(&FILLED), args), ty))
    }

    /// The fields of a record of which they are known.
    pub(crate) fn fields_of(&self, record: &Typed) -> Result<Vec<(String, Typed)>> {
        let known = match record.ty {
            Ty::Known(ty) if ty.oid() != RECORD => {
                let what = format!("type {} is not composite", ty.base());
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, what));
            }
            Ty::Known(ty) => self.records.fields(ty),
            Ty::Unknown => None,
        };
        let Some(fields) = known else {
            let what = "record type has not been registered";
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, what));
        };
        let field = |(place, (name, ty)): (usize, &(String, DataType))| {
            (name.clone(), Typed::known(value_of(&record.expr, place), *ty))
        };
        Ok(fields.iter().enumerate().map(field).collect())
    }

    /// `(record).name`
    pub(super) fn field(&self, record: &Typed, name: &str) -> Result<Typed> {
        let Ty::Known(ty) = record.ty else { return Err(not_composite("unknown", name)) };
        if ty.oid() != RECORD {
            return Err(not_composite(&ty.base().to_string(), name));
        }
        let fields = self.records.fields(ty);
        let named = |fields: &[(String, DataType)]| {
            let mut places = (0..fields.len()).filter(|place| fields[*place].0 == name);
            (places.next(), places.next().is_some())
        };
        let (place, is_repeated) = fields.as_deref().map(named).unwrap_or_default();
        if is_repeated && is_made_here(&record.expr) {
            return Err(ambiguous_column(name));
        }
        match (fields, place) {
            (Some(fields), Some(place)) => {
                Ok(Typed::known(value_of(&record.expr, place), fields[place].1))
            }
            _ => Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("could not identify column \"{name}\" in record data type"),
            )),
        }
    }

    /// The columns of the table that a type is the row type of.
    pub(super) fn row_type(
        &self,
        ty: &TypeName,
        scope: &dyn Scope,
    ) -> Result<Option<Vec<(String, DataType)>>> {
        if !ty.typmods.is_empty() {
            return Ok(None);
        }
        match scope.row_type(&ty.names)? {
            Some(_) if !ty.array_bounds.is_empty() => {
                Err(SqlError::unsupported("an array of a table's rows"))
            }
            fields => Ok(fields),
        }
    }

    /// A cast to the type of a table's rows: of NULL, of `ROW(..)` with as many fields, or of a row
    /// of the table.
    pub(super) fn row_cast(
        &mut self,
        arg: &tree::Expr,
        names: &[tree::Name],
        columns: Vec<(String, DataType)>,
        scope: &dyn Scope,
    ) -> Result<Typed> {
        let record = self.bind(arg, scope)?;
        let name = || names.last().map_or("", |name| &**name);
        let from = match record.ty {
            Ty::Unknown if record.expr == Expr::NULL => {
                let ty = self.records.add(columns.into(), Origin::Relation)?;
                return Ok(Typed::known(Expr::NULL, ty));
            }
            Ty::Unknown => return Err(SqlError::unsupported("a row as a text")),
            Ty::Known(ty) if ty.oid() != RECORD => {
                return Err(cannot_cast(&ty.base().to_string(), name()));
            }
            Ty::Known(ty) => ty,
        };
        let fields = self.records.fields(from).unwrap_or_default();
        if self.records.is_of_relation(from) {
            let is_same = *fields == *columns;
            return if is_same { Ok(record) } else { Err(cannot_cast("record", name())) };
        }
        let values = match record.expr {
            Expr::Func(func, args) if func == Func::new(&MAKE) => args,
            _ => return Err(SqlError::unsupported("a cast of such a row")),
        };
        if fields.len() != columns.len() {
            let what = if fields.len() < columns.len() { "few" } else { "many" };
            let error = cannot_cast("record", name());
            return Err(error.detail(format!("Input has too {what} columns.")));
        }
        let mut values = values.into_iter();
        let (_, presence) = (values.next(), values.next());
        let mut converted = Vec::with_capacity(columns.len());
        for ((value, (_, own)), (_, ty)) in values.zip(fields.iter()).zip(&columns) {
            converted.push(self.coerce(Typed::known(value, *own), *ty, Coercion::Explicit)?);
        }
        let presence = presence.unwrap_or(Expr::NULL);
        let (expr, ty) = self.records.make_of(Origin::Relation, columns, presence, converted)?;
        Ok(Typed::known(expr, ty))
    }

    /// `record IS NULL`: all of its fields are.
    pub(super) fn record_is_null(&self, record: Expr, negated: bool) -> Typed {
        let args = vec![record, Expr::Const(Value::Bool(negated))];
        Typed::bool(Expr::Func(Func::new(&IS_NULL), args))
    }
}

/// `name.*`
fn is_star(part: &tree::Expr) -> bool {
    matches!(&part.node, Node::ColumnRef(fields) if fields.last() == Some(&Field::Star))
}

/// Whether a record is made here, as the row of an item of FROM is where it is named.
fn is_made_here(record: &Expr) -> bool {
    matches!(record, Expr::Func(func, _) if *func == Func::new(&MAKE))
}

/// The value of a field. Of a record that is made here, and is always there, it is what the record
/// is made of.
fn value_of(record: &Expr, place: usize) -> Expr {
    match record {
        Expr::Func(func, args) if *func == Func::new(&MAKE) => match args.as_slice() {
            [_, Expr::Const(_), values @ ..] if place < values.len() => values[place].clone(),
            _ => field_call(record, place),
        },
        _ => field_call(record, place),
    }
}

/// The value of a field of a record, by its place.
pub(crate) fn field_call(record: &Expr, place: usize) -> Expr {
    let place = Expr::Const(Value::Int4(i32::try_from(place).unwrap_or(i32::MAX)));
    Expr::Func(Func::new(&FIELD), vec![record.clone(), place])
}

fn cannot_cast(from: &str, to: &str) -> SqlError {
    SqlError::new(SqlState::CANNOT_COERCE, format!("cannot cast type {from} to {to}"))
}

fn not_composite(ty: &str, name: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("column notation .{name} applied to type {ty}, which is not a composite type"),
    )
}

//! Names of types.

use super::name::system_name;
use super::{Parse, Parser};
use crate::error::SqlState;
use crate::keyword::Keyword;
use crate::tree::{Expr, Name, Node, TypeName, Value};

/// The fields of an interval that has all.
pub(super) const INTERVAL_FULL_RANGE: i32 = 0x7fff;

// The bits of an interval's fields.
const MONTH: i32 = 1 << 1;
const YEAR: i32 = 1 << 2;
const DAY: i32 = 1 << 3;
const HOUR: i32 = 1 << 10;
const MINUTE: i32 = 1 << 11;
const SECOND: i32 = 1 << 12;

impl Parser<'_> {
    /// Typename: a type with SETOF and array bounds.
    pub(super) fn type_name(&mut self) -> Parse<TypeName> {
        let setof = self.take_keyword(Keyword::Setof);
        let mut type_name = self.simple_type_name()?;
        type_name.setof = setof;
        if self.take_keyword(Keyword::Array) {
            let mut bound = -1;
            if self.take_char(b'[') {
                bound = self.iconst()?;
                self.expect_char(b']')?;
            }
            type_name.array_bounds.push(bound);
            return Ok(type_name);
        }
        while self.take_char(b'[') {
            let bound = if self.is_char(b']') { -1 } else { self.iconst()? };
            self.expect_char(b']')?;
            type_name.array_bounds.push(bound);
        }
        Ok(type_name)
    }

    fn simple_type_name(&mut self) -> Parse<TypeName> {
        let location = self.location();
        if self.is_keyword(Keyword::Interval) {
            self.bump();
            return self.interval(location);
        }
        if let Some(type_name) = self.const_type_name()? {
            return Ok(type_name);
        }
        let mut names = vec![self.type_function_name()?];
        self.attrs(&mut names)?;
        let mut type_name = plain(names, location);
        if self.is_char(b'%') && self.is_keyword_at(1, Keyword::Type) {
            self.bump();
            self.bump();
            type_name.pct_type = true;
        } else {
            type_name.typmods = self.type_modifiers()?;
        }
        Ok(type_name)
    }

    fn type_modifiers(&mut self) -> Parse<Vec<Expr>> {
        if !self.is_char(b'(') {
            return Ok(Vec::new());
        }
        self.paren_list(Self::a_expr)
    }

    /// The type that one of SQL's own spellings names, if one begins here.
    pub(super) fn const_type_name(&mut self) -> Parse<Option<TypeName>> {
        let Some(keyword) = self.keyword() else { return Ok(None) };
        let location = self.location();
        let simple = match keyword {
            Keyword::Int | Keyword::Integer => "int4",
            Keyword::Smallint => "int2",
            Keyword::Bigint => "int8",
            Keyword::Real => "float4",
            Keyword::Boolean => "bool",
            Keyword::Double if self.is_keyword_at(1, Keyword::Precision) => {
                self.bump();
                "float8"
            }
            Keyword::Float => return self.float(location).map(Some),
            Keyword::Decimal | Keyword::Dec | Keyword::Numeric => {
                self.bump();
                let mut type_name = plain(system_name("numeric"), location);
                type_name.typmods = self.type_modifiers()?;
                return Ok(Some(type_name));
            }
            Keyword::Bit => return self.bit(location).map(Some),
            Keyword::Character
            | Keyword::Char
            | Keyword::Varchar
            | Keyword::National
            | Keyword::Nchar => return self.character(keyword, location).map(Some),
            Keyword::Time | Keyword::Timestamp => {
                return self.datetime(keyword, location).map(Some);
            }
            _ => return Ok(None),
        };
        self.bump();
        Ok(Some(plain(system_name(simple), location)))
    }

    fn float(&mut self, location: u32) -> Parse<TypeName> {
        self.bump();
        let mut name = "float8";
        if self.take_char(b'(') {
            let place = self.location();
            let precision = self.iconst()?;
            self.expect_char(b')')?;
            let message = match precision {
                ..1 => "precision for type float must be at least 1 bit",
                54.. => "precision for type float must be less than 54 bits",
                _ => "",
            };
            if !message.is_empty() {
                let error = self.error_at(message, place);
                return Err(error.with_code(SqlState::InvalidParameterValue));
            }
            if precision < 25 {
                name = "float4";
            }
        }
        Ok(plain(system_name(name), location))
    }

    fn bit(&mut self, location: u32) -> Parse<TypeName> {
        self.bump();
        let varying = self.take_keyword(Keyword::Varying);
        let name = if varying { "varbit" } else { "bit" };
        let mut type_name = plain(system_name(name), location);
        type_name.typmods = self.type_modifiers()?;
        // `bit` without a length, as a column's type, is one bit.
        if !varying && type_name.typmods.is_empty() && !self.is_string() {
            type_name.typmods.push(integer(1, None));
        }
        Ok(type_name)
    }

    fn character(&mut self, keyword: Keyword, location: u32) -> Parse<TypeName> {
        self.bump();
        let mut varying = keyword == Keyword::Varchar;
        if keyword == Keyword::National
            && self.take_one_of(&[Keyword::Character, Keyword::Char]).is_none()
        {
            return Err(self.unexpected());
        }
        if !varying {
            varying = self.take_keyword(Keyword::Varying);
        }
        let mut type_name =
            plain(system_name(if varying { "varchar" } else { "bpchar" }), location);
        if self.take_char(b'(') {
            let place = self.location();
            type_name.typmods.push(integer(self.iconst()?, Some(place)));
            self.expect_char(b')')?;
        } else if !varying && !self.is_string() {
            type_name.typmods.push(integer(1, None));
        }
        Ok(type_name)
    }

    fn datetime(&mut self, keyword: Keyword, location: u32) -> Parse<TypeName> {
        self.bump();
        let precision = self.opt_precision()?;
        let zone = if self.are_keywords(&[Keyword::With, Keyword::Time]) {
            self.bump();
            self.bump();
            self.expect_keyword(Keyword::Zone)?;
            true
        } else {
            if self.are_keywords(&[Keyword::Without, Keyword::Time]) {
                self.bump();
                self.bump();
                self.expect_keyword(Keyword::Zone)?;
            }
            false
        };
        let name = match (keyword, zone) {
            (Keyword::Time, false) => "time",
            (Keyword::Time, true) => "timetz",
            (_, false) => "timestamp",
            (_, true) => "timestamptz",
        };
        let mut type_name = plain(system_name(name), location);
        type_name.typmods.extend(precision);
        Ok(type_name)
    }

    fn opt_precision(&mut self) -> Parse<Option<Expr>> {
        if !self.take_char(b'(') {
            return Ok(None);
        }
        let place = self.location();
        let precision = self.iconst()?;
        self.expect_char(b')')?;
        Ok(Some(integer(precision, Some(place))))
    }

    /// INTERVAL, whose word has been taken.
    fn interval(&mut self, location: u32) -> Parse<TypeName> {
        let mut type_name = plain(system_name("interval"), location);
        if let Some(precision) = self.opt_precision()? {
            type_name.typmods = vec![integer(INTERVAL_FULL_RANGE, None), precision];
        } else {
            type_name.typmods = self.opt_interval()?;
        }
        Ok(type_name)
    }

    /// INTERVAL in front of a literal: the type with what stands in front of the literal.
    pub(super) fn const_interval(&mut self, location: u32) -> Parse<TypeName> {
        let mut type_name = plain(system_name("interval"), location);
        if let Some(precision) = self.opt_precision()? {
            type_name.typmods = vec![integer(INTERVAL_FULL_RANGE, None), precision];
        }
        Ok(type_name)
    }

    /// The fields of an interval: `YEAR TO MONTH`.
    pub(super) fn opt_interval(&mut self) -> Parse<Vec<Expr>> {
        let Some(from) = self.keyword().and_then(interval_field) else { return Ok(Vec::new()) };
        let first = self.bump();
        let mut fields = from;
        let mut last = from;
        if from != MONTH && from != SECOND && self.take_keyword(Keyword::To) {
            let to = self.keyword().and_then(interval_field);
            // The fields that may stand in front of each.
            let before = match to {
                Some(MONTH) => YEAR,
                Some(HOUR) => DAY,
                Some(MINUTE) => DAY | HOUR,
                Some(SECOND) => DAY | HOUR | MINUTE,
                _ => 0,
            };
            let Some(to) = to.filter(|_| before & from != 0) else { return Err(self.unexpected()) };
            self.bump();
            last = to;
            fields = if from == YEAR { YEAR | MONTH } else { before & !(from - 1) | to };
        }
        let mut typmods = vec![integer(fields, Some(first.start))];
        if last == SECOND {
            typmods.extend(self.opt_precision()?);
        }
        Ok(typmods)
    }

    /// Whether one of SQL's own spellings begins here.
    pub(super) fn is_const_type(&self) -> bool {
        matches!(
            self.keyword(),
            Some(
                Keyword::Int
                    | Keyword::Integer
                    | Keyword::Smallint
                    | Keyword::Bigint
                    | Keyword::Real
                    | Keyword::Float
                    | Keyword::Boolean
                    | Keyword::Decimal
                    | Keyword::Dec
                    | Keyword::Numeric
                    | Keyword::Bit
                    | Keyword::Character
                    | Keyword::Char
                    | Keyword::Varchar
                    | Keyword::National
                    | Keyword::Nchar
                    | Keyword::Time
                    | Keyword::Timestamp
            )
        ) || self.are_keywords(&[Keyword::Double, Keyword::Precision])
    }
}

fn interval_field(keyword: Keyword) -> Option<i32> {
    Some(match keyword {
        Keyword::Year => YEAR,
        Keyword::Month => MONTH,
        Keyword::Day => DAY,
        Keyword::Hour => HOUR,
        Keyword::Minute => MINUTE,
        Keyword::Second => SECOND,
        _ => return None,
    })
}

pub(super) fn plain(names: Vec<Name>, location: u32) -> TypeName {
    TypeName {
        names,
        setof: false,
        pct_type: false,
        typmods: Vec::new(),
        array_bounds: Vec::new(),
        location,
    }
}

/// A constant that the text may not have; its place is then 0.
pub(super) fn integer(value: i32, location: Option<u32>) -> Expr {
    Expr { node: Node::AConst(Value::Integer(value)), location: location.unwrap_or(0) }
}

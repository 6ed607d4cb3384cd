//! PostgreSQL's dialect, for a parser that is to end in time.
//!
//! sqlparser tries alternatives one after the other, and each tries its own again. Of `f(f(f(1` it
//! parses the innermost call twice as often for every call around it. So a text of a hundred bytes
//! would take hours. [`Bounded`] counts the beginnings of expressions. A parser that does not go
//! back finds fewer of them than there are tokens. When there are many more, [`Bounded`] stops the
//! parser.

use std::any::TypeId;
use std::cell::Cell;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// Beginnings of expressions that any text may have.
const FREE_STEPS: usize = 20_000;
/// Further beginnings for each token of the text.
const STEPS_PER_TOKEN: usize = 10;

/// PostgreSQL's dialect for one text.
#[derive(Debug)]
pub(super) struct Bounded {
    steps_left: Cell<usize>,
}

impl Bounded {
    /// For a text of this many tokens.
    pub(super) fn new(tokens: usize) -> Self {
        let steps = tokens.saturating_mul(STEPS_PER_TOKEN).saturating_add(FREE_STEPS);
        Self { steps_left: Cell::new(steps) }
    }
}

/// What is as in sqlparser's dialect: all that it says itself, and nothing that it leaves to the
/// trait.
macro_rules! as_in_postgresql {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty,)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $result {
            PostgreSqlDialect {}.$name($($argument),*)
        })*
    };
}

impl Dialect for Bounded {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn parse_prefix(&self, _: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        match self.steps_left.get().checked_sub(1) {
            Some(left) => {
                self.steps_left.set(left);
                None
            }
            // The one error after which no alternative is tried.
            None => Some(Err(ParserError::RecursionLimitExceeded)),
        }
    }

    /// Names of arguments are identifiers. They are expressions only in `json_object('a': 1)`,
    /// which is newer than PostgreSQL 15. For those the parser would parse every argument of every
    /// call twice.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    as_in_postgresql! {
        identifier_quote_style(identifier: &str) -> Option<char>,
        is_delimited_identifier_start(ch: char) -> bool,
        is_identifier_start(ch: char) -> bool,
        is_identifier_part(ch: char) -> bool,
        supports_unicode_string_literal() -> bool,
        is_reserved_for_identifier(keyword: Keyword) -> bool,
        is_custom_operator_part(ch: char) -> bool,
        get_next_precedence(parser: &Parser<'_>) -> Option<Result<u8, ParserError>>,
        supports_filter_during_aggregation() -> bool,
        supports_group_by_expr() -> bool,
        prec_value(precedence: Precedence) -> u8,
        allow_extract_custom() -> bool,
        allow_extract_single_quotes() -> bool,
        supports_create_index_with_clause() -> bool,
        supports_explain_with_utility_options() -> bool,
        supports_listen_notify() -> bool,
        supports_factorial_operator() -> bool,
        supports_bitwise_shift_operators() -> bool,
        supports_comment_on() -> bool,
        supports_load_extension() -> bool,
        supports_named_fn_args_with_colon_operator() -> bool,
        supports_empty_projections() -> bool,
        supports_nested_comments() -> bool,
        supports_string_escape_constant() -> bool,
        supports_numeric_literal_underscores() -> bool,
        supports_array_typedef_with_brackets() -> bool,
        supports_geometric_types() -> bool,
        supports_set_names() -> bool,
        supports_alter_column_type_using() -> bool,
        supports_notnull_operator() -> bool,
        supports_interval_options() -> bool,
        supports_insert_table_alias() -> bool,
        supports_create_table_like_parenthesized() -> bool,
        supports_select_wildcard_with_alias() -> bool,
        supports_comma_separated_trim() -> bool,
        supports_xml_expressions() -> bool,
        supports_comment_optimizer_hint() -> bool,
    }
}

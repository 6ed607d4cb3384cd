//! What the tree says.

use millpond_syntax::parse;
use millpond_syntax::tree::*;

fn only(text: &str) -> Statement {
    let mut list = parse(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(list.len(), 1);
    list.pop().expect("a statement").stmt
}

fn select(text: &str) -> SelectStmt {
    match only(text) {
        Statement::Select(select) => *select,
        other => panic!("{other:?}"),
    }
}

fn simple(text: &str) -> SimpleSelect {
    match select(text).body {
        SelectBody::Select(simple) => *simple,
        other => panic!("{other:?}"),
    }
}

fn expr(text: &str) -> Expr {
    simple(&format!("select {text}")).target_list.remove(0).val.expect("a value")
}

/// An expression with all its parentheses.
fn show(expr: &Expr) -> String {
    let list = |list: &[Expr]| list.iter().map(show).collect::<Vec<_>>().join(", ");
    match &expr.node {
        Node::ColumnRef(fields) => fields
            .iter()
            .map(|field| match field {
                Field::String(name) => name.to_string(),
                Field::Star => "*".to_owned(),
            })
            .collect::<Vec<_>>()
            .join("."),
        Node::AConst(Value::Integer(value)) => value.to_string(),
        Node::AConst(Value::Float(text)) => format!("{text}f"),
        Node::AConst(Value::String(text)) => format!("'{text}'"),
        Node::AConst(other) => format!("{other:?}"),
        Node::AExpr(a) => {
            let name = a.name.join(".");
            let right = match &a.rexpr {
                Operand::Expr(right) => show(right),
                Operand::List(right) => format!("[{}]", list(right)),
            };
            match &a.lexpr {
                Some(left) => format!("({} {name} {right})", show(left)),
                None => format!("({name} {right})"),
            }
        }
        Node::BoolExpr(op, args) => format!("{op:?}({})", list(args)),
        Node::NullTest(test, arg) => format!("{test:?}({})", show(arg)),
        Node::TypeCast(cast) => {
            format!("({} :: {})", show(&cast.arg), cast.type_name.names.join("."))
        }
        Node::FuncCall(call) => format!("{}({})", call.funcname.join("."), list(&call.args)),
        Node::CollateClause(arg, name) => format!("({} collate {})", show(arg), name.join(".")),
        Node::RowExpr(args, _) => format!("row({})", list(args)),
        Node::SubLink(link) => format!("{:?}", link.sub_link_type),
        other => format!("{other:?}"),
    }
}

#[test]
fn operators_bind_as_in_postgresql() {
    for (text, shown) in [
        ("1 + 2 * 3 ^ 4 ^ 5", "(1 + (2 * ((3 ^ 4) ^ 5)))"),
        ("a - b - c", "((a - b) - c)"),
        ("- 2 ^ 2", "(-2 ^ 2)"),
        ("- a ^ 2", "((- a) ^ 2)"),
        ("-a::int", "(- (a :: pg_catalog.int4))"),
        ("a || b + c", "(a || (b + c))"),
        ("a = b or c and not d = e", "Or((a = b), And(c, Not((d = e))))"),
        ("a and b and c", "And(a, b, c)"),
        ("(a or b) or c", "Or(a, b, c)"),
        ("a < b + 1 is null", "IsNull((a < (b + 1)))"),
        ("a is null = b", "(IsNull(a) = b)"),
        ("not a is null", "Not(IsNull(a))"),
        ("a = not b = c", "(a = Not((b = c)))"),
        ("a = b like c", "(a = (b ~~ c))"),
        ("a between 1 + 1 and 2 and b", "And((a BETWEEN [(1 + 1), 2]), b)"),
        ("a in (1, 2) in (3)", "((a = [1, 2]) = [3])"),
        ("a not in (1)", "(a <> [1])"),
        ("a not in (select 1)", "Not(Any)"),
        ("a at time zone 'x' + b", "(pg_catalog.timezone('x', a) + b)"),
        ("a collate \"C\" || b", "((a collate C) || b)"),
        ("@ a + b", "(@ (a + b))"),
        ("a @ - b", "(a @ (- b))"),
        ("a operator(s.*) b + c", "(a s.* (b + c))"),
        ("((1)) + ((select 1))", "(1 + Expr)"),
        ("((select 1) + 1) * 2", "((Expr + 1) * 2)"),
        ("2147483648", "2147483648f"),
        ("-2147483648", "-2147483648f"),
        ("(1, 2) = row(1, 2)", "(row(1, 2) = row(1, 2))"),
    ] {
        assert_eq!(show(&expr(text)), shown, "{text}");
    }
}

#[test]
fn sql_spellings_become_names_of_functions_and_types() {
    for (text, shown) in [
        ("extract(year from a)", "pg_catalog.extract('year', a)"),
        ("position(a in b)", "pg_catalog.position(b, a)"),
        ("substring(a for 2)", "pg_catalog.substring(a, 1, (2 :: pg_catalog.int4))"),
        ("substring(a for 2 from 3)", "pg_catalog.substring(a, 3, 2)"),
        ("substring(a, 2)", "substring(a, 2)"),
        ("trim(leading 'x' from a)", "pg_catalog.ltrim(a, 'x')"),
        ("a like b escape c", "(a ~~ pg_catalog.like_escape(b, c))"),
        ("a similar to b", "(a ~ pg_catalog.similar_to_escape(b))"),
        ("(a, b) overlaps (c, d)", "pg_catalog.overlaps(a, b, c, d)"),
        ("double precision '1'", "('1' :: pg_catalog.float8)"),
        ("timestamp with time zone 'x'", "('x' :: pg_catalog.timestamptz)"),
        ("char varying 'x'", "('x' :: pg_catalog.varchar)"),
        ("n'x'", "('x' :: pg_catalog.bpchar)"),
        ("s.t 'x'", "('x' :: s.t)"),
        ("Mixed.\"Case\"", "mixed.Case"),
    ] {
        assert_eq!(show(&expr(text)), shown, "{text}");
    }
}

#[test]
fn locations_are_bytes_of_the_operator_or_the_first_token() {
    assert_eq!(expr("'ü' || b").location, 12);
    assert_eq!(expr("a.b").location, 7);
    assert_eq!(expr("x in (1)").location, 9);
    assert_eq!(expr("x::int").location, 8);
    assert_eq!(expr("f(1)").location, 7);
    assert_eq!(expr("- x").location, 7);
    let query = simple("select 1 from a.b c");
    assert!(matches!(&query.from_clause[..], [TableRef::RangeVar(b)] if b.location == 14));
}

#[test]
fn joins_nest_by_their_conditions() {
    let query = simple("select from a join b join c on true on false cross join d");
    let [TableRef::Join(outer)] = &query.from_clause[..] else { panic!() };
    assert!(outer.quals.is_none());
    let TableRef::Join(left) = &outer.larg else { panic!() };
    assert!(matches!(&left.quals, Some(Expr { node: Node::AConst(Value::Boolean(false)), .. })));
    assert!(matches!(&left.rarg, TableRef::Join(_)));
}

#[test]
fn intersect_binds_tighter_and_clauses_belong_to_the_whole() {
    let query = select("select 1 union select 2 intersect select 3 order by 1 limit 2");
    assert_eq!(query.sort_clause.len(), 1);
    assert!(query.limit_count.is_some());
    let SelectBody::SetOp { op: SetOperation::Union, rarg, .. } = &query.body else { panic!() };
    assert!(matches!(rarg.body, SelectBody::SetOp { op: SetOperation::Intersect, .. }));
}

#[test]
fn parentheses_add_clauses_to_the_query_inside() {
    let query = select("((select 1 limit 1) order by 1)");
    assert!(query.limit_count.is_some());
    assert_eq!(query.sort_clause.len(), 1);
}

#[test]
fn types_have_modifiers_and_bounds() {
    let cast = |text: &str| match expr(text).node {
        Node::TypeCast(cast) => cast.type_name,
        other => panic!("{other:?}"),
    };
    assert_eq!(cast("a::int[3][]").array_bounds, [3, -1]);
    assert_eq!(cast("a::char").typmods.len(), 1);
    assert_eq!(cast("char 'a'").typmods.len(), 0);
    let fields = cast("interval '1' day to second (3)").typmods;
    assert_eq!(fields.iter().map(show).collect::<Vec<_>>(), ["7176", "3"]);
    let fields = cast("interval '1' year to month").typmods;
    assert_eq!(fields.iter().map(show).collect::<Vec<_>>(), ["6"]);
}

#[test]
fn statements_without_a_tree_have_their_tag() {
    for (text, tag) in [
        (
            "create or replace function f() returns int language sql as 'select 1'",
            "CREATE FUNCTION",
        ),
        ("alter view v rename to w", "ALTER VIEW"),
        ("drop trigger t on a", "DROP TRIGGER"),
        ("grant a to b", "GRANT ROLE"),
        ("grant select on a to b", "GRANT"),
        ("refresh materialized view v", "REFRESH MATERIALIZED VIEW"),
        ("create user u", "CREATE ROLE"),
        ("set constraints all immediate", "SET CONSTRAINTS"),
    ] {
        assert_eq!(only(text), Statement::Other { kind: tag }, "{text}");
    }
}

#[test]
fn alter_table_has_its_changes_of_constraints() {
    let changes = |text: &str| match only(text) {
        Statement::AlterTable(stmt) => stmt.cmds,
        other => panic!("{other:?}"),
    };
    let both =
        changes("alter table if exists only t drop constraint if exists c cascade, add unique (a)");
    let [AlterTableCmd::DropConstraint { missing_ok: true, .. }, AlterTableCmd::AddConstraint(_)] =
        both.as_slice()
    else {
        panic!("{both:?}")
    };
    for (text, words) in [
        ("alter table t add a int", "ADD COLUMN"),
        ("alter table t alter column a drop not null, add unique (a)", "ALTER COLUMN"),
        ("alter table t rename to u", "RENAME TO"),
    ] {
        assert_eq!(changes(text), [AlterTableCmd::Other(words.to_owned())], "{text}");
    }
    assert!(parse("alter table t add a int int").is_err());
}

#[test]
fn statements_in_statements_and_defaults_have_their_place() {
    let text = "explain (costs off) select 1 ; prepare p as select 2";
    let list = parse(text).unwrap();
    let (Statement::Explain(explain), Statement::Prepare(prepare)) = (&list[0].stmt, &list[1].stmt)
    else {
        panic!("{list:?}")
    };
    let piece = |raw: &RawStmt| &text[raw.location as usize..][..raw.length as usize];
    assert_eq!((piece(&explain.query), piece(&prepare.query)), ("select 1", "select 2"));
    let text = "create table t (a int default 1 + 2 not null)";
    let Statement::Create(create) = only(text) else { panic!() };
    let TableElement::Column(column) = &create.table_elts[0] else { panic!() };
    let ConstrType::Default(_, place) = &column.constraints[0].contype else { panic!() };
    assert_eq!(&text[place.start as usize..place.end as usize], "1 + 2");
}

fn lifted(text: &str) -> Result<millpond_syntax::Lifted, Box<millpond_syntax::SyntaxError>> {
    millpond_syntax::parse_lifted(
        text,
        millpond_syntax::tokens(text, millpond_syntax::PlainStrings::Standard, &|| false)?,
    )
}

#[test]
fn lifted_literals_are_parameters() {
    let text = "select a + 1, 'b' from t where c = -2.5";
    let lifted = lifted(text).unwrap();
    let places: Vec<_> =
        lifted.literals.iter().map(|literal| (literal.is_string, literal.location)).collect();
    assert_eq!(places, [(false, 11), (true, 14), (false, 36)]);
    let as_params = parse("select a + $1, $2 from t where c = -$3").unwrap();
    let shown = |list: &[RawStmt]| match &list[0].stmt {
        Statement::Select(select) => match &select.body {
            SelectBody::Select(simple) => {
                let mut values = simple.target_list.iter().filter_map(|target| target.val.as_ref());
                let condition = simple.where_clause.as_ref().map(show);
                (values.by_ref().map(show).collect::<Vec<_>>(), condition)
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(shown(&lifted.statements), shown(&as_params));
    for text in ["select interval '1'", "select 1::varchar(3)", "copy t from stdin delimiter ','"] {
        assert!(parse(text).is_ok() && self::lifted(text).is_err(), "{text}");
    }
}

#[test]
fn expressions_alone_are_parsed() {
    assert_eq!(show(&millpond_syntax::parse_expression("a + b * 2").unwrap()), "(a + (b * 2))");
    assert!(millpond_syntax::parse_expression("a, b").is_err());
    assert!(millpond_syntax::parse_expression("").is_err());
}

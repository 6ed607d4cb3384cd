//! What a column of a result is called that has no alias.

use millpond_syntax::tree::{
    AExprKind, Expr, Field, Indirection, MinMaxOp, Name, Node, SelectBody, SelectStmt, SubLinkType,
    XmlExprOp,
};

use crate::expr::bind::value_function_name;

/// The name that PostgreSQL gives to a column without an alias.
pub(crate) fn column_name(e: &Expr) -> Name {
    match named(e) {
        Some((name, _)) => name,
        None => Name::new_static("?column?"),
    }
}

/// A name, and whether it is better than that of a type.
fn named(e: &Expr) -> Option<(Name, bool)> {
    let good = |name: &str| Some((name.into(), true));
    match &e.node {
        Node::ColumnRef(fields) => fields.iter().rev().find_map(|field| match field {
            Field::String(name) => good(name),
            Field::Star => None,
        }),
        Node::AIndirection(arg, parts) => {
            let last = parts.iter().rev().find_map(|part| match part {
                Indirection::Field(name) => good(name),
                _ => None,
            });
            last.or_else(|| named(arg))
        }
        Node::FuncCall(call) => good(call.funcname.last()?),
        Node::AExpr(e) if e.kind == AExprKind::NullIf => good("nullif"),
        Node::TypeCast(cast) => match named(&cast.arg) {
            found @ Some((_, true)) => found,
            _ => Some((cast.type_name.names.last()?.clone(), false)),
        },
        Node::CollateClause(arg, _) => named(arg),
        Node::GroupingFunc(_) => good("grouping"),
        Node::SubLink(link) => match link.sub_link_type {
            SubLinkType::Exists => good("exists"),
            SubLinkType::Array => good("array"),
            SubLinkType::Expr => of_query(&link.subselect),
            SubLinkType::Any | SubLinkType::All => None,
        },
        Node::CaseExpr(case) => match case.defresult.as_ref().and_then(named) {
            found @ Some((_, true)) => found,
            _ => Some(("case".into(), false)),
        },
        Node::AArrayExpr(_) => good("array"),
        Node::RowExpr(..) => good("row"),
        Node::CoalesceExpr(_) => good("coalesce"),
        Node::MinMaxExpr(MinMaxOp::Greatest, _) => good("greatest"),
        Node::MinMaxExpr(MinMaxOp::Least, _) => good("least"),
        Node::SqlValueFunction(op, _) => good(value_function_name(*op)),
        Node::XmlExpr(xml) => xml_name(xml.op).and_then(good),
        Node::XmlSerialize(_) => good("xmlserialize"),
        _ => None,
    }
}

fn xml_name(op: XmlExprOp) -> Option<&'static str> {
    Some(match op {
        XmlExprOp::Concat => "xmlconcat",
        XmlExprOp::Element => "xmlelement",
        XmlExprOp::Forest => "xmlforest",
        XmlExprOp::Parse { .. } => "xmlparse",
        XmlExprOp::Pi => "xmlpi",
        XmlExprOp::Root(_) => "xmlroot",
        XmlExprOp::Document => return None,
    })
}

/// A subquery is called like its only column.
fn of_query(query: &SelectStmt) -> Option<(Name, bool)> {
    let mut query = query;
    loop {
        match &query.body {
            SelectBody::SetOp { larg, .. } => query = larg,
            SelectBody::Values(_) => return Some(("column1".into(), true)),
            SelectBody::Select(select) => {
                let target = select.target_list.first()?;
                return match (&target.name, &target.val) {
                    (Some(name), _) => Some((name.clone(), true)),
                    (None, Some(e)) if is_star(e) => None,
                    (None, Some(e)) => Some((column_name(e), true)),
                    (None, None) => None,
                };
            }
        }
    }
}

fn is_star(e: &Expr) -> bool {
    matches!(&e.node, Node::ColumnRef(fields) if fields.last() == Some(&Field::Star))
}

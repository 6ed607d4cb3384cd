//! SQL/XML's calls, and XMLTABLE.

use super::primary::system_call;
use super::{Parse, Parser};
use crate::keyword::Keyword;
use crate::tree::{
    Expr, Node, RangeTableFunc, RangeTableFuncCol, ResTarget, XmlExpr, XmlExprOp, XmlSerialize,
    XmlStandalone,
};

impl Parser<'_> {
    /// What is in the parentheses of one of SQL/XML's calls.
    pub(super) fn xml_call(&mut self, keyword: Keyword, location: u32) -> Parse<Expr> {
        let mut xml =
            XmlExpr { op: XmlExprOp::Concat, name: None, named_args: Vec::new(), args: Vec::new() };
        match keyword {
            Keyword::Xmlconcat => xml.args = self.expr_list()?,
            Keyword::Xmlelement => self.xml_element(&mut xml)?,
            Keyword::Xmlexists => {
                let path = self.c_expr()?;
                let document = self.xmlexists_argument()?;
                return Ok(system_call("xmlexists", vec![path, document], location));
            }
            Keyword::Xmlforest => {
                xml.op = XmlExprOp::Forest;
                xml.named_args = self.list(Self::xml_attribute)?;
            }
            Keyword::Xmlparse => {
                let document = self.document_or_content()?;
                xml.args.push(self.a_expr()?);
                let preserve_whitespace = if self.take_keyword(Keyword::Preserve) {
                    self.expect_keyword(Keyword::Whitespace)?;
                    true
                } else {
                    if self.take_keyword(Keyword::Strip) {
                        self.expect_keyword(Keyword::Whitespace)?;
                    }
                    false
                };
                xml.op = XmlExprOp::Parse { document, preserve_whitespace };
            }
            Keyword::Xmlpi => {
                xml.op = XmlExprOp::Pi;
                self.expect_keyword(Keyword::Name)?;
                xml.name = Some(self.col_label()?);
                if self.take_char(b',') {
                    xml.args.push(self.a_expr()?);
                }
            }
            Keyword::Xmlroot => self.xml_root(&mut xml)?,
            _ => return self.xml_serialize(location),
        }
        Ok(Expr { node: Node::XmlExpr(Box::new(xml)), location })
    }

    fn xml_element(&mut self, xml: &mut XmlExpr) -> Parse<()> {
        xml.op = XmlExprOp::Element;
        self.expect_keyword(Keyword::Name)?;
        xml.name = Some(self.col_label()?);
        if !self.take_char(b',') {
            return Ok(());
        }
        if self.is_keyword(Keyword::Xmlattributes) && self.is_char_at(1, b'(') {
            self.bump();
            xml.named_args = self.paren_list(Self::xml_attribute)?;
            if !self.take_char(b',') {
                return Ok(());
            }
        }
        xml.args = self.expr_list()?;
        Ok(())
    }

    fn xml_attribute(&mut self) -> Parse<ResTarget> {
        let location = self.location();
        let val = Some(self.a_expr()?);
        let name = if self.take_keyword(Keyword::As) { Some(self.col_label()?) } else { None };
        Ok(ResTarget { name, indirection: Vec::new(), val, location })
    }

    fn document_or_content(&mut self) -> Parse<bool> {
        match self.take_one_of(&[Keyword::Document, Keyword::Content]) {
            Some(keyword) => Ok(keyword == Keyword::Document),
            None => Err(self.unexpected()),
        }
    }

    fn xml_root(&mut self, xml: &mut XmlExpr) -> Parse<()> {
        xml.args.push(self.a_expr()?);
        self.expect_char(b',')?;
        self.expect_keyword(Keyword::Version)?;
        if !self.take_keywords(&[Keyword::No, Keyword::Value]) {
            xml.args.push(self.a_expr()?);
        }
        let mut standalone = None;
        if self.take_char(b',') {
            self.expect_keyword(Keyword::Standalone)?;
            standalone = Some(if self.take_keyword(Keyword::Yes) {
                XmlStandalone::Yes
            } else {
                self.expect_keyword(Keyword::No)?;
                let no_value = self.take_keyword(Keyword::Value);
                if no_value { XmlStandalone::NoValue } else { XmlStandalone::No }
            });
        }
        xml.op = XmlExprOp::Root(standalone);
        Ok(())
    }

    fn xml_serialize(&mut self, location: u32) -> Parse<Expr> {
        let document = self.document_or_content()?;
        let expr = self.a_expr()?;
        self.expect_keyword(Keyword::As)?;
        let type_name = self.type_name()?;
        let serialize = XmlSerialize { document, expr, type_name };
        Ok(Expr { node: Node::XmlSerialize(Box::new(serialize)), location })
    }

    /// PASSING and the document.
    fn xmlexists_argument(&mut self) -> Parse<Expr> {
        self.expect_keyword(Keyword::Passing)?;
        self.xml_passing_mech()?;
        let document = self.c_expr()?;
        self.xml_passing_mech()?;
        Ok(document)
    }

    fn xml_passing_mech(&mut self) -> Parse<()> {
        if self.take_keyword(Keyword::By) {
            if self.take_one_of(&[Keyword::Ref, Keyword::Value]).is_none() {
                return Err(self.unexpected());
            }
        }
        Ok(())
    }

    pub(super) fn xml_table(&mut self, lateral: bool) -> Parse<RangeTableFunc> {
        let location = self.expect_keyword(Keyword::Xmltable)?.start;
        self.expect_char(b'(')?;
        let mut namespaces = Vec::new();
        if self.is_keyword(Keyword::Xmlnamespaces) && self.is_char_at(1, b'(') {
            self.bump();
            namespaces = self.paren_list(Self::xml_namespace)?;
            self.expect_char(b',')?;
        }
        let rowexpr = self.c_expr()?;
        let docexpr = self.xmlexists_argument()?;
        self.expect_keyword(Keyword::Columns)?;
        let columns = self.list(Self::xml_column)?;
        self.expect_char(b')')?;
        Ok(RangeTableFunc { lateral, docexpr, rowexpr, namespaces, columns, alias: None, location })
    }

    fn xml_namespace(&mut self) -> Parse<ResTarget> {
        let location = self.location();
        if self.take_keyword(Keyword::Default) {
            let val = Some(self.b_expr()?);
            return Ok(ResTarget { name: None, indirection: Vec::new(), val, location });
        }
        let val = Some(self.b_expr()?);
        self.expect_keyword(Keyword::As)?;
        Ok(ResTarget { name: Some(self.col_label()?), indirection: Vec::new(), val, location })
    }

    fn xml_column(&mut self) -> Parse<RangeTableFuncCol> {
        let location = self.location();
        let mut column = RangeTableFuncCol {
            colname: self.col_id()?,
            type_name: None,
            is_not_null: false,
            colexpr: None,
            coldefexpr: None,
            location,
        };
        if self.take_keywords(&[Keyword::For, Keyword::Ordinality]) {
            return Ok(column);
        }
        column.type_name = Some(self.type_name()?);
        let mut nullability = false;
        loop {
            let place = self.location();
            match self.kind() {
                crate::lexer::TokenKind::Keyword(Keyword::Default) => {
                    self.bump();
                    if column.coldefexpr.is_some() {
                        return Err(self.error_at("only one DEFAULT value is allowed", place));
                    }
                    column.coldefexpr = Some(self.b_expr()?);
                }
                crate::lexer::TokenKind::Keyword(word @ (Keyword::Not | Keyword::Null)) => {
                    self.bump();
                    let not = word == Keyword::Not;
                    if not {
                        self.expect_keyword(Keyword::Null)?;
                    }
                    if nullability {
                        let message = format!(
                            "conflicting or redundant NULL / NOT NULL declarations \
                             for column \"{}\"",
                            column.colname
                        );
                        return Err(self.error_at(message, place));
                    }
                    nullability = true;
                    column.is_not_null = not;
                }
                crate::lexer::TokenKind::Ident => {
                    let name = self.take_name()?;
                    if &*name != "path" {
                        let message = format!("unrecognized column option \"{name}\"");
                        return Err(self.error_at(message, place));
                    }
                    if column.colexpr.is_some() {
                        return Err(
                            self.error_at("only one PATH value per column is allowed", place)
                        );
                    }
                    column.colexpr = Some(self.b_expr()?);
                }
                _ => return Ok(column),
            }
        }
    }
}

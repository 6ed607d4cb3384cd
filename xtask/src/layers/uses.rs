//! Which module of a crate uses which: by `use`, by paths in code, and by calls of methods.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{
    Expr, ExprMethodCall, Field, ImplItem, Item, ItemImpl, ItemUse, Macro, Path, Stmt, TraitItem,
};

use super::graph::{Graph, Line};
use super::methods::{Methods, Owner, owner};
use super::modules::{Tree, is_built, is_reexport, used};

/// The graph of a crate's files.
pub fn graph(tree: &Tree, methods: &Methods) -> Graph {
    let mut graph = Graph::default();
    for at in 0..tree.modules.len() {
        let mut uses = Uses { tree, methods, graph: &mut graph, at, own_type: None };
        for item in &tree.modules[at].items {
            uses.visit_item(item);
        }
    }
    graph
}

struct Uses<'a> {
    tree: &'a Tree,
    methods: &'a Methods,
    graph: &'a mut Graph,
    /// The module that is read.
    at: usize,
    /// The type whose methods are read: `Self`.
    own_type: Option<Owner>,
}

impl Uses<'_> {
    fn add(&mut self, to: usize, line: usize) {
        let module = &self.tree.modules[self.at];
        let to = self.tree.modules[to].home;
        self.graph.add(module.home, to, Line { file: module.file.clone(), number: line });
    }

    /// A path in code.
    fn path(&mut self, path: &[String], line: usize) {
        if let [first, name, ..] = path {
            if first == "Self" {
                let Some(own_type) = self.own_type.clone() else { return };
                for to in self.methods.of_type(&own_type, name).collect::<Vec<_>>() {
                    self.add(to, line);
                }
                return;
            }
        }
        for place in self.tree.resolve(self.at, path) {
            let Some(item) = place.item else { continue };
            self.add(place.module, line);
            let Some(name) = place.rest.first() else { continue };
            let methods = self.methods;
            for to in methods.of_type(&(place.module, item), name).collect::<Vec<_>>() {
                self.add(to, line);
            }
        }
    }

    fn call(&mut self, on_self: bool, name: &str, line: usize) {
        let methods = self.methods;
        let mut found = match &self.own_type {
            Some(own_type) if on_self => methods.of_type(own_type, name).collect(),
            _ => Vec::new(),
        };
        if found.is_empty() {
            found = methods.of_only_type(name).collect();
        }
        found.into_iter().for_each(|to| self.add(to, line));
    }

    /// Paths and calls among the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: usize, sign: char| matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
        let mut at = 0;
        while at < trees.len() {
            match &trees[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let start = at;
                    let mut path = vec![first.to_string()];
                    while is(at + 1, ':') && is(at + 2, ':') {
                        let Some(TokenTree::Ident(next)) = trees.get(at + 3) else { break };
                        path.push(next.to_string());
                        at += 3;
                    }
                    let line = line(first.span());
                    let is_method = start > 0 && is(start - 1, '.') && !is_range(&trees, start);
                    if !is_method {
                        self.path(&path, line);
                    } else if matches!(trees.get(at + 1), Some(TokenTree::Group(_))) {
                        let on_self = matches!(
                            start.checked_sub(2).map(|before| &trees[before]),
                            Some(TokenTree::Ident(receiver)) if *receiver == "self"
                        );
                        self.call(on_self, &path[0], line);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

/// Whether the point before a token is the second of a range's two.
fn is_range(trees: &[TokenTree], at: usize) -> bool {
    at > 1 && matches!(&trees[at - 2], TokenTree::Punct(punct) if punct.as_char() == '.')
}

fn line(span: Span) -> usize {
    span.start().line
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        // Modules are read by themselves; what a macro expands to is not known.
        if !matches!(item, Item::Mod(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_built(&item.attrs) {
            return;
        }
        for used in used(&item.tree) {
            for place in self.tree.resolve(self.at, &used.path) {
                // A module by itself is no use yet; a re-export of what lies within is none.
                let is_child = self.tree.is_within(place.module, self.at);
                if place.item.is_some() && !(is_reexport(&item.vis) && is_child) {
                    self.add(place.module, used.line);
                }
            }
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let outer = self.own_type.take();
        self.own_type = owner(self.tree, self.at, &block.self_ty);
        visit::visit_item_impl(self, block);
        self.own_type = outer;
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Fn(it) => &it.attrs,
            ImplItem::Const(it) => &it.attrs,
            ImplItem::Type(it) => &it.attrs,
            ImplItem::Macro(it) => &it.attrs,
            _ => return,
        };
        if is_built(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes = match item {
            TraitItem::Fn(it) => &it.attrs,
            TraitItem::Const(it) => &it.attrs,
            TraitItem::Type(it) => &it.attrs,
            TraitItem::Macro(it) => &it.attrs,
            _ => return,
        };
        if is_built(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast Field) {
        if is_built(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if is_built(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes: &[syn::Attribute] = match statement {
            Stmt::Local(it) => &it.attrs,
            Stmt::Macro(it) => &it.attrs,
            Stmt::Expr(Expr::Block(it), _) => &it.attrs,
            Stmt::Expr(Expr::Call(it), _) => &it.attrs,
            Stmt::Expr(Expr::If(it), _) => &it.attrs,
            Stmt::Expr(Expr::MethodCall(it), _) => &it.attrs,
            Stmt::Expr(Expr::Return(it), _) => &it.attrs,
            _ => &[],
        };
        if is_built(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let on_self = matches!(&*call.receiver, Expr::Path(path) if path.path.is_ident("self"));
        self.call(on_self, &call.method.to_string(), line(call.method.span()));
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            let first = path.segments.first().map(|segment| line(segment.ident.span()));
            let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            self.path(&names, first.unwrap_or_default());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    // Links in documentation and conditions are no uses.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

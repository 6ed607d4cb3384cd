//! Where the methods of a crate's types are written.
//!
//! A type may have methods in other modules than its own, and a call of one is a use of the module
//! that has it. Without types of expressions, a call counts in two cases: the receiver is `self`,
//! or no other type has a method of this name. So no edge is false.

use std::collections::{BTreeMap, BTreeSet};

use syn::{ImplItem, Item, ItemImpl, TraitItem, Type};

use super::modules::{Tree, is_built};

/// Methods of the standard library's types that ours have, too.
const STANDARD: &[&str] = &[
    "abs",
    "all",
    "and",
    "any",
    "as_bytes",
    "as_mut",
    "as_ptr",
    "as_ref",
    "as_slice",
    "as_str",
    "bytes",
    "capacity",
    "chain",
    "chars",
    "chunks",
    "clear",
    "clone",
    "close",
    "cloned",
    "cmp",
    "collect",
    "compare_exchange",
    "contains",
    "contains_key",
    "copied",
    "count",
    "difference",
    "dedup",
    "downgrade",
    "drain",
    "elapsed",
    "end",
    "entry",
    "eq",
    "extend",
    "fetch_add",
    "fetch_and",
    "fetch_max",
    "fetch_or",
    "fetch_sub",
    "fetch_update",
    "fill",
    "filter",
    "find",
    "finish",
    "first",
    "flat_map",
    "flush",
    "fold",
    "for_each",
    "freeze",
    "get",
    "get_mut",
    "get_or_init",
    "hash",
    "index",
    "insert",
    "into_inner",
    "into_iter",
    "is_empty",
    "is_finished",
    "is_none",
    "is_some",
    "iter",
    "iter_mut",
    "join",
    "keys",
    "kind",
    "last",
    "len",
    "lines",
    "load",
    "lock",
    "map",
    "max",
    "merge",
    "min",
    "name",
    "ne",
    "new",
    "next",
    "notify_all",
    "notify_one",
    "nth",
    "ok",
    "open",
    "or",
    "parent",
    "parse",
    "peek",
    "pop",
    "pop_front",
    "position",
    "push",
    "push_back",
    "push_str",
    "range",
    "read",
    "read_exact",
    "recv",
    "remove",
    "repeat",
    "replace",
    "reserve",
    "reset",
    "resize",
    "retain",
    "rev",
    "root",
    "run",
    "seek",
    "send",
    "set",
    "skip",
    "sort",
    "source",
    "spawn",
    "split",
    "split_at",
    "start",
    "status",
    "step",
    "store",
    "sum",
    "swap",
    "take",
    "take_while",
    "then",
    "to_owned",
    "to_string",
    "to_vec",
    "trim",
    "truncate",
    "try_lock",
    "unlock",
    "unpark",
    "unwrap",
    "update",
    "upgrade",
    "values",
    "wait",
    "wake",
    "with",
    "write",
    "write_all",
    "zip",
];

/// A type: the module that defines it, and its name.
pub type Owner = (usize, String);

/// The methods of all types of a crate.
#[derive(Default)]
pub struct Methods {
    written: BTreeMap<(Owner, String), BTreeSet<usize>>,
    /// The types with a method of this name; none stands for a trait.
    owners: BTreeMap<String, BTreeSet<Option<Owner>>>,
}

impl Methods {
    /// Collects the methods of a crate. `foreign` are names that other crates' types have.
    pub fn of(tree: &Tree, foreign: &BTreeSet<String>) -> Self {
        let mut methods = Self::default();
        for name in foreign.iter().map(String::as_str).chain(STANDARD.iter().copied()) {
            methods.owners.entry(name.to_owned()).or_default().insert(None);
        }
        for (at, module) in tree.modules.iter().enumerate() {
            for item in &module.items {
                match item {
                    Item::Impl(block) => methods.learn(tree, at, block),
                    Item::Trait(found) => {
                        for item in &found.items {
                            if let TraitItem::Fn(function) = item {
                                let name = function.sig.ident.to_string();
                                methods.owners.entry(name).or_default().insert(None);
                            }
                        }
                    }
                    // A macro's methods belong to types that only its calls name.
                    Item::Macro(found) => {
                        for name in functions_in(&found.mac.tokens.to_string()) {
                            methods.owners.entry(name).or_default().insert(None);
                        }
                    }
                    _ => {}
                }
            }
        }
        methods
    }

    fn learn(&mut self, tree: &Tree, at: usize, block: &ItemImpl) {
        let owner = owner(tree, at, &block.self_ty);
        for item in &block.items {
            let ImplItem::Fn(function) = item else { continue };
            if !is_built(&function.attrs) {
                continue;
            }
            let name = function.sig.ident.to_string();
            let inherent = owner.clone().filter(|_| block.trait_.is_none());
            if let Some(owner) = &inherent {
                let written = self.written.entry((owner.clone(), name.clone())).or_default();
                written.insert(tree.modules[at].home);
            }
            // A function without `self` is never called with a dot.
            if function.sig.receiver().is_some() {
                self.owners.entry(name).or_default().insert(inherent);
            }
        }
    }

    /// The names of all methods, as other crates may call them.
    pub fn into_names(self) -> impl Iterator<Item = String> {
        self.owners.into_keys()
    }

    /// The modules that have a type's own method.
    pub fn of_type(&self, owner: &Owner, name: &str) -> impl Iterator<Item = usize> {
        self.written.get(&(owner.clone(), name.to_owned())).into_iter().flatten().copied()
    }

    /// The modules that have a method whose name only one type of the crate has.
    pub fn of_only_type(&self, name: &str) -> impl Iterator<Item = usize> {
        let owners = self.owners.get(name).filter(|owners| owners.len() == 1);
        let owner = owners.and_then(|owners| owners.first().cloned().flatten());
        owner.into_iter().flat_map(|owner| self.of_type(&owner, name).collect::<Vec<_>>())
    }
}

/// The names after `fn` in the text of tokens.
fn functions_in(tokens: &str) -> impl Iterator<Item = String> {
    let words = |c: char| !(c.is_alphanumeric() || c == '_');
    let words: Vec<&str> = tokens.split(words).filter(|word| !word.is_empty()).collect();
    let named: Vec<String> =
        words.windows(2).filter(|pair| pair[0] == "fn").map(|pair| pair[1].to_owned()).collect();
    named.into_iter()
}

/// The type of the crate that a type's path means, if it is one.
pub fn owner(tree: &Tree, at: usize, written: &Type) -> Option<Owner> {
    let Type::Path(path) = written else { return None };
    let path: Vec<String> = path.path.segments.iter().map(|s| s.ident.to_string()).collect();
    let place = tree.resolve(at, &path).into_iter().next()?;
    place.item.filter(|_| place.rest.is_empty()).map(|item| (place.module, item))
}

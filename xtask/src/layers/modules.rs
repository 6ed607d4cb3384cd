//! The tree of a crate's modules, and what a path means in it.
//!
//! Only what a plain build has counts: neither tests nor code for a model checker. A module in
//! braces belongs to its file. A re-export stands for the item that it names, so a use of the name
//! leads to the module that defines the item.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Meta, Token, UseTree, Visibility};

use crate::run::Failed;

/// Reads a source file, or nothing if there is no such file.
pub type Reader<'a> = &'a dyn Fn(&Path) -> Option<String>;

/// The modules of a crate; the first is its root.
pub struct Tree {
    pub modules: Vec<Module>,
}

/// A module.
pub struct Module {
    /// Its path in the crate; the root's is `crate`.
    pub path: String,
    /// The module that declares it; the root's is itself.
    pub parent: usize,
    /// The module of the whole file: itself, unless it stands in braces.
    pub home: usize,
    /// The file.
    pub file: PathBuf,
    /// The items that a plain build has.
    pub items: Vec<Item>,
    names: BTreeMap<String, Vec<Name>>,
    globs: Vec<Vec<String>>,
}

#[derive(Clone)]
enum Name {
    Item,
    Module(usize),
    Import(Vec<String>),
}

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The module that defines the item, or the module itself.
    pub module: usize,
    /// The item; none if the path names a module.
    pub item: Option<String>,
    /// What follows the item, as a function of a type.
    pub rest: Vec<String>,
}

/// One name that a `use` brings in.
pub struct Used {
    /// The path; that of a glob ends at the module.
    pub path: Vec<String>,
    /// The line.
    pub line: usize,
    name: Option<String>,
}

impl Tree {
    /// Reads the crate whose root is `file`.
    pub fn load(file: &Path, read: Reader<'_>) -> Result<Self, Failed> {
        let mut tree = Self { modules: Vec::new() };
        let directory = file.parent().unwrap_or(Path::new("")).to_owned();
        let items = parse(file, read)?;
        let root = Module::new("crate".to_owned(), (0, 0), file.to_owned());
        tree.add(root, items, &directory, read)?;
        Ok(tree)
    }

    /// Adds a module, whose files of children are in `directory`, with its children.
    fn add(
        &mut self,
        mut module: Module,
        items: Vec<Item>,
        directory: &Path,
        read: Reader<'_>,
    ) -> Result<(), Failed> {
        let (this, home) = (self.modules.len(), module.home);
        let prefix = if this == 0 { String::new() } else { format!("{}::", module.path) };
        let file = module.file.clone();
        module.items = items.into_iter().filter(|item| is_built(attributes(item))).collect();
        let mut children = Vec::new();
        for item in &mut module.items {
            if let Item::Mod(child) = item {
                let content = child.content.take().map(|(_, items)| items);
                children.push((child.ident.to_string(), path_attribute(&child.attrs), content));
            }
        }
        module.learn_names();
        self.modules.push(module);
        for (name, at, content) in children {
            let next = self.modules.len();
            self.modules[this].names.entry(name.clone()).or_default().push(Name::Module(next));
            let path = format!("{prefix}{name}");
            let inner = directory.join(&name);
            if let Some(items) = content {
                let child = Module::new(path, (this, home), file.clone());
                self.add(child, items, &inner, read)?;
                continue;
            }
            let candidates = match at {
                Some(at) => vec![file.parent().unwrap_or(Path::new("")).join(at)],
                None => vec![directory.join(format!("{name}.rs")), inner.join("mod.rs")],
            };
            let Some(found) = candidates.iter().find(|file| read(file).is_some()) else {
                return Err(Failed(format!("{}: no file of module {name}", file.display())));
            };
            let items = parse(found, read)?;
            self.add(Module::new(path, (this, next), found.clone()), items, &inner, read)?;
        }
        Ok(())
    }

    /// What a path means in a module. Nothing if it leads out of the crate.
    pub fn resolve(&self, from: usize, path: &[String]) -> BTreeSet<Place> {
        self.places(from, path, &mut BTreeSet::new())
    }

    fn places(
        &self,
        from: usize,
        path: &[String],
        seen: &mut BTreeSet<(usize, String)>,
    ) -> BTreeSet<Place> {
        let Some((first, rest)) = path.split_first() else {
            return BTreeSet::from([Place { module: from, item: None, rest: Vec::new() }]);
        };
        match first.as_str() {
            "crate" => self.places(0, rest, seen),
            "self" => self.places(from, rest, seen),
            "super" => self.places(self.modules[from].parent, rest, seen),
            _ => self.named(from, first, rest, seen),
        }
    }

    /// What a name means in a module, directly or by its globs.
    fn named(
        &self,
        from: usize,
        name: &str,
        rest: &[String],
        seen: &mut BTreeSet<(usize, String)>,
    ) -> BTreeSet<Place> {
        let mut places = BTreeSet::new();
        if !seen.insert((from, name.to_owned())) {
            return places;
        }
        let module = &self.modules[from];
        for meaning in module.names.get(name).into_iter().flatten() {
            match meaning {
                Name::Item => {
                    let (item, rest) = (Some(name.to_owned()), rest.to_vec());
                    places.insert(Place { module: from, item, rest });
                }
                Name::Module(child) => places.extend(self.places(*child, rest, seen)),
                Name::Import(path) => {
                    places.extend(self.places(from, &[path, rest].concat(), seen));
                }
            }
        }
        if places.is_empty() {
            for glob in &module.globs {
                let modules =
                    self.places(from, glob, seen).into_iter().filter(|p| p.item.is_none());
                for place in modules.collect::<Vec<_>>() {
                    places.extend(self.named(place.module, name, rest, seen));
                }
            }
        }
        seen.remove(&(from, name.to_owned()));
        places
    }

    /// The number of modules that have a file.
    pub fn files(&self) -> usize {
        self.modules.iter().enumerate().filter(|&(at, module)| module.home == at).count()
    }

    /// Whether `module` is `ancestor` or lies within it.
    pub fn is_within(&self, mut module: usize, ancestor: usize) -> bool {
        while module != ancestor && module != 0 {
            module = self.modules[module].parent;
        }
        module == ancestor
    }

    /// The child of `folder` that is `module` or holds it. None if it isn't within the folder.
    pub fn child_of(&self, folder: usize, mut module: usize) -> Option<usize> {
        while module != 0 {
            let parent = self.modules[module].parent;
            if parent == folder {
                return Some(module);
            }
            module = parent;
        }
        None
    }
}

impl Module {
    fn new(path: String, (parent, home): (usize, usize), file: PathBuf) -> Self {
        let (names, globs) = (BTreeMap::new(), Vec::new());
        Self { path, parent, home, file, items: Vec::new(), names, globs }
    }

    fn learn_names(&mut self) {
        for item in &self.items {
            let ident = match item {
                Item::Const(it) => &it.ident,
                Item::Enum(it) => &it.ident,
                Item::Fn(it) => &it.sig.ident,
                Item::Static(it) => &it.ident,
                Item::Struct(it) => &it.ident,
                Item::Trait(it) => &it.ident,
                Item::TraitAlias(it) => &it.ident,
                Item::Type(it) => &it.ident,
                Item::Union(it) => &it.ident,
                Item::Use(it) => {
                    for used in used(&it.tree) {
                        match used.name {
                            Some(name) => {
                                self.names.entry(name).or_default().push(Name::Import(used.path))
                            }
                            None => self.globs.push(used.path),
                        }
                    }
                    continue;
                }
                _ => continue,
            };
            self.names.entry(ident.to_string()).or_default().push(Name::Item);
        }
    }
}

/// The names that a `use` brings in.
pub fn used(tree: &UseTree) -> Vec<Used> {
    let mut found = Vec::new();
    collect(tree, &mut Vec::new(), &mut found);
    found
}

fn collect(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Used>) {
    match tree {
        UseTree::Path(step) => {
            path.push(step.ident.to_string());
            collect(&step.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|item| collect(item, path, found)),
        UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            found.push(Used { path: path.clone(), line, name: None });
        }
        UseTree::Name(name) => found.push(last(path, &name.ident, &name.ident)),
        UseTree::Rename(name) => found.push(last(path, &name.ident, &name.rename)),
    }
}

fn last(path: &[String], ident: &syn::Ident, name: &syn::Ident) -> Used {
    let mut path = path.to_vec();
    let mut name = name.to_string();
    if ident == "self" {
        if name == "self" {
            name = path.last().cloned().unwrap_or_default();
        }
    } else {
        path.push(ident.to_string());
    }
    Used { path, line: ident.span().start().line, name: Some(name) }
}

/// Whether a `use` is a re-export: visible outside its module.
pub fn is_reexport(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

fn parse(file: &Path, read: Reader<'_>) -> Result<Vec<Item>, Failed> {
    let text = read(file).ok_or_else(|| Failed(format!("{}: no such file", file.display())))?;
    let parsed =
        syn::parse_file(&text).map_err(|error| Failed(format!("{}: {error}", file.display())))?;
    // A test module may say so for itself: `#![cfg(test)]`.
    Ok(if is_built(&parsed.attrs) { parsed.items } else { Vec::new() })
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("path")).find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else { return None };
        let syn::Expr::Lit(literal) = &pair.value else { return None };
        let syn::Lit::Str(text) = &literal.lit else { return None };
        Some(text.value())
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::ExternCrate(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::ForeignMod(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::TraitAlias(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Union(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// Whether a plain build may have what bears these attributes.
pub fn is_built(attributes: &[Attribute]) -> bool {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).all(|attribute| {
        attribute.parse_args::<Meta>().ok().and_then(|condition| holds(&condition)) != Some(false)
    })
}

/// Whether a condition holds in a plain build, if that is known.
fn holds(condition: &Meta) -> Option<bool> {
    const NOT_PLAIN: &[&str] = &["test", "loom", "shuttle", "miri"];
    match condition {
        Meta::Path(flag) if NOT_PLAIN.iter().any(|name| flag.is_ident(name)) => Some(false),
        Meta::List(list) => {
            let inner = list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .ok()?
                .iter()
                .map(holds)
                .collect::<Vec<_>>();
            let among = |wanted| inner.contains(&Some(wanted));
            let all_are = |wanted| inner.iter().all(|&one| one == Some(wanted));
            if list.path.is_ident("not") {
                inner.first().copied().flatten().map(|one| !one)
            } else if list.path.is_ident("all") {
                if among(false) { Some(false) } else { all_are(true).then_some(true) }
            } else if among(true) {
                Some(true)
            } else {
                all_are(false).then_some(false)
            }
        }
        _ => None,
    }
}

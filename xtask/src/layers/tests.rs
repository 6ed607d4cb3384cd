//! The check of modules on small sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::circles::{circles, compare};
use super::exceptions::Exception;
use super::methods::Methods;
use super::modules::Tree;
use super::uses;

/// The uses of a crate's circles. The sources are pairs of path and text.
fn found(sources: &[(&str, &str)]) -> Vec<String> {
    let sources: BTreeMap<&Path, &str> =
        sources.iter().map(|&(path, text)| (Path::new(path), text)).collect();
    let read = |file: &Path| sources.get(file).map(|text| (*text).to_owned());
    let tree = Tree::load(Path::new("lib.rs"), &read).unwrap();
    let graph = uses::graph(&tree, &Methods::of(&tree, &BTreeSet::new()));
    circles(&tree, &graph).into_iter().flat_map(|circle| circle.uses).collect()
}

const NONE: [&str; 0] = [];

#[test]
fn a_tree_has_no_circle() {
    let lib = "mod a; mod b; mod c; pub use a::A;";
    let a = "use crate::b::B; pub struct A(B, super::c::C);";
    let b = "use crate::c::*; pub struct B(C);";
    let sources =
        [("lib.rs", lib), ("a.rs", a), ("b.rs", b), ("c.rs", "pub struct C; use std::fmt;")];
    assert_eq!(found(&sources), NONE);
}

#[test]
fn a_circle_is_found_with_one_line_for_each_use() {
    let a = "\nuse crate::b::B;\npub struct A(B);\nfn f(_: B) {}";
    let b = "pub struct B;\nfn f() {\n    crate::c::f();\n}";
    let c = "pub fn f() { println!(\"{}\", 1 + super::a::A::two()); }";
    let sources = [("lib.rs", "mod a; mod b; mod c;"), ("a.rs", a), ("b.rs", b), ("c.rs", c)];
    let uses = ["a -> b at a.rs:2", "b -> c at b.rs:3", "c -> a at c.rs:1"];
    assert_eq!(found(&sources), uses);
}

#[test]
fn folders_count_as_one_module_for_their_neighbours() {
    let sources = [
        ("lib.rs", "mod low; mod high;"),
        ("low/mod.rs", "pub mod one; pub mod two;"),
        ("low/one.rs", "pub struct One;"),
        ("low/two.rs", "pub struct Two(crate::high::High);"),
        ("high.rs", "pub struct High(crate::low::one::One);"),
    ];
    let uses = ["low -> high at low/two.rs:1", "high -> low at high.rs:1"];
    assert_eq!(found(&sources), uses);
}

#[test]
fn a_folder_is_checked_within() {
    let sources = [
        ("lib.rs", "mod folder;"),
        ("folder/mod.rs", "mod one; mod two; pub use one::One; pub use two::Two;"),
        ("folder/one.rs", "pub struct One(super::Two);"),
        ("folder/two.rs", "pub struct Two(Option<Box<super::One>>);"),
    ];
    let uses = [
        "folder::one -> folder::two at folder/one.rs:1",
        "folder::two -> folder::one at folder/two.rs:1",
    ];
    assert_eq!(found(&sources), uses);
}

#[test]
fn a_re_export_stands_for_the_module_that_it_names() {
    let sources = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "mod inner; pub use inner::Item; pub use crate::b::B as Other;"),
        ("a/inner.rs", "pub struct Item;"),
        ("b.rs", "pub struct B(crate::c::C);"),
        ("c.rs", "pub struct C; fn f(_: crate::a::Other) {}"),
    ];
    assert_eq!(found(&sources), ["b -> c at b.rs:1", "c -> b at c.rs:1"]);
}

#[test]
fn a_parent_and_its_child_are_no_circle() {
    let sources = [
        ("lib.rs", "mod a; pub use a::A; pub struct Root;"),
        ("a.rs", "mod b; pub use b::B; pub struct A(crate::Root);"),
        ("a/b.rs", "pub struct B(super::A);"),
    ];
    assert_eq!(found(&sources), NONE);
}

#[test]
fn methods_that_stand_elsewhere_are_uses() {
    let a = "pub struct A; impl A { fn one(&self) { self.two() } }";
    let b = "use crate::a::A; impl A { pub fn two(&self) {} pub fn three(&self) {} \
             pub fn four() {} }";
    let uses = ["a -> b at a.rs:1", "b -> a at b.rs:1"];
    let with =
        |c, d| found(&[("lib.rs", "mod a; mod b; mod c;"), ("a.rs", c), ("b.rs", d), ("c.rs", "")]);
    assert_eq!(with(a, b), uses);
    // A name that only one type has, a call within a macro, and a function without a receiver.
    assert_eq!(with("pub struct A; fn one(a: &A) { a.three(); }", b), uses);
    assert_eq!(with("pub struct A; fn one(a: &A) { assert!(a.three() == ()); }", b), uses);
    assert_eq!(with("pub struct A; fn one() { A::four() }", b), uses);
    assert_eq!(with("pub struct A; impl A { fn one() { Self::four() } }", b), uses);
    // Names that other types may have, too.
    let twice = "use crate::a::A; impl A { pub fn two(&self) {} } struct B; \
                 impl B { fn two(&self) {} }";
    assert_eq!(with("pub struct A; fn one(a: &A) { a.two() }", twice), NONE);
    let standard = "use crate::a::A; impl A { pub fn push(&self) {} }";
    assert_eq!(with("pub struct A; fn one(a: &mut Vec<A>) { a.push(A) }", standard), NONE);
    let of_trait = "use crate::a::A; impl A { pub fn two(&self) {} } trait T { fn two(&self); }";
    assert_eq!(with("pub struct A; fn one(a: &A) { a.two() }", of_trait), NONE);
}

#[test]
fn code_for_tests_and_models_does_not_count() {
    let a = "use crate::b::B; pub struct A(B);";
    let b = "pub struct B; #[cfg(test)] mod tests { use crate::a::A; } \
             #[cfg(all(test, not(loom)))] use crate::a::A; \
             impl B { #[cfg(any(test, shuttle))] fn f(_: crate::a::A) {} \
             fn g() { #[cfg(test)] crate::a::f(); } } #[cfg(test)] mod missing;";
    let sources = [("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)];
    assert_eq!(found(&sources), NONE);
    let b = "pub struct B; #[cfg(not(test))] use crate::a::A;";
    let sources = [("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)];
    assert_eq!(found(&sources).len(), 2);
}

#[test]
fn an_exception_is_a_circle_of_exactly_these_modules() {
    let sources: BTreeMap<&str, &str> = BTreeMap::from([
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "use crate::b::B; pub struct A;"),
        ("b.rs", "use crate::a::A; pub struct B;"),
    ]);
    let read = |file: &Path| sources.get(file.to_str()?).map(|text| (*text).to_owned());
    let tree = Tree::load(Path::new("lib.rs"), &read).unwrap();
    let graph = uses::graph(&tree, &Methods::of(&tree, &BTreeSet::new()));
    let circles = circles(&tree, &graph);
    let exception = |modules| Exception { krate: "krate", modules, reason: "a reason" };
    let faults = |exceptions: &[Exception]| {
        compare("krate", &circles, &exceptions.iter().collect::<Vec<_>>())
    };
    assert_eq!(faults(&[exception(&["a", "b"])]), NONE);
    let circle = "krate: a circle of modules: a, b\n  a -> b at a.rs:1\n  b -> a at b.rs:1";
    assert_eq!(faults(&[]), [circle]);
    assert_eq!(faults(&[exception(&["a", "b", "c"])]).len(), 2);
    assert_eq!(faults(&[exception(&["a", "b"]), exception(&["c", "d"])]).len(), 1);
}

//! No module of the engine imports one that imports it, directly or through others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// Crates whose modules form no cycles.
const ENGINE: [&str; 3] = ["log", "cache", "volume"];

/// The names on the way from a crate's root to an item or module.
type Names = Vec<String>;

/// The modules of a crate, and the names of others that each uses.
#[derive(Default)]
struct Crate {
    modules: BTreeSet<Names>,
    /// (module, used name).
    named: Vec<(Names, Names)>,
    /// Names that a module re-exports: `pub use`.
    shown: BTreeMap<Names, Names>,
}

/// The names that one module uses.
struct Module<'a> {
    at: Names,
    of: &'a mut Crate,
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            list.path.is_ident("cfg")
                && list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
        }
        _ => false,
    };
    attributes.iter().any(is_test)
}

impl Module<'_> {
    /// The absolute form of a path used in this module; `None`: it leads out of the crate.
    fn absolute(&self, path: &[String]) -> Option<Names> {
        let mut at = self.at.clone();
        let mut path = path;
        match path.first()?.as_str() {
            "crate" => (at, path) = (Names::new(), &path[1..]),
            "self" => path = &path[1..],
            "super" => {
                while path.first().is_some_and(|name| name == "super") {
                    at.pop();
                    path = &path[1..];
                }
            }
            child => {
                let is_child = self.of.modules.contains(&[&at[..], &[child.to_owned()]].concat());
                if !is_child {
                    return None;
                }
            }
        }
        Some([&at[..], path].concat())
    }

    fn name(&mut self, path: &[String]) {
        if let Some(named) = self.absolute(path) {
            self.of.named.push((self.at.clone(), named));
        }
    }

    fn import(&mut self, tree: &syn::UseTree, before: &[String], is_shown: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.import(&path.tree, &with(&path.ident), is_shown),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, before, is_shown));
            }
            syn::UseTree::Name(syn::UseName { ident }) => self.import_name(with(ident), ident, is_shown),
            syn::UseTree::Rename(named) => self.import_name(with(&named.ident), &named.rename, is_shown),
            syn::UseTree::Glob(_) => self.name(before),
        }
    }

    /// A module's re-export of modules below it is no import: users are resolved to where it leads.
    fn import_name(&mut self, path: Names, name: &syn::Ident, is_shown: bool) {
        match self.absolute(&path) {
            Some(named) if is_shown => {
                _ = self.of.shown.insert([&self.at[..], &[name.to_string()]].concat(), named);
            }
            _ => self.name(&path),
        }
    }
}

impl<'ast> Visit<'ast> for Module<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&item.tree, &[], !matches!(item.vis, syn::Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 && ["crate", "self", "super"].contains(&names[0].as_str()) {
            self.name(&names);
        }
        visit::visit_path(self, path);
    }
}

impl Crate {
    fn read(folder: &Path) -> Self {
        let mut files = Vec::new();
        find(folder, &Names::new(), &mut files);
        let mut this = Self::default();
        this.modules.extend(files.iter().map(|(at, _)| at.clone()));
        for (at, text) in files {
            let file = syn::parse_file(&text).expect("it compiles");
            Module { at, of: &mut this }.visit_file(&file);
        }
        this
    }

    /// The module that contains the item of a path.
    fn module_of(&self, path: &[String]) -> Names {
        let len = (0..=path.len()).rev().find(|len| self.modules.contains(&path[..*len])).expect("the root");
        let leads_to = path.get(..=len).and_then(|name| self.shown.get(name));
        match leads_to {
            Some(shown) => self.module_of(&[shown, &path[len + 1..]].concat()),
            None => path[..len].to_vec(),
        }
    }

    /// By module, those that it imports from. The root only re-exports.
    fn imports(&self) -> BTreeMap<Names, BTreeSet<Names>> {
        let mut imports: BTreeMap<Names, BTreeSet<Names>> = BTreeMap::new();
        for (from, named) in &self.named {
            let to = self.module_of(named);
            if to != *from && !to.is_empty() {
                imports.entry(from.clone()).or_default().insert(to);
            }
        }
        imports
    }
}

/// The sources of a crate, with their modules; those of tests left out.
fn find(folder: &Path, at: &Names, files: &mut Vec<(Names, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let below = [&at[..], std::slice::from_ref(&name)].concat();
        if path.is_dir() {
            find(&path, &below, files);
        } else if name != "tests" {
            let module = if ["mod", "lib"].contains(&name.as_str()) { at.clone() } else { below };
            files.push((module, std::fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The modules that import themselves indirectly.
fn in_cycles(imports: &BTreeMap<Names, BTreeSet<Names>>) -> Vec<String> {
    let leads_back = |module: &&Names| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![*module]);
        while let Some(at) = next.pop() {
            for to in imports.get(at).into_iter().flatten() {
                if reached.insert(to) {
                    next.push(to);
                }
            }
        }
        reached.contains(*module)
    };
    imports.keys().filter(leads_back).map(|module| module.join("::")).collect()
}

#[test]
fn modules_of_the_engine_form_no_cycles() {
    for name in ENGINE {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let imports = Crate::read(&folder).imports();
        assert!(imports.len() > 10, "the imports of {name} are found: {imports:?}");
        assert_eq!(in_cycles(&imports), Vec::<String>::new(), "modules of {name} that import each other");
    }
}

#[test]
fn a_cycle_through_what_a_module_shows_is_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod a; mod b; mod c; pub use a::A;");
    write("a/mod.rs", "mod deep; pub use deep::A;");
    write("a/deep.rs", "use crate::b::B; pub struct A(B);");
    write("b.rs", "pub struct B; fn f() -> Option<crate::c::C> { None }");
    write("c.rs", "use crate::a::{A}; pub struct C(A); #[cfg(test)] mod tests { use crate::d::D; }");
    let imports = Crate::read(folder.path()).imports();
    assert_eq!(in_cycles(&imports), ["a::deep", "b", "c"]);
    write("b.rs", "pub struct B;");
    assert_eq!(in_cycles(&Crate::read(folder.path()).imports()), Vec::<String>::new());
}

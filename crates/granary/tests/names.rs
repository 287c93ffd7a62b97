//! One name, one thing: no two types of a crate share a name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// What stands for types of the same name where a feature is off: (crate, file).
const ALTERNATIVES: [(&str, &str); 1] = [("dict", "without_full_load.rs")];

/// The types of one crate: by name, the files that define them.
#[derive(Default)]
struct Types {
    file: PathBuf,
    defined: BTreeMap<String, Vec<PathBuf>>,
}

/// Whether something is compiled for tests, or under a condition that has a counterpart.
fn is_conditional(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg"))
}

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = match item {
            syn::Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Type(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Union(item) => (&item.attrs, Some(&item.ident)),
            syn::Item::Mod(item) => (&item.attrs, None),
            syn::Item::Fn(item) => (&item.attrs, None),
            syn::Item::Impl(item) => (&item.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if is_conditional(attributes) {
            return;
        }
        if let Some(name) = name {
            self.defined.entry(name.to_string()).or_default().push(self.file.clone());
        }
        visit::visit_item(self, item);
    }
}

impl Types {
    fn read(&mut self, folder: &Path, is_left_out: &dyn Fn(&str) -> bool) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                self.read(&path, is_left_out);
            } else if name.ends_with(".rs")
                && name != "tests.rs"
                && !name.ends_with("_tests.rs")
                && !is_left_out(name)
            {
                self.file.clone_from(&path);
                let text = std::fs::read_to_string(&path).unwrap();
                self.visit_file(&syn::parse_file(&text).expect("it compiles"));
            }
        }
    }

    /// The names of more than one type, with the files.
    fn shared(&self) -> BTreeMap<&str, BTreeSet<&Path>> {
        let shared = self.defined.iter().filter(|(_, files)| files.len() > 1);
        shared.map(|(name, files)| (name.as_str(), files.iter().map(PathBuf::as_path).collect())).collect()
    }
}

#[test]
fn no_two_types_of_a_crate_share_a_name() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path().join("src");
        let name = folder.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let mut types = Types::default();
        types.read(&folder, &|file| ALTERNATIVES.contains(&(&name, file)));
        assert!(!types.defined.is_empty(), "the types of {name} are found");
        assert_eq!(types.shared(), BTreeMap::new(), "types of {name} that share a name");
    }
}

#[test]
fn a_name_of_two_types_is_found() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "struct A; fn f() { enum B {} } #[cfg(test)] mod tests { struct A; }");
    write("a/mod.rs", "mod c { trait B {} } impl Iterator for D { type Item = A; }");
    write("a/tests.rs", "struct A;");
    let mut types = Types::default();
    types.read(folder.path(), &|_| false);
    assert_eq!(types.shared().into_keys().collect::<Vec<_>>(), ["B"]);
}

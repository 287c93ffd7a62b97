//! Keys and values of your own types, by serde: `cargo run --example typed --features serde`.

use granary_cache::{Cache, Postcard, TypedCache};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::time::Duration;

/// The version of the types below: with another one, the cache starts empty.
const TYPES: u64 = 1;

#[derive(Serialize)]
struct Asked<'a> {
    tenant: u32,
    name: &'a str,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct User {
    city: String,
    roles: Vec<String>,
}

/// Keeps a user, looks some up, and makes one that is not there.
pub fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let cache = Cache::builder()
        .memory(1 << 20)
        .flash(folder.path().join("users"), 16 << 20)
        .fingerprint(TYPES)
        .open()?;
    let users: TypedCache<Asked<'_>, User, Postcard> =
        TypedCache::new(cache).time_to_live(Duration::from_secs(300));

    let ann = Asked { tenant: 1, name: "Ann" };
    users.insert(&ann, &User { city: "Oslo".into(), roles: vec!["reader".into()] })?;
    println!("{:?}", users.get(&ann));

    let bob = Asked { tenant: 1, name: "Bob" };
    let user = users.get_or_insert_with(&bob, || {
        println!("asking the database");
        Ok::<_, std::io::Error>(User { city: "Rome".into(), roles: vec![] })
    })?;
    assert_eq!(user.city, "Rome");
    let found = users.get_many(&[&ann, &bob, &Asked { tenant: 2, name: "Bob" }]);
    assert!(found[0].is_some() && found[1].is_some() && found[2].is_none());

    users.remove(&ann);
    assert!(!users.contains(&ann));
    users.close()?;
    Ok(())
}

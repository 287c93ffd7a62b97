//! Tasks of a runtime, here tokio's, that want the same values: `cargo run --example asynchronous --features async`.

use granary_cache::{AsyncCache, Cache, TypedCache};
use std::error::Error;
use std::time::Duration;

/// A page, from far away.
async fn fetch(path: &str) -> Result<String, std::io::Error> {
    println!("fetching {path}");
    tokio::time::sleep(Duration::from_millis(50)).await;
    Ok(format!("<title>{path}</title>"))
}

/// Eight tasks want three pages: each is fetched once.
#[tokio::main]
pub async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let cache = Cache::builder().memory(1 << 20).flash(folder.path().join("pages"), 16 << 20).open()?;
    let pages: AsyncCache<str, String> = AsyncCache::new(TypedCache::new(cache))?;
    let tasks: Vec<_> = (0..8)
        .map(|i| {
            let pages = pages.clone();
            tokio::spawn(async move {
                let path = format!("/{}", i % 3);
                pages.get_or_insert_with(&path, || fetch(&path)).await
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await??.starts_with("<title>/"));
    }
    assert_eq!(pages.get("/2").await.as_deref(), Some("<title>/2</title>"));
    assert_eq!(pages.get_many(&["/0", "/9"]).await, [Some("<title>/0</title>".into()), None]);
    pages.close().await?;
    Ok(())
}

//! DDL and SELECTs by the `clickhouse` crate, compressed as it does by default. The argument is the server's URL.

use clickhouse::{Client, Row};
use serde::Deserialize;

#[derive(Debug, PartialEq, Row, Deserialize)]
struct User {
    id: u64,
    name: String,
    city: Option<String>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("the server's URL is missing")?;
    let client = Client::default().with_url(url).with_user("default");
    let create = "CREATE OR REPLACE DICTIONARY of_rust (id UInt64, name String, city Nullable(String)) PRIMARY KEY id \
        SOURCE(SQLITE(PATH 'users.db' TABLE 'users')) LIFETIME(1000) LAYOUT(CACHE(SIZE_IN_CELLS 1000))";
    client.query(create).execute().await?;
    let sql = "SELECT number AS id, dictGet('of_rust', 'name', number) AS name, dictGet('of_rust', 'city', number) AS city \
        FROM numbers(?) WHERE number > 0 ORDER BY id";
    let users = client.query(sql).bind(3).fetch_all::<User>().await?;
    let user = |id, name: &str, city: Option<&str>| User { id, name: name.into(), city: city.map(Into::into) };
    assert_eq!(users, [user(1, "n1", Some("Riga")), user(2, "n2", None)]);
    let many = client.query("SELECT number FROM numbers(300000)").fetch_all::<u64>().await?;
    assert_eq!((many.len(), many.iter().sum::<u64>()), (300_000, 44_999_850_000));
    let wrong = client.query("SELECT nosuch").fetch_one::<u8>().await.unwrap_err().to_string();
    assert!(wrong.contains("UNKNOWN_IDENTIFIER"), "{wrong}");
    client.query("DROP DICTIONARY of_rust").execute().await?;
    println!("Ok.");
    Ok(())
}

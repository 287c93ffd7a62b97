//! Items that are looked at by `mg` with `u`, or by `me`, leave as if they had not been.

mod common;

use common::{Client, with_policy};
use granary_memcached::Server;

/// Stores items of these keys, of 10 000 bytes.
fn fill(client: &mut Client, keys: std::ops::Range<usize>) {
    let set = |key| format!("set filler{key} 0 0 10000 noreply\r\n{:10000}\r\n", "");
    client.say(keys.map(set).collect::<String>().as_bytes());
}

fn figure(client: &mut Client, name: &str) -> u64 {
    let stats = client.lines("stats");
    let value =
        stats.lines().find_map(|line| line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name}: {stats}")).parse().unwrap()
}

#[test]
fn a_look_keeps_nothing_in_ram() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = with_policy(folder.path(), "reuse");
    options.store.flash_bytes = 0;
    let server = Server::start(&options).unwrap();
    let mut client = Client::new(server.address());
    client.lines("set looked 0 0 1\nx\nset shown 0 0 1\nx\nset read 0 0 1\nx");
    assert_eq!(client.lines("mg looked u v h\nmg looked u h"), "VA 1 h0\nx\nHD h0\n");
    for first in (0..3000).step_by(20) {
        fill(&mut client, first..first + 20);
        client.lines("mg looked u v\nme shown\nget read");
    }
    assert_eq!(client.lines("get read"), "VALUE read 0 1\nx\nEND\n");
    assert_eq!(client.lines("mg looked u v\nme shown\nmg looked v"), "EN\nEN\nEN\n");
}

#[test]
fn a_look_copies_nothing_from_flash() {
    for len in [100, 30_000] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&with_policy(folder.path(), "all")).unwrap();
        let mut client = Client::new(server.address());
        let value = "v".repeat(len);
        client.lines(&format!("set a 0 0 {len}\n{value}"));
        fill(&mut client, 0..5000);
        let (copied, found) =
            (figure(&mut client, "recache_from_extstore"), figure(&mut client, "get_extstore"));
        for _ in 0..10 {
            assert_eq!(client.lines("mg a u v\nmg none u v"), format!("VA {len}\n{value}\nEN\n"));
            assert!(client.lines("me a").starts_with("ME a exp=-1 "));
        }
        assert_eq!(figure(&mut client, "recache_from_extstore"), copied, "{len}");
        assert_eq!(figure(&mut client, "get_extstore"), found + 20, "{len}");
        (0..10).for_each(|_| assert_eq!(client.lines("mg a v"), format!("VA {len}\n{value}\n")));
        assert!(figure(&mut client, "recache_from_extstore") > copied, "{len}");
    }
}

//! A volume is neither created nor resized if there is no memory for its map. It is the only test of its process, whose
//! memory it limits.

use granary_volume::{Config, Error, Volume};
use rustix::process::{Resource, Rlimit, setrlimit};

const SMALL: u64 = 16 << 20;
/// Its map takes 2 GiB.
const LARGE: u64 = 2 << 40;

#[test]
fn a_volume_whose_map_finds_no_memory_is_not_made() {
    let limit = Some(1 << 30);
    setrlimit(Resource::As, Rlimit { current: limit, maximum: limit }).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let error = Volume::create(folder.path(), "v", &Config::new(LARGE)).unwrap_err();
    assert!(matches!(error, Error::Map(_)), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    Volume::create(folder.path(), "v", &Config::new(SMALL)).unwrap();
    let error = Volume::resize(folder.path(), "v", LARGE).unwrap_err();
    assert!(matches!(error, Error::Map(_)), "{error}");
    let volume = Volume::open(folder.path(), "v", &mut |_, _| {}).unwrap();
    assert_eq!(volume.config().size, SMALL);
    volume.close().unwrap();
}

//! The value of a cache in front of an on-disk store: Granary, LevelDB and RocksDB on the same keys, with caches of
//! many sizes, under a bound on memory that includes the page cache.

mod blocks;
mod contender;
mod device;
mod division;
mod error;
mod granary;
mod large;
mod load;
mod measurement;
mod model;
mod page;
mod random;
mod run;
mod skewed;
mod study;
mod warm_up;
mod workload;

pub use contender::Programs;
pub use error::StoreError;
pub use granary::serve;
pub use study::{Part, Size, StoreFindings, StoreStudy};
pub use workload::{Keys, key_of, load_order, value_of};

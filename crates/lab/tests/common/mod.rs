//! Small traces of every format.
#![allow(dead_code, reason = "each test uses a part of it")]

use granary_lab::trace::generate::Scale;
use granary_lab::trace::{Format, Source};
use std::io::Write;
use std::path::{Path, PathBuf};

pub const CLOUD_PHYSICS: &str = "\
version,time,op,size,lbn
1,5633898,2a,512,42932745
1,5633898,2a,6656,40409911
1,5641097,28,512,42932745
";

pub const WEB: &str = "1 0 68\n2 1 7454\n3 0 68\n";

pub const TWITTER: &str = "\
0,q:q:1:8WTfjZU14ee,17,213,4,get,0
0,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,5,add,0
3,key,with,commas,15,40,5,set,3600
4,q:q:1:8WTfjZU14ee,17,0,4,delete,0
";

pub const KEY_VALUE: &str = "\
op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase,sub_usecase
604038471,82131353f9ddc8c6,48,GET,1,87,1,0,366387042,3003229276
604038471,a54f88ab02ece24d,24,GET_LEASE,3,0,0,0,699950563,699950563
604038473,828769c1e1ce3a29,67,SET,1,65,0,7200,2777918327,655456894
604038473,828769c1e1ce3a29,67,DELETE,1,0,0,0,2777918327,655456894
";

pub const CONFIG: &str = r#"{"test_config": {"getRatio": 0.8, "loneGetRatio": 0.1, "setRatio": 0.05, "delRatio": 0.05,
    "keySizeRange": [1, 8, 64], "keySizeRangeProbability": [0.3, 0.7],
    "popDistFile": "pop.json", "valSizeDistFile": "sizes.json"}}"#;
pub const POPULARITY: &str = r#"{"popularityBuckets": [10, 90], "popularityWeights": [900, 100]}"#;
pub const SIZES: &str = r#"{"valSizeRange": [31, 63, 95], "valSizeRangeProbability": [1, 2, 1]}"#;

pub const CLUSTERS: &str = "\
|  cluster  | miss | category | key | value | rate | freq | one-hit | compulsory | TTL | WSS | WSS | operation | Zipf |
|:---------:|:----:|:--------:|:---:|:-----:|:----:|:----:|:-------:|:----------:|:---:|:---:|:---:|:---------:|:----:|
| cluster14 | 0.12 | 1 | 96 | 414 | 5.81 | 20 | 10.94 | 2.82 | 1d:1.00, | 18333 | 8732 | get:0.65 delete:0.22 set:0.13 | 1.1 |
";

pub fn cache2k() -> Vec<u8> {
    [7u32, 8, 7, 0xf000_0001].iter().flat_map(|key| key.to_be_bytes()).collect()
}

pub fn oracle_general() -> Vec<u8> {
    let record = |time: u32, key: u64, size: u32, next: i64| {
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.extend(key.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes
    };
    [record(5, 1, 100, 3), record(6, 2, 200, -1), record(9, 1, 100, i64::MAX)].concat()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

pub fn xz(bytes: &[u8]) -> Vec<u8> {
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut packed = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

pub const SCALE: Scale = Scale { requests: 1000, keys: None, seed: 1 };

pub fn source(path: PathBuf, format: Option<Format>) -> Source {
    Source { path, format, scale: SCALE, cluster: Some(14) }
}

/// A file of a sample, and its source.
pub fn write(folder: &Path, name: &str, bytes: &[u8]) -> Source {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    source(path, None)
}

/// CacheLib's three files.
pub fn write_cachelib(folder: &Path) -> Source {
    let folder = folder.join("cdn");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, text) in [("config.json", CONFIG), ("pop.json", POPULARITY), ("sizes.json", SIZES)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    source(folder, None)
}

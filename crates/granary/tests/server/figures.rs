//! The figures of dictionaries at `/metrics`: their names are those of the documentation, their values those of
//! `system.dictionaries`.

use crate::dictionary::users;
use crate::served::Served;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Each figure, and its column.
const FIGURES: [(&str, &str); 38] = [
    ("keys_requested_total", "keys_requested"),
    ("keys_hit_total", "keys_hit"),
    ("keys_expired_total", "keys_expired"),
    ("keys_missed_total", "keys_missed"),
    ("keys_absent_total", "keys_negative"),
    ("keys_joined_total", "keys_joined"),
    ("hits_memory_total", "hits_memory"),
    ("hits_block_total", "hits_block"),
    ("hits_buffer_total", "hits_buffer"),
    ("hits_flash_total", "hits_flash"),
    ("flash_block_reads_total", "flash_block_reads"),
    ("flash_read_bytes_total", "flash_bytes_read"),
    ("flash_written_bytes_total", "flash_bytes_written"),
    ("put_bytes_total", "bytes_put"),
    ("write_amplification", "write_amplification"),
    ("compression_ratio", "compression_ratio"),
    ("compression_versions", "compression_versions"),
    ("compression_trainings_total", "compression_trainings"),
    ("flash_blocks_corrupt_total", "flash_blocks_corrupt"),
    ("entries_dropped_total", "entries_dropped"),
    ("entries_too_large_total", "entries_too_large"),
    ("index_evictions_total", "index_evictions"),
    ("index_displaced_total", "index_displaced"),
    ("index_displaced_at_start_total", "index_displaced_at_start"),
    ("source_requests_total", "source_requests"),
    ("source_keys_total", "source_keys"),
    ("source_rows_total", "source_rows"),
    ("source_rows_uninvited_total", "source_rows_uninvited"),
    ("source_errors_total", "source_errors"),
    ("source_failures_in_a_row", "error_count"),
    ("elements", "element_count"),
    ("ram_bytes", "bytes_allocated"),
    ("ram_index_bytes", "index_bytes"),
    ("ram_memory_bytes", "memory_bytes"),
    ("ram_block_bytes", "block_bytes"),
    ("ram_buffer_bytes", "buffer_bytes"),
    ("ram_compression_bytes", "compression_memory"),
    ("last_successful_update_seconds", "toUnixTimestamp(last_successful_update_time)"),
];

/// The figures of the only dictionary.
fn figures(served: &Served) -> BTreeMap<String, f64> {
    let of = |line: &str| {
        let (name, rest) = line.strip_prefix("granary_dictionary_")?.split_once('{')?;
        Some((name.to_owned(), rest.split_once("} ")?.1.parse().ok()?))
    };
    served.get("/metrics").text().lines().filter_map(of).collect()
}

#[test]
fn figures_are_those_of_the_table_and_of_the_documentation() {
    let folder = tempfile::tempdir().unwrap();
    users(folder.path());
    let served = Served::start(folder.path(), &[]);
    served.sql(
        "CREATE DICTIONARY d (id UInt64, name String) PRIMARY KEY id SOURCE(SQLITE(PATH 'users.db' TABLE 'users'))
         LIFETIME(1) LAYOUT(SSD_CACHE(PATH 'd' FILE_SIZE 1048576 WRITE_BUFFER_SIZE 4096 MEMORY_CACHE_SIZE 8192))",
    );
    let look_up = |keys: u64| {
        let counted =
            format!("SELECT count() FROM numbers({keys}) WHERE dictGet('d', 'name', number) != 'x'");
        assert_eq!(served.sql(&counted), format!("{keys}\n"));
    };
    look_up(1000);
    look_up(700);
    std::thread::sleep(Duration::from_millis(2100));
    look_up(300);
    let columns: Vec<&str> = FIGURES.iter().map(|(_, column)| *column).collect();
    let columns = format!("SELECT {} FROM system.dictionaries", columns.join(", "));
    let deadline = Instant::now() + Duration::from_secs(60);
    let (shown, row) = loop {
        let (before, row, after) = (figures(&served), served.sql(&columns), figures(&served));
        if before == after {
            break (after, row);
        }
        assert!(Instant::now() < deadline, "nothing is asked, and the figures move");
    };
    for ((name, column), value) in FIGURES.into_iter().zip(row.trim_end().split('\t')) {
        let value: f64 = value.parse().unwrap();
        let shown = shown.get(name).unwrap_or_else(|| panic!("no {name} in {shown:?}"));
        assert!((shown - value).abs() <= 1e-6 * value, "{name}: {shown}, {column}: {value}");
    }
    for name in ["keys_expired", "keys_missed"] {
        assert!(shown[&format!("{name}_total")] > 0.0, "{name}: {shown:?}");
    }

    let page = include_str!("../../../../docs/server.md");
    let documented: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("| `granary_dictionary_"))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect();
    for name in shown.keys().map(|name| name.trim_end_matches("_total")) {
        // `granary_dictionary_keys_*` and `hit` are `keys_hit`; `index_displaced*` is all that begins so.
        let is_one = |text: &&str| {
            let text = text.trim_start_matches("granary_dictionary_");
            let rest = text.strip_suffix('*').and_then(|start| name.strip_prefix(start));
            text == name
                || rest.is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('_') || documented.contains(&rest)
                })
        };
        let is_part = ["_bucket", "_count", "_sum"].iter().any(|end| name.ends_with(end));
        assert!(is_part || documented.iter().any(is_one), "{name} is not documented");
    }
    for name in documented.iter().filter_map(|text| text.strip_prefix("granary_dictionary_")) {
        let start = name.trim_end_matches('*');
        assert!(shown.keys().any(|shown| shown.starts_with(start)), "there is no {name}");
    }
}

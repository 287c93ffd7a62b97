use granary_cache::*;
use std::time::Instant;
fn main() {
    let n: u64 = std::env::args().nth(1).map_or(300_000, |s| s.parse().unwrap());
    let vlen: usize = std::env::args().nth(2).map_or(12, |s| s.parse().unwrap());
    let size: u64 = std::env::args().nth(3).map_or(1 << 30, |s| s.parse().unwrap());
    let wb: u64 = std::env::args().nth(4).map_or(1 << 20, |s| s.parse().unwrap());
    let _ = std::fs::create_dir_all("/work/tmpbench");
    let mk = || {
        let mut f = FlashOptions::new("/work/tmpbench/q", size);
        f.write_buffer_size = wb;
        f.max_stored_keys = std::env::var("MAXK").ok().map(|s| s.parse().unwrap());
        Options { flash: Some(f), memory_bytes: 0, memory_entries: None }
    };
    let c = Cache::open(mk()).unwrap();
    c.clear().unwrap();
    let value = vec![7u8; vlen];
    let t = Instant::now();
    for chunk in (0..n).collect::<Vec<_>>().chunks(65536) {
        let kb: Vec<[u8; 8]> = chunk.iter().map(|k| k.to_le_bytes()).collect();
        let es: Vec<Entry> =
            kb.iter().map(|k| Entry { key: Key::new(k), value: Some(&value), expires_at: 0 }).collect();
        c.put_many(&es);
    }
    println!("put {:?}", t.elapsed());
    let t = Instant::now();
    c.flush();
    println!("flush {:?}", t.elapsed());
    let s = c.stats();
    println!(
        "entries {} index {} B/entry {:.3} fill {:.3} dropped {} written {}",
        s.entries,
        s.index_bytes,
        s.index_bytes as f64 / s.entries as f64,
        s.entries as f64 / s.index_slots as f64,
        s.puts_dropped,
        s.bytes_written
    );
    if std::env::var("PUTONLY").is_ok() {
        return;
    }
    let mut io = Io::new();
    for m in [1u64, 30_000, 100_000, 1_000_000] {
        for rep in 0..3 {
            let before = c.stats();
            let t = Instant::now();
            let mut hits = 0u64;
            let mut r = m + rep;
            for chunk in (0..m).collect::<Vec<_>>().chunks(65536) {
                let kb: Vec<[u8; 8]> = chunk
                    .iter()
                    .map(|_| {
                        r = r.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        ((r >> 20) % n).to_le_bytes()
                    })
                    .collect();
                let ks: Vec<Key> = kb.iter().map(|k| Key::new(k)).collect();
                c.get_many(&mut io, &ks, 1, |_, o| {
                    if matches!(o, Outcome::Hit { .. }) {
                        hits += 1
                    }
                });
            }
            let e = t.elapsed();
            let a = c.stats();
            println!(
                "get {m}: {e:?} hits {hits} blocks {} reads {} {:.0} blocks/s engine {:?}",
                a.block_reads - before.block_reads,
                a.reads - before.reads,
                (a.block_reads - before.block_reads) as f64 / e.as_secs_f64(),
                io.engine()
            );
        }
    }
    let before = c.stats();
    let kb: Vec<[u8; 8]> = (n..2 * n).map(|k| k.to_le_bytes()).collect();
    let ks: Vec<Key> = kb.iter().map(|k| Key::new(k)).collect();
    let t = Instant::now();
    c.get_many(&mut io, &ks, 1, |_, _| {});
    let a = c.stats();
    println!(
        "misses {n}: {:?}, block reads per miss {:.4}",
        t.elapsed(),
        (a.block_reads - before.block_reads) as f64 / n as f64
    );
    let t = Instant::now();
    if std::env::var("KILL").is_ok() {
        c.abandon()
    } else {
        drop(c)
    }
    println!("stop {:?}", t.elapsed());
    let t = Instant::now();
    let c = Cache::open(mk()).unwrap();
    println!("open {:?} entries {}", t.elapsed(), c.stats().entries);
}

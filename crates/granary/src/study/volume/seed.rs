//! The findings of the experiment that the measurements of maps repeat, a module of the Linux kernel with a hash table
//! and a skip list, beside what these measurements say.

use std::fmt;

use granary_lab::Samples;

use super::load::Load;

/// The number of contenders: see `NAMES` of the maps.
pub const CONTENDERS: usize = 5;
const DEVICE: usize = 0;
const CHECKED: usize = 1;
const FLAT: usize = 2;
const HASH: usize = 3;
const SKIP_LIST: usize = 4;

/// A load, and the medians of each contender under it.
pub struct Point {
    pub load: Load,
    /// Operations a second.
    pub iops: [f64; CONTENDERS],
    /// 99th percentiles of the time of an operation, in microseconds.
    pub p99_us: [f64; CONTENDERS],
}

/// The measurements of warm maps.
#[derive(Default)]
pub struct Points {
    /// One operation at a time, anywhere, of all sizes.
    pub one_at_a_time: Vec<Point>,
    /// Several threads and operations at once.
    pub parallel: Vec<Point>,
    /// One operation at a time, in order.
    pub sequential: Vec<Point>,
}

/// A ratio over several loads: the median, and the range if there are several.
struct Ratio(Samples);

impl Ratio {
    /// The ratio of `of(point)` over the points for which `is_meant` is true.
    fn over<'a>(
        points: impl IntoIterator<Item = &'a Point>,
        is_meant: impl Fn(&Load) -> bool,
        of: impl Fn(&Point) -> f64,
    ) -> Self {
        let mut ratios = Samples::default();
        points.into_iter().filter(|point| is_meant(&point.load)).for_each(|point| ratios.push(of(point)));
        Self(ratios)
    }

    fn median(&self) -> f64 {
        self.0.median()
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, low, high] = [self.0.median(), self.0.min(), self.0.max()];
        if low == high {
            return write!(f, "{median:.2}");
        }
        write!(f, "{median:.2} ({low:.2}..{high:.2})")
    }
}

/// The ratio of two contenders' operations.
fn iops(one: usize, other: usize) -> impl Fn(&Point) -> f64 {
    move |point| point.iops[one] / point.iops[other]
}

/// The ratio of two contenders' 99th percentiles.
fn p99(one: usize, other: usize) -> impl Fn(&Point) -> f64 {
    move |point| point.p99_us[one] / point.p99_us[other]
}

/// The most operations of several threads for one operation of one thread, at each depth and mix.
fn scaling(parallel: &[Point], contender: usize) -> Ratio {
    let same = |a: &Load, b: &Load| (a.depth, a.reads_percent) == (b.depth, b.reads_percent);
    Ratio::over(
        parallel,
        |load| load.jobs == 1,
        |alone| {
            let several = parallel.iter().filter(|it| it.load.jobs > 1 && same(&it.load, &alone.load));
            several.map(|it| it.iops[contender]).fold(0.0, f64::max) / alone.iops[contender]
        },
    )
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "does not hold" }
}

fn mootness(is_moot: bool) -> &'static str {
    if is_moot { "makes it moot" } else { "does not make it moot" }
}

/// The section of the page.
pub fn section(points: &Points) -> String {
    let Points { one_at_a_time, parallel, sequential } = points;
    let all = |_: &Load| true;
    let of_4k = |load: &Load| load.bytes == 4 << 10;
    let of_128k = |load: &Load| load.bytes == 128 << 10;
    let of_1m = |load: &Load| load.bytes == 1 << 20;
    let small = |load: &Load| load.bytes <= 8 << 10;
    let writes_of_128k = |load: &Load| of_128k(load) && load.reads_percent == 0;
    let reads_of_128k = |load: &Load| of_128k(load) && load.reads_percent == 100;

    let hash_ahead = Ratio::over(parallel, all, iops(HASH, SKIP_LIST));
    let hash_writes = Ratio::over(one_at_a_time, writes_of_128k, iops(HASH, SKIP_LIST));
    let flat_ahead = Ratio::over(parallel, all, iops(FLAT, HASH));
    let flat_writes = Ratio::over(one_at_a_time, writes_of_128k, iops(FLAT, HASH));
    let skip_list_reads = Ratio::over(sequential, reads_of_128k, iops(SKIP_LIST, HASH));
    let flat_reads = Ratio::over(sequential, reads_of_128k, |point| {
        point.iops[FLAT] / point.iops[HASH].max(point.iops[SKIP_LIST])
    });
    let skip_list_p99 = Ratio::over(one_at_a_time, small, p99(SKIP_LIST, HASH));
    let flat_p99 = Ratio::over(one_at_a_time, small, p99(FLAT, HASH));
    let cost = |map| Ratio::over(one_at_a_time, of_4k, iops(DEVICE, map));
    let cost_in_parallel = |map| Ratio::over(parallel, all, iops(DEVICE, map));
    let flat_cost = cost(FLAT);
    let parity = Ratio::over(one_at_a_time, of_1m, iops(FLAT, DEVICE));
    let parity_checked = Ratio::over(one_at_a_time, of_1m, iops(FLAT, CHECKED));
    let flat_scaling = scaling(parallel, FLAT);
    format!(
        "\
The experiment was made before with a module of the Linux kernel, which has a hash table and a skip list, on a null \
device. Its findings beside these figures, in ratios: the median of the loads, and from the least to the most.

- *The hash table is ahead of the skip list, by 17 % over threads and requests at once and by 5 to 7 % in writes of 128 \
KiB*: {hash_holds}; {hash_ahead} times its operations, and {hash_writes} in such writes. The flat map {hash_moot}: \
{flat_ahead} times the hash table's operations, and {flat_writes} in such writes.
- *The skip list is ahead in reads of 128 KiB in order*: {skip_list_holds}; {skip_list_reads} times the hash table's \
rate. The flat map {skip_list_moot}: {flat_reads} times the rate of the faster one.
- *The skip list's p99 is 1.5 to 2 times the hash table's*, of 4 and 8 KiB: {p99_holds}; {skip_list_p99} times. The \
flat map {p99_moot}: {flat_p99} times the hash table's.
- *A mapping costs the device 2.4 to 2.6 times its operations*, of 4 KiB one at a time: of the skip list it \
{skip_list_cost_holds}, {skip_list_cost} times; of the hash table it {hash_cost_holds}, {hash_cost} times. The flat map \
{cost_moot}: {flat_cost} times. Over threads and requests at once it is {skip_list_cost_parallel}, {hash_cost_parallel} \
and {flat_cost_parallel} times, a volume's checksums and copies among it.
- *From 512 KiB on a mapping costs nothing*: {parity_holds}; of 1 MiB the flat map reaches {parity} of a device that \
looks at no byte, and {parity_checked} of the one with checksums.
- *Several threads have 1.8 times the operations of one*: {scaling_holds}; the flat map {flat_scaling} times, and the \
device that does nothing {device_scaling}.

Which of the two is ahead matters where the few blocks in use are scattered over a large volume: the flat map takes a \
page of RAM, 4 KiB, for each 1024 neighbouring blocks of which one was ever written.
",
        hash_holds = verdict(hash_ahead.median() > 1.0 && hash_writes.median() > 1.0),
        hash_moot = mootness(flat_ahead.median() >= 1.0 && flat_writes.median() >= 1.0),
        skip_list_holds = verdict(skip_list_reads.median() > 1.0),
        skip_list_moot = mootness(flat_reads.median() >= 1.0),
        p99_holds = verdict(skip_list_p99.median() >= 1.5),
        p99_moot = mootness(flat_p99.median() <= 1.0),
        skip_list_cost_holds = verdict(cost(SKIP_LIST).median() >= 2.0),
        skip_list_cost = cost(SKIP_LIST),
        hash_cost_holds = verdict(cost(HASH).median() >= 2.0),
        hash_cost = cost(HASH),
        cost_moot = mootness(flat_cost.median() < 2.0),
        skip_list_cost_parallel = cost_in_parallel(SKIP_LIST),
        hash_cost_parallel = cost_in_parallel(HASH),
        flat_cost_parallel = cost_in_parallel(FLAT),
        parity_holds = verdict(parity.median() >= 0.9),
        scaling_holds = verdict(flat_scaling.median() >= 1.5),
        device_scaling = scaling(parallel, DEVICE),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a table of volume-maps.csv: the columns before the contenders', and theirs.
    fn rows(table: &str, before: usize) -> Vec<(Vec<&str>, [f64; CONTENDERS])> {
        table
            .lines()
            .skip(1)
            .map(|line| {
                let cells: Vec<&str> = line.split(',').map(|cell| cell.trim_matches('"')).collect();
                let figures = std::array::from_fn(|i| cells[before + i].parse().unwrap());
                (cells[..before].to_vec(), figures)
            })
            .collect()
    }

    fn size(text: &str) -> usize {
        let (number, unit) = text.split_once(' ').unwrap();
        number.parse::<usize>().unwrap() << if unit == "KiB" { 10 } else { 20 }
    }

    /// What the page says is what the program makes of the page's own tables.
    #[test]
    fn the_page_says_what_its_tables_say() {
        let tables = include_str!("../../../../../docs/studies/volume-maps.csv");
        let tables: Vec<&str> = tables.split("\n\n").collect();
        let [by_size, parallel, sequential, latency, _cold] = tables[..] else { panic!("five tables") };
        let number = |text: &str| text.parse::<usize>().unwrap();
        let load = |bytes, reads, jobs, depth, is_sequential| Load {
            bytes,
            reads_percent: number(reads) as u32,
            jobs,
            depth,
            is_sequential,
        };
        let nothing = [f64::NAN; CONTENDERS];
        let latency = rows(latency, 3);
        let p99_us = |of: &[&str]| {
            let found = latency.iter().find(|(first, _)| first[..2] == *of && first[2] == "p99");
            found.map_or(nothing, |(_, figures)| *figures)
        };
        let points = Points {
            one_at_a_time: rows(by_size, 2)
                .into_iter()
                .map(|(first, iops)| Point {
                    load: load(size(first[0]), first[1], 1, 1, false),
                    iops,
                    p99_us: p99_us(&first),
                })
                .collect(),
            parallel: rows(parallel, 3)
                .into_iter()
                .map(|(first, iops)| Point {
                    load: load(4 << 10, first[2], number(first[0]), number(first[1]), false),
                    iops,
                    p99_us: nothing,
                })
                .collect(),
            sequential: rows(sequential, 2)
                .into_iter()
                .map(|(first, iops)| Point {
                    load: load(size(first[0]), first[1], 1, 1, true),
                    iops,
                    p99_us: nothing,
                })
                .collect(),
        };
        let section = section(&points);
        let page = include_str!("../../../../../docs/studies/volume.md");
        let (first, last) = (section.lines().next().unwrap(), section.lines().last().unwrap());
        let begin = page.find(first).unwrap_or_else(|| panic!("the page lacks this:\n{section}"));
        let end = begin + page[begin..].find(last).expect("the section ends so") + last.len();
        let words = |text: &str| {
            text.replace("..", " ")
                .split([' ', '(', ')', ',', ';', '\n'])
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let [found, wanted] = [&page[begin..end], section.trim_end()].map(words);
        assert_eq!(found.len(), wanted.len(), "the page lacks this:\n{section}");
        // The tables are rounded.
        let number = |word: &str| word.parse::<f64>().unwrap_or(f64::NAN);
        for (found, wanted) in found.iter().zip(&wanted) {
            let is_near = (number(found) / number(wanted) - 1.0).abs() < 0.03;
            assert!(found == wanted || is_near, "{found} in place of {wanted} in\n{section}");
        }
    }
}

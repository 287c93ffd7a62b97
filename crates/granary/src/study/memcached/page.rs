//! The page of the study.

use granary_lab::{Asking, Samples};

use super::MemcachedStudySize;
use super::flash::{self, Flash};
use super::memory::{self, Memory};
use super::servers;

/// Everything that was measured.
pub struct MemcachedPage<'a> {
    pub size: &'a MemcachedStudySize,
    /// Machine and versions.
    pub notes: &'a [String],
    pub memory: &'a Memory,
    pub flash: &'a Flash,
}

/// The ratio of `ours` to `theirs`.
pub fn ratio(ours: &Samples, theirs: &Samples) -> f64 {
    ours.median() / theirs.median()
}

/// Whether a goal was reached, as a word.
pub fn reached(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// How keys are asked for, as shown after their number.
pub fn form(asking: Asking) -> &'static str {
    match asking {
        Asking::InTurns(1) => "",
        Asking::InTurns(_) => ", a get each",
        Asking::Together(_) => ", one get",
        Asking::KeepingUp(_) => ", kept up",
    }
}

/// Which loads are judged: among those with the same number of connections and of keys in flight, the form in which
/// memcached is fastest. `loads`: (connections, keys), and memcached's figure.
pub fn judged(loads: &[((usize, usize), f64)]) -> Vec<bool> {
    let best = |of: &((usize, usize), f64)| {
        loads.iter().filter(|other| other.0 == of.0).all(|other| other.1 <= of.1)
    };
    loads.iter().map(best).collect()
}

impl MemcachedPage<'_> {
    /// docs/studies/memcached.md.
    pub fn text(&self) -> String {
        let MemcachedPage { size, notes, memory, flash } = self;
        let warning = match size.quick {
            false => "",
            true => "\n**Made with `--quick`: the sizes are too small for the figures to mean anything.**\n",
        };
        let notes: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
        let limit = match flash.is_limited {
            true => format!(
                "memcached runs in a control group of {} MiB, RAM for items and {} MiB for all else, so that the page \
                 cache does not hold its file",
                (size.flash_memory_bytes + flash::BESIDE_ITEMS_BYTES) >> 20,
                flash::BESIDE_ITEMS_BYTES >> 20
            ),
            false => "memcached's file may be in the page cache: there were no control groups to limit it"
                .to_owned(),
        };
        format!(
            "\
<!-- Written by `granary study memcached`. Change the program, not this page. -->

# The memcached server: Granary, memcached and the device
{warning}
```sh
scripts/install-test-servers.sh && scripts/install-rivals.sh    # memcached, fio
granary study memcached                                         # writes this page and memcached.csv
```

{notes}

One program loads all servers in the same way: one thread, so many connections, each of which sends its gets and \
waits for all replies before the next. Keys that are asked for at once are asked for in several forms: `a get each`, \
a line for each key, sent together; `one get` with all keys, `get k1 k2 ...`; and `kept up`, where a new get of one key \
follows each reply, so that as many are under way always, as from a proxy with many clients. Keys are drawn uniformly, \
the key and the length of every value are checked. Times are those of each key, from the sending of its get to the end \
of the reply. Each figure is the median of {repetitions} runs of {seconds} s; the servers took turns.

The form matters more to memcached than to Granary. memcached answers each get by a system call of its own, and a \
connection whose get waits for the device gets no further command looked at until the read is done: of gets in a \
pipeline it reads one at a time on each connection, where Granary has all of them read at once. Of the keys of one \
get both have all read at once, and answer them together. Therefore `wanted` is judged, of the loads with as many keys \
on as many connections, in that form in which memcached is fastest; both servers are then asked in it.

## Items in RAM
{memory_keys} items of {memory_value} bytes, {connections} connections, a thread for each server. Granary runs as \
it comes, with space on the device.

{memory}

## Items on the device
{flash_keys} items of {flash_value} bytes, {given} MiB of RAM for items, four threads for each server, memcached's \
default. What leaves RAM goes to the device, as in extstore (`--memcached-admission probability:1`); Granary reads with O_DIRECT; {limit}. \
fio reads Granary's file at the same depth. `ratio` is Granary's figure divided by that line's; with fio, of the 99th \
percentiles too: Granary's are of whole requests over a socket, RAM hits among them.

memcached's options: `-m {given} -t 4 -o {extstore}`

{flash}
",
            notes = notes.join("\n"),
            repetitions = size.repetitions,
            seconds = size.time.as_secs_f64(),
            memory_keys = size.memory_keys,
            memory_value = memory::VALUE_BYTES,
            connections = memory::CONNECTIONS,
            memory = memory.report().markdown(),
            flash_keys = size.flash_keys,
            flash_value = flash::VALUE_BYTES,
            given = size.flash_memory_bytes >> 20,
            extstore = servers::extstore(std::path::Path::new("FOLDER"), size.flash_bytes),
            flash = flash.report().markdown(),
        )
    }

    /// docs/studies/memcached.csv: both tables.
    pub fn csv(&self) -> String {
        format!("{}\n{}", self.memory.report().csv(), self.flash.report().csv())
    }
}

#[cfg(test)]
mod tests {
    use super::judged;

    #[test]
    fn loads_are_judged_in_the_form_that_is_best_for_memcached() {
        let loads = [((64, 1), 9.0), ((4, 16), 5.0), ((4, 16), 8.0), ((4, 16), 4.0), ((8, 16), 1.0)];
        assert_eq!(judged(&loads), [true, false, true, false, true]);
    }
}

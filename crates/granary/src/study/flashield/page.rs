//! docs/studies/flashield.md.

use super::claims;
use super::runs::{FlashieldRuns, PART, RATIO};
use super::space::SegmentSpace;

/// The page.
pub fn text(runs: &FlashieldRuns, space: &SegmentSpace, quick: bool) -> String {
    let warning = match quick {
        true => "\n**Made with `--quick`: the streams are too short for the figures to mean anything.**\n",
        false => "",
    };
    let inputs: Vec<String> = runs.lines.iter().map(|line| format!("- {}", line.description)).collect();
    let (threshold_clwa, threshold_hits) = runs.thresholds();
    let (ratio_clwa, ratio_hits) = runs.ratios();
    let (paper_ratio_clwa, paper_ratio_hits) = runs.paper_ratios();
    format!(
        "\
<!-- Written by `granary study flashield`. Change the program, not this page. -->

# Which objects are worth a write to flash
{warning}
Flash wears out by writes. *Flashield* (Eisenman et al., NSDI 2019) lets every object into DRAM first, learns which \
are read again, and writes only those. This repeats its comparisons on other workloads, by models of the caches that \
are fed with the requests; [how well they predict the real server](replay.md) was measured, too. `flashield` is the paper's policy and `reuse` one of our own; [both](../admission.md) are \
the code that serves.

```sh
granary study flashield --traces DIR           # writes this page, flashield.csv and the plots
granary replay DIR/web07.trace.xz              # one trace, any policies and sizes
```

## Workloads

No long public trace of a key-value store has sizes, operations and lifetimes, so each line says what is real:

{inputs}

*real, sized*: recorded requests with their sizes. *real keys, assigned sizes*: recorded keys; sizes are drawn from \
the distribution of Facebook's ETC pool by a hash of the key. *synthetic*: independent requests with the published \
popularity, sizes, operations and lifetimes of a production cache; popularity does not change with time, which \
flatters policies that count and hurts those that look at recency.

A read that misses is followed by the client's store of the object. An object that is asked for in another size than \
it was stored with is another object. DRAM and flash together are {part:.0} % of what a \
cache without bounds would hold at most, 1 part DRAM to {RATIO} parts flash; flash is written in 128 segments. Every \
cache begins empty and everything counts. Indexes do not take from the budgets.

## Writes

CLWA: bytes written to flash for each byte that clients store, by sets and after misses.

{clwa}

![CLWA](flashield-clwa.svg)

CLWA falls when a cache finds less, for clients then store more. Bytes written for each byte that clients read:

{written}

## Hits

Percent of reads. `lru`, `s3-fifo` and `belady` have DRAM as large as DRAM and flash together; `lru-dram` and \
`s3-fifo-dram` have the DRAM alone. For objects of several sizes `belady` lets the object go whose bytes times \
requests to wait are most: near the best, without a proof.

{hits}

![Hit ratio](flashield-hits.svg)

Of the bytes:

{byte_hits}

## What we want

Of `reuse`: CLWA at most half of the victim cache's, and a hit ratio at most 0.5 points below that of a cache which writes \
everything (`fifo`), in the same space:

{goals}

## What agrees with the paper

The paper's workload is a week of a memcached service; none of these is.

{claims}

*Why Flashield finds less here*: it writes nothing that was not read in DRAM, and DRAM is an eighth of the space. In \
these workloads most objects that are read again are read after they have left DRAM. A filter that remembers what \
left (`reuse`, `reject-first`) sees them come back. Besides, a machine that is to be right as often as possible \
declines what is read again in less than half of the cases; where objects are updated often (`twitter48`) that costs \
some points more.

*Why RIPQ and the victim cache write less here*: each store is written once, and what is found on flash is written \
again. So CLWA grows with the finds for each store, that is with the hit ratio, and most of these workloads miss more \
often than a cache of a web application does.

## Threshold n

Flashield's: reads that are expected of an object on flash. CLWA:

{threshold_clwa}

Hit ratio, percent:

{threshold_hits}

## DRAM to flash

The same space, cut otherwise. CLWA of `reuse`, then of `flashield`:

{ratio_clwa}

{paper_ratio_clwa}

Hit ratio, percent, of `reuse`, then of `flashield`:

{ratio_hits}

{paper_ratio_hits}

## Other sizes

`reuse` beside `fifo` in less and more space:

{parts}

## Space use of a segment

{space}
## DRAM for the index

Of the DRAM that objects take, by what the literature says of each index (Granary 4 bytes an object on flash, RIPQ \
22, Fatcache 32, as the victim cache's), with what a policy remembers. Flashield's examples take a fixed megabyte or \
two, which is much for these small caches and little for a real one:

{index}
",
        inputs = inputs.join("\n"),
        space = space.text(),
        part = PART * 100.0,
        clwa = runs.clwa().markdown(),
        written = runs.written_per_read().markdown(),
        hits = runs.hit_ratio().markdown(),
        byte_hits = runs.byte_hit_ratio().markdown(),
        goals = claims::goals(runs).markdown(),
        claims = claims::report(runs).markdown(),
        threshold_clwa = threshold_clwa.markdown(),
        threshold_hits = threshold_hits.markdown(),
        ratio_clwa = ratio_clwa.markdown(),
        ratio_hits = ratio_hits.markdown(),
        paper_ratio_clwa = paper_ratio_clwa.markdown(),
        paper_ratio_hits = paper_ratio_hits.markdown(),
        parts = runs.parts().markdown(),
        index = runs.index().markdown(),
    )
}

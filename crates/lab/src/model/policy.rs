//! Models by name.

use super::{
    Belady, Budget, Costs, Fifo, Filter, Hybrid, HybridOptions, Layout, Lru, Model, Offer, Ripq, S3Fifo,
    Victim,
};
use granary_cache::admission::{Admission, Admitter, Candidate, Decision, Flashield};
use granary_cache::{Applications, KeyHasher};
use std::fmt;
use std::str::FromStr;

/// The policies that are compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// LRU in the DRAM alone: the cache without flash.
    LruDram,
    /// LRU with DRAM as large as DRAM and flash together: what flash stands in for.
    Lru,
    /// S3-FIFO in the DRAM alone.
    S3FifoDram,
    /// S3-FIFO in DRAM as large as DRAM and flash together.
    S3Fifo,
    /// Everything to flash, first in, first out.
    Fifo,
    /// Every object that leaves DRAM to flash.
    Victim,
    /// RIPQ with eight insertion points.
    Ripq,
    /// Granary's cache, with its own admission policy.
    Hybrid(Admission),
    /// Belady's, which knows the future.
    Belady,
}

impl Policy {
    /// Names and descriptions of the policies.
    pub const NAMES: [(&str, &str); 12] = [
        ("reuse", "Granary: what was read in DRAM, or leaves it again before long, goes to flash"),
        ("flashield", "Granary: what is expected to be read again goes to flash; flashield:3: three times"),
        ("reject-first", "Granary: what leaves DRAM for the second time before long goes to flash"),
        ("probability", "Granary: what leaves DRAM goes to flash with a probability; probability:0.3"),
        ("ripq", "RIPQ: eight insertion points, everything goes to flash"),
        ("victim", "victim cache: whatever leaves DRAM goes to flash, again each time"),
        ("fifo", "log: everything goes to flash at once, the recently used stays in DRAM, too"),
        ("lru", "LRU, DRAM only, as large as DRAM and flash together"),
        ("s3-fifo", "S3-FIFO, DRAM only, as large as both"),
        ("lru-dram", "LRU in the DRAM alone"),
        ("s3-fifo-dram", "S3-FIFO in the DRAM alone"),
        ("belady", "DRAM only, as large as both, and the future is known: about the most there is to find"),
    ];

    /// An empty cache of this policy.
    pub fn model(&self, budget: &Budget, keys: u32) -> Box<dyn Model> {
        let both = budget.dram_bytes + budget.flash_bytes;
        match self {
            Self::LruDram => Box::new(Lru::new(budget.dram_bytes, keys)),
            Self::Lru => Box::new(Lru::new(both, keys)),
            Self::S3FifoDram => Box::new(S3Fifo::new(budget.dram_bytes, keys)),
            Self::S3Fifo => Box::new(S3Fifo::new(both, keys)),
            Self::Fifo => Box::new(Fifo::new(budget, keys)),
            Self::Victim => Box::new(Victim::new(budget, keys)),
            Self::Ripq => Box::new(Ripq::new(budget, keys)),
            Self::Belady => Box::new(Belady::new(both, keys)),
            Self::Hybrid(admission) => Box::new(Self::hybrid(admission, budget, keys, Costs::none(budget))),
        }
    }

    /// An empty cache of this policy with the overheads of Granary's cache; `None`: Granary's has no such policy.
    pub fn model_with_costs(&self, budget: &Budget, keys: u32, layout: Layout) -> Option<Box<dyn Model>> {
        let admission = self.admission()?;
        Some(Box::new(Self::hybrid(admission, budget, keys, Costs::of_cache(budget, layout))))
    }

    fn hybrid(admission: &Admission, budget: &Budget, keys: u32, costs: Costs) -> Hybrid<AdmitterFilter> {
        let filter = AdmitterFilter(Admitter::new(
            admission,
            &Applications::default(),
            budget.flash_bytes,
            None,
            SEED,
        ));
        Hybrid::with_costs(budget, keys, HybridOptions::default(), costs, filter)
    }

    /// The setting of Granary's cache for this policy; `None`: it is another cache's.
    pub fn admission(&self) -> Option<&Admission> {
        if let Self::Hybrid(admission) = self { Some(admission) } else { None }
    }

    /// Whether it needs to know the future.
    pub fn looks_ahead(&self) -> bool {
        *self == Self::Belady
    }
}

/// Fixed, so that replays repeat.
const SEED: u64 = 1;

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::LruDram => "lru-dram",
            Self::Lru => "lru",
            Self::S3FifoDram => "s3-fifo-dram",
            Self::S3Fifo => "s3-fifo",
            Self::Fifo => "fifo",
            Self::Victim => "victim",
            Self::Ripq => "ripq",
            Self::Belady => "belady",
            Self::Hybrid(Admission::Flashield(Flashield { reads: 1 })) => "flashield",
            Self::Hybrid(admission) => return admission.fmt(f),
        };
        f.write_str(name)
    }
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "lru-dram" => Self::LruDram,
            "lru" => Self::Lru,
            "s3-fifo-dram" => Self::S3FifoDram,
            "s3-fifo" => Self::S3Fifo,
            "fifo" => Self::Fifo,
            "victim" => Self::Victim,
            "ripq" => Self::Ripq,
            "belady" => Self::Belady,
            "probability" => Self::Hybrid(Admission::Probability(0.5)),
            _ => match text.parse() {
                // Write-through, which `Hybrid` does not model.
                Ok(Admission::All) | Err(_) => {
                    return Err(format!("one of {} is wanted", Self::NAMES.map(|(name, _)| name).join(", ")));
                }
                Ok(admission) => Self::Hybrid(admission),
            },
        })
    }
}

/// The production policy code, as the model's filter.
struct AdmitterFilter(Admitter);

impl Filter for AdmitterFilter {
    fn on_read(&mut self, key: u32, found: bool) {
        self.0.on_read(KeyHasher::with_seed(0).key(&key.to_le_bytes()), found);
    }

    fn on_put(&mut self, key: u32, bytes: u32) {
        self.0.on_put(KeyHasher::with_seed(0).key(&key.to_le_bytes()), u64::from(bytes));
    }

    fn admits(&mut self, offer: &Offer, seconds: u32) -> bool {
        let key = offer.key.to_le_bytes();
        let candidate = Candidate {
            key: KeyHasher::with_seed(0).key(&key),
            bytes: u64::from(offer.bytes),
            reads: offer.reads,
            updates: offer.updates,
        };
        self.0.decide(&candidate, f64::from(seconds)) == Decision::Flash
    }

    fn bytes_allocated(&self) -> u64 {
        self.0.bytes_allocated() as u64
    }

    fn writes(&self) -> bool {
        self.0.writes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (name, _) in Policy::NAMES {
            let policy: Policy = name.parse().unwrap();
            assert_eq!(policy.to_string().parse::<Policy>().unwrap(), policy);
            assert!(policy.to_string().starts_with(name));
        }
        assert_eq!("flashield:3".parse::<Policy>().unwrap().to_string(), "flashield:3");
        for wrong in ["flashield:x", "lru:1", "probability:2", "", "best"] {
            assert!(wrong.parse::<Policy>().is_err(), "{wrong}");
        }
    }
}

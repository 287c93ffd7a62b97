//! The first step: RAM tier and index are searched, each shard once for many keys.

use super::outcome::{Outcome, Tier};
use super::probe::Probe;
use super::scratch::Scratch;
use super::search::KeyDigest;
use super::{Lookup, answers::Answers};
use crate::batch::KeyInBatch;
use crate::key::Key;
use crate::limits::{LOCKED_LOOKUPS, PLANNED_KEYS, SHARDS, SIDE_BY_SIDE};
use crate::memory::{Candidates, EntryAt};
use crate::shard::Shard;
use granary_log::prefetch::prefetch;
use std::ops::Range;

impl<S: FnMut(usize, Outcome<'_>)> Lookup<'_, S> {
    /// Searches RAM tier and index for the keys of `range`: delivers outcomes of keys in RAM or nowhere, and makes
    /// probes for the others.
    pub fn plan(&mut self, scratch: &mut Scratch, range: Range<usize>) {
        let mut start = range.start as u32;
        let (has_flash, sets_found_marks) = (self.shared.flash.is_some(), self.sets_found_marks);
        if let [key] = &self.keys[range.clone()] {
            let Scratch { answers, candidates, probes, .. } = scratch;
            let asked = [KeyInBatch { hash: key.hash(), key: start }];
            let mut planning =
                Planning { keys: self.keys, has_flash, sets_found_marks, answers, candidates, probes };
            planning.plan(&mut self.shared.shard(key.hash()), &asked);
            return self.deliver_answers(scratch);
        }
        for keys in self.keys[range].chunks(PLANNED_KEYS) {
            scratch.by_shard.deal(keys.iter().map(|key| key.hash()), start);
            start += keys.len() as u32;
            // Threads that begin with different shards wait less for each other.
            let first = keys[0].hash().shard();
            for shard in (first..SHARDS).chain(0..first) {
                let mut planned = 0;
                while planned < scratch.by_shard.keys_of(shard).len() {
                    let Scratch { by_shard, answers, candidates, probes, .. } = scratch;
                    let rest = &by_shard.keys_of(shard)[planned..];
                    let asked = &rest[..rest.len().min(LOCKED_LOOKUPS)];
                    let mut planning = Planning {
                        keys: self.keys,
                        has_flash,
                        sets_found_marks,
                        answers,
                        candidates,
                        probes,
                    };
                    planned += planning.plan(&mut self.shared.lock_shard(shard), asked);
                    if scratch.answers.are_many() {
                        self.deliver_answers(scratch);
                    }
                }
            }
        }
        self.deliver_answers(scratch);
    }

    /// Plans keys again that were not found where the index pointed: an entry that moved or was replaced while it was
    /// read is elsewhere now; a tag shared with another key is a miss. `last`: there is no other attempt.
    pub fn plan_again(&mut self, scratch: &mut Scratch, last: bool) {
        scratch.probes.clear();
        scratch.false_positives.sort_unstable();
        scratch.false_positives.dedup();
        let false_positives = std::mem::take(&mut scratch.false_positives);
        for tried in false_positives.chunk_by(|a, b| a.key == b.key) {
            let i = tried[0].key;
            if self.is_resolved(i) {
                continue;
            }
            let Scratch { answers, probes, .. } = scratch;
            let key = self.keys[i as usize];
            let mut shard = self.shared.shard(key.hash());
            if let Some(stored) = shard.read(key) {
                // The entry was taken back to RAM meanwhile.
                answers.entry(i, Tier::Memory, stored.value, stored.expires_at);
            } else {
                let before = probes.len();
                let digest = KeyDigest::of(key.bytes());
                shard.index.find(key.hash(), self.sets_found_marks, |block, is_found| {
                    if last || tried.iter().all(|tried| tried.block != block) {
                        probes.push(Probe { block, key: i, digest, is_found });
                    }
                });
                if last || probes.len() == before {
                    probes.truncate(before);
                    for tried in tried.iter().filter(|tried| tried.sequence > 0) {
                        shard.index.collisions.add(key, tried.block, tried.sequence);
                    }
                    answers.miss(i);
                }
            }
            drop(shard);
            if !scratch.answers.is_empty() {
                self.resolve(i);
                self.deliver_answers(scratch);
            }
        }
        scratch.false_positives = false_positives;
    }
}

/// The planning of keys in a shard while its lock is held.
struct Planning<'a> {
    keys: &'a [Key<'a>],
    has_flash: bool,
    sets_found_marks: bool,
    answers: &'a mut Answers,
    candidates: &'a mut [Candidates; 2],
    probes: &'a mut Vec<Probe>,
}

impl Planning<'_> {
    /// Plans keys until there are many answers to be copied. Returns how many keys.
    fn plan(&mut self, shard: &mut Shard, asked: &[KeyInBatch]) -> usize {
        let mut planned = 0;
        let mut parts = asked.chunks(SIDE_BY_SIDE);
        let mut part = parts.next().unwrap_or_default();
        let mut turn = 0;
        let bytes = shard.memory.prefetched_bytes();
        self.seek(shard, part, turn, bytes);
        while !part.is_empty() {
            // Prefetched while this part is planned.
            let next = parts.next().unwrap_or_default();
            self.seek(shard, next, 1 - turn, bytes);
            for (i, asked) in part.iter().enumerate() {
                self.plan_key(shard, *asked, self.candidates[turn][i]);
            }
            planned += part.len();
            if self.answers.are_many() {
                break;
            }
            (part, turn) = (next, 1 - turn);
        }
        planned
    }

    /// Finds the keys' candidate entries in RAM, and has the processor fetch the memory that planning will read.
    #[inline]
    fn seek(&mut self, shard: &Shard, part: &[KeyInBatch], turn: usize, bytes: usize) {
        let candidates = &mut self.candidates[turn];
        shard.memory.candidates(part.iter().map(|asked| asked.hash), candidates);
        for (asked, candidate) in part.iter().zip(&*candidates) {
            prefetch(self.keys[asked.key as usize].bytes());
            match candidate {
                Some(candidate) => shard.memory.prefetch(*candidate, bytes),
                None if self.has_flash => shard.index.prefetch(asked.hash),
                None => {}
            }
        }
    }

    #[inline(always)]
    fn plan_key(&mut self, shard: &mut Shard, asked: KeyInBatch, candidate: Option<EntryAt>) {
        let key = self.keys[asked.key as usize];
        if let Some(at) = candidate
            && let Some(stored) = shard.memory.get_short(key, at)
        {
            return self.answers.entry(asked.key, Tier::Memory, stored.value, stored.expires_at);
        }
        self.plan_other(shard, asked, candidate);
    }

    /// Plans a key whose record is not a short one, or not in RAM.
    #[inline(never)]
    fn plan_other(
        &mut self,
        shard: &mut Shard,
        KeyInBatch { hash, key: i }: KeyInBatch,
        candidate: Option<EntryAt>,
    ) {
        let key = self.keys[i as usize];
        if let Some(at) = candidate
            && let Some(stored) = shard.memory.get(key, at)
        {
            return self.answers.entry(i, Tier::Memory, stored.value, stored.expires_at);
        }
        let before = self.probes.len();
        if self.has_flash {
            let digest = KeyDigest::of(key.bytes());
            shard.index.find(hash, self.sets_found_marks, |block, is_found| {
                self.probes.push(Probe { block, key: i, digest, is_found });
            });
        }
        if self.probes.len() == before {
            self.answers.miss(i);
        }
    }
}

//! Popularity by buckets: a number of objects and their share of the requests.

use rand::RngExt;
use rand::rngs::SmallRng;

/// A distribution over `0..keys` with the shape of the buckets, most popular first, for any number of keys.
#[derive(Debug)]
pub(super) struct Popularity {
    /// Objects and weight of all buckets up to and including this one.
    up_to: Vec<(f64, f64)>,
    keys: u64,
}

impl Popularity {
    /// From (objects, weight) pairs; `None` if no object has any weight.
    pub(super) fn new(buckets: &[(f64, f64)], keys: u64) -> Option<Self> {
        let mut sum = (0.0, 0.0);
        let mut up_to = Vec::with_capacity(buckets.len());
        for &(objects, weight) in buckets.iter().filter(|(objects, weight)| *objects > 0.0 && *weight > 0.0) {
            sum = (sum.0 + objects, sum.1 + weight);
            up_to.push(sum);
        }
        (sum.0.is_finite() && sum.1.is_finite() && !up_to.is_empty() && keys > 0)
            .then_some(Self { up_to, keys })
    }

    /// Draws a key: a random point on the axis of weights, mapped to the axis of objects.
    pub(super) fn draw(&self, random: &mut SmallRng) -> u64 {
        let (objects, weight) = *self.up_to.last().expect("not empty");
        let place = random.random::<f64>() * weight;
        let bucket = self.up_to.partition_point(|(_, weight)| *weight <= place).min(self.up_to.len() - 1);
        let (before_objects, before_weight) = if bucket == 0 { (0.0, 0.0) } else { self.up_to[bucket - 1] };
        let (to_objects, to_weight) = self.up_to[bucket];
        let inside = (place - before_weight) / (to_weight - before_weight);
        let object = before_objects + inside * (to_objects - before_objects);
        ((object / objects * self.keys as f64) as u64).min(self.keys - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn buckets_keep_their_share_when_keys_are_fewer_or_more() {
        // One object in ten takes nine tenths of the requests.
        let buckets = [(10.0, 900.0), (90.0, 100.0)];
        for keys in [10, 100, 1000] {
            let popularity = Popularity::new(&buckets, keys).unwrap();
            let mut random = SmallRng::seed_from_u64(1);
            let drawn: Vec<u64> = (0..20_000).map(|_| popularity.draw(&mut random)).collect();
            let popular = drawn.iter().filter(|key| **key < keys / 10).count();
            assert!((17_700..18_300).contains(&popular), "{keys} keys: {popular}");
            assert!(drawn.iter().all(|key| *key < keys));
        }
        assert!(Popularity::new(&[], 1).is_none());
        assert!(Popularity::new(&[(0.0, 1.0)], 1).is_none());
        assert!(Popularity::new(&[(f64::INFINITY, 1.0)], 1).is_none());
    }
}

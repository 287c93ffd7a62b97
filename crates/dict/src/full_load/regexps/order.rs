//! The tree of regular expressions, and their precedence.

use crate::error::DictError;

/// A tree of nodes, which are numbered in the order of their ids.
pub(super) struct RegexpOrder {
    /// The nodes' numbers in order of precedence: children before their parent, siblings by ascending id.
    pub sequence: Vec<u32>,
    /// The parent's number, by node.
    pub parents: Vec<Option<u32>>,
}

impl RegexpOrder {
    /// Takes ascending ids, and the ids of their parents (0: there is none).
    ///
    /// # Errors
    /// `INCORRECT_DICTIONARY_DEFINITION` if an id is 0 or duplicate, or a parent is missing or its own descendant.
    pub fn of(ids: &[u64], parent_ids: &[u64]) -> Result<RegexpOrder, DictError> {
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(DictError::definition(format!("There are duplicate id {}", twice[0])));
        }
        if ids.first() == Some(&0) {
            return Err(DictError::definition("There are invalid id 0"));
        }
        let number = |&parent: &u64| match (parent, ids.binary_search(&parent)) {
            (0, _) => Ok(None),
            (_, Ok(number)) => Ok(Some(number as u32)),
            (_, Err(_)) => {
                Err(DictError::definition(format!("Unknown parent id {parent} in regexp tree dictionary")))
            }
        };
        let parents = parent_ids.iter().map(number).collect::<Result<Vec<_>, _>>()?;
        let sequence = sequence(&parents);
        if sequence.len() < ids.len() {
            return Err(DictError::definition("The regexp tree is cyclical. Please check your config"));
        }
        Ok(RegexpOrder { sequence, parents })
    }
}

/// The nodes that can be reached from a node without a parent, each after all nodes in it.
fn sequence(parents: &[Option<u32>]) -> Vec<u32> {
    // First child and next sibling, by node.
    let (mut first, mut next) = (vec![None; parents.len()], vec![None; parents.len()]);
    let mut root = None;
    for (number, parent) in parents.iter().enumerate().rev() {
        let list = parent.map_or(&mut root, |parent| &mut first[parent as usize]);
        next[number] = list.replace(number as u32);
    }
    let mut sequence = Vec::with_capacity(parents.len());
    let mut at = root;
    // Down to the first leaf, then to the next sibling, or up.
    while let Some(mut number) = at {
        while let Some(inside) = first[number as usize] {
            number = inside;
        }
        sequence.push(number);
        at = next[number as usize];
        while at.is_none()
            && let Some(parent) = parents[number as usize]
        {
            number = parent;
            sequence.push(number);
            at = next[number as usize];
        }
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_inside_comes_first_and_of_neighbours_the_smaller_id() {
        let ids = [1, 2, 3, 4, 5, 6, 9];
        let order = RegexpOrder::of(&ids, &[0, 9, 1, 1, 0, 3, 0]).unwrap();
        let sequence: Vec<u64> = order.sequence.iter().map(|&number| ids[number as usize]).collect();
        assert_eq!(sequence, [6, 3, 4, 1, 5, 2, 9]);
        assert_eq!(order.parents, [None, Some(6), Some(0), Some(0), None, Some(2), None]);
        assert!(RegexpOrder::of(&[], &[]).unwrap().sequence.is_empty());
    }

    #[test]
    fn a_long_way_down_is_walked() {
        let ids: Vec<u64> = (1..=100_000).collect();
        let parents: Vec<u64> = (0..100_000).collect();
        let order = RegexpOrder::of(&ids, &parents).unwrap();
        assert!(order.sequence.iter().rev().copied().eq(0..100_000));
    }

    #[test]
    fn what_is_no_tree() {
        for (ids, parents, wrong) in [
            (&[1, 1][..], &[0, 0][..], "There are duplicate id 1"),
            (&[0, 1], &[0, 0], "There are invalid id 0"),
            (&[6], &[2], "Unknown parent id 2 in regexp tree dictionary"),
            (&[1], &[1], "The regexp tree is cyclical. Please check your config"),
            (&[1, 2, 3], &[2, 3, 1], "The regexp tree is cyclical. Please check your config"),
            (&[1, 2, 3, 4], &[0, 3, 2, 1], "The regexp tree is cyclical. Please check your config"),
        ] {
            let error = RegexpOrder::of(ids, parents).err().unwrap();
            assert_eq!((error.code(), error.message()), (489, wrong));
        }
    }
}

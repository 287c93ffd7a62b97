//! `incr` and `decr`.

use crate::item::{Header, Item};
use crate::protocol::{Direction, unsigned};
use crate::store::{Change, Hand};

/// The reply to [`NonNumeric`].
pub const NON_NUMERIC: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";

/// The value to count up or down is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NonNumeric;

/// Counts an item up or down; returns the new number.
///
/// As in memcached, a number that gets shorter keeps its length, with blanks behind, and the item stays the same; a
/// number that gets longer makes a new item.
pub fn count(
    item: Item<'_>,
    direction: Direction,
    delta: u64,
    hand: &mut Hand<'_>,
) -> Result<(Change, u64), NonNumeric> {
    let value = unsigned(item.data).ok_or(NonNumeric)?;
    let value = match direction {
        Direction::Up => value.wrapping_add(delta),
        Direction::Down => value.saturating_sub(delta),
    };
    hand.data.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    if hand.data.len() > item.data.len() {
        let Header { flags, deadline, key_form, .. } = item.header;
        let header = Header { key_form, ..hand.header(flags, deadline) };
        return Ok((Change::Write(header), value));
    }
    hand.data.resize(item.data.len(), b' ');
    let mut header = item.header;
    hand.set_new_cas(&mut header);
    Ok((Change::Amend(header), value))
}

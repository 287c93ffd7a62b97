//! `incr` and `decr`.

use crate::item::{Header, Item};
use crate::protocol::{Direction, unsigned};
use crate::store::{Change, ChangeContext};

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
    change_context: &mut ChangeContext<'_>,
) -> Result<(Change, u64), NonNumeric> {
    let value = unsigned(item.data).ok_or(NonNumeric)?;
    let value = match direction {
        Direction::Up => value.wrapping_add(delta),
        Direction::Down => value.saturating_sub(delta),
    };
    change_context.data.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
    if change_context.data.len() > item.data.len() {
        let Header { flags, deadline, key_form, .. } = item.header;
        let header = Header { key_form, ..change_context.header(flags, deadline) };
        return Ok((Change::Write(header), value));
    }
    change_context.data.resize(item.data.len(), b' ');
    let mut header = item.header;
    change_context.set_new_cas(&mut header);
    Ok((Change::Amend(header), value))
}

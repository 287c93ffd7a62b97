//! `set`, `add`, `replace`, `append`, `prepend` and `cas`, also as `ms`.

use crate::item::{Deadline, Freshness, Header, Item};
use crate::protocol::{KeyForm, Mode, Put};
use crate::store::{Change, ChangeContext, Lookup, Store};

/// The outcome of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreOutcome {
    /// The item is stored.
    Stored,
    /// Its mode forbids to store it.
    Refused,
    /// The item that is there has another `cas` number than the one asked for.
    Exists,
    /// There is no item whose number could be compared.
    NotFound,
    /// There is no room for the item.
    NoRoom,
}

/// The terms that a meta command adds to a store, and the item size limit.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The form in which the client wrote the key.
    pub key_form: KeyForm,
    /// Flag `I`: an item with an older number than the one there is stored all the same, as stale.
    pub invalidate: bool,
    /// Flag `E`: the number that the item gets.
    pub explicit_cas: Option<u64>,
    /// Greatest size of an item.
    pub item_bytes_max: usize,
}

/// The comparison of the `cas` number asked for with that of the item there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    NotAsked,
    Same,
    Older,
    Other,
}

fn compare(put: &Put<'_>, terms: &Terms, item: &Item<'_>) -> Compared {
    match put.cas {
        0 => Compared::NotAsked,
        cas if cas == item.header.cas => Compared::Same,
        cas if terms.invalidate && put.mode == Mode::Cas && cas < item.header.cas => Compared::Older,
        _ => Compared::Other,
    }
}

/// Stores an item, or not. Returns the verdict and the number of the stored item.
pub fn put(
    put: &Put<'_>,
    terms: &Terms,
    lookup: Lookup<'_>,
    change_context: &mut ChangeContext<'_>,
) -> (Change, (StoreOutcome, u64)) {
    let item = match lookup {
        Lookup::Hit(item) => item,
        Lookup::Miss(_) => {
            return match put.mode {
                Mode::Set | Mode::Add => fresh(put, terms, change_context),
                Mode::Cas => refuse(StoreOutcome::NotFound),
                Mode::Replace | Mode::Append | Mode::Prepend => refuse(StoreOutcome::Refused),
            };
        }
    };
    match (put.mode, compare(put, terms, &item)) {
        (Mode::Set | Mode::Replace, _) | (Mode::Cas, Compared::Same) => fresh(put, terms, change_context),
        (Mode::Cas, Compared::Older) => stale(put, terms, &item.header, change_context),
        (Mode::Add, _) => refuse(StoreOutcome::Refused),
        (Mode::Append | Mode::Prepend, Compared::NotAsked | Compared::Same) => {
            join(put, terms, item, change_context)
        }
        _ => refuse(StoreOutcome::Exists),
    }
}

fn refuse(stored: StoreOutcome) -> (Change, (StoreOutcome, u64)) {
    (Change::Leave, (stored, 0))
}

fn write(mut header: Header, terms: &Terms) -> (Change, (StoreOutcome, u64)) {
    header.cas = terms.explicit_cas.unwrap_or(header.cas);
    (Change::Write(header), (StoreOutcome::Stored, header.cas))
}

fn fresh(
    put: &Put<'_>,
    terms: &Terms,
    change_context: &mut ChangeContext<'_>,
) -> (Change, (StoreOutcome, u64)) {
    change_context.data.extend_from_slice(put.data);
    let mut header = change_context.header(put.flags, Deadline::of(put.exptime, change_context.now));
    header.key_form = terms.key_form;
    write(header, terms)
}

/// Stores a late value: better than the item there, but made from a version before it.
fn stale(
    put: &Put<'_>,
    terms: &Terms,
    there: &Header,
    change_context: &mut ChangeContext<'_>,
) -> (Change, (StoreOutcome, u64)) {
    change_context.data.extend_from_slice(put.data);
    let mut header = change_context.header(put.flags, there.deadline);
    (header.freshness, header.token, header.key_form) = (Freshness::Stale, there.token, terms.key_form);
    write(header, terms)
}

fn join(
    put: &Put<'_>,
    terms: &Terms,
    item: Item<'_>,
    change_context: &mut ChangeContext<'_>,
) -> (Change, (StoreOutcome, u64)) {
    let Header { flags, deadline, key_form, .. } = item.header;
    let len = item.data.len() + put.data.len();
    if Store::item_bytes(&put.key, flags, len) > terms.item_bytes_max {
        return refuse(StoreOutcome::Refused);
    }
    let (first, second) =
        if put.mode == Mode::Append { (item.data, put.data) } else { (put.data, item.data) };
    change_context.data.extend_from_slice(first);
    change_context.data.extend_from_slice(second);
    write(Header { key_form, ..change_context.header(flags, deadline) }, terms)
}

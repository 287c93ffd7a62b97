//! What clients ask for.

use std::borrow::Cow;

/// Whether the client waits for a reply: `noreply`, and `q` of the meta commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It does.
    Wanted,
    /// It does not, unless something goes wrong (meta commands) or not even then (the others).
    Quiet,
}

/// When an item ends, as clients say it: 0 never, up to 30 days from now, or else Unix time; a negative
/// one is past.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exptime(pub i32);

/// How an item is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In any case.
    Set,
    /// If there is none.
    Add,
    /// If there is one.
    Replace,
    /// Behind the value that is there.
    Append,
    /// Before the value that is there.
    Prepend,
    /// If the one that is there has the number asked for.
    Cas,
}

/// An item to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put<'a> {
    /// How.
    pub mode: Mode,
    /// Its key.
    pub key: Cow<'a, [u8]>,
    /// The client's own bits.
    pub flags: u32,
    /// When it ends.
    pub exptime: Exptime,
    /// The number that the item there must have; 0: any, but for [`Mode::Cas`].
    pub cas: u64,
    /// Its value.
    pub data: &'a [u8],
    /// Whether a reply is wanted.
    pub reply: Reply,
}

/// Which way `incr` and `decr` go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Up, around the end of 64 bits.
    Up,
    /// Down to 0 at most.
    Down,
}

/// How a key was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyForm {
    /// As it is.
    #[default]
    Text,
    /// In base64, flag `b`.
    Binary,
}

/// A flag of a meta command that wants something back, or changes something in its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag<'a> {
    /// Its letter.
    pub letter: u8,
    /// What follows the letter.
    pub token: &'a [u8],
}

/// The flags of a meta command, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaFlags<'a> {
    /// All of them as they were written, blanks between.
    pub text: &'a [u8],
    /// `b`.
    pub key_form: KeyForm,
    /// `v`.
    pub value: bool,
    /// `u`: the read is not remembered.
    pub unnoticed: bool,
    /// `q`.
    pub quiet: bool,
    /// `I`.
    pub invalidate: bool,
    /// `N`: a missing item is made, with this exptime.
    pub vivify: Option<Exptime>,
    /// `T`.
    pub exptime: Option<Exptime>,
    /// `R`: an item that ends earlier than this is to be made anew.
    pub recache: Option<Exptime>,
    /// `C`.
    pub cas: Option<u64>,
    /// `E`: the number that a changed item gets.
    pub explicit_cas: Option<u64>,
    /// `F`.
    pub flags: u32,
    /// `M`.
    pub mode: Option<u8>,
    /// `D`.
    pub delta: Option<u64>,
    /// `J`.
    pub initial: u64,
}

impl<'a> MetaFlags<'a> {
    /// The flags in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = Flag<'a>> + use<'a> {
        super::words::split(self.text).map(|word| Flag { letter: word[0], token: &word[1..] })
    }

    /// The same flags, whose text lies elsewhere.
    pub fn with_text<'b>(&self, text: &'b [u8]) -> MetaFlags<'b> {
        MetaFlags {
            text,
            key_form: self.key_form,
            value: self.value,
            unnoticed: self.unnoticed,
            quiet: self.quiet,
            invalidate: self.invalidate,
            vivify: self.vivify,
            exptime: self.exptime,
            recache: self.recache,
            cas: self.cas,
            explicit_cas: self.explicit_cas,
            flags: self.flags,
            mode: self.mode,
            delta: self.delta,
            initial: self.initial,
        }
    }

    /// [`Reply`] of a flag `q`.
    pub fn reply(&self) -> Reply {
        if self.quiet { Reply::Quiet } else { Reply::Wanted }
    }
}

/// A meta command on one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The key, decoded.
    pub key: Cow<'a, [u8]>,
    /// Its flags.
    pub flags: MetaFlags<'a>,
}

/// Whether a reply has the numbers of items: `gets` and `gats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithCas {
    /// It has.
    Yes,
    /// It has not.
    No,
}

/// What becomes of an item when its successor is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// It goes, so that nobody takes it for the new one.
    Goes,
    /// It stays.
    Stays,
}

/// How items are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpForm {
    /// What is known of each but its value: `metadump`.
    Metadata,
    /// A request for each: `mgdump`.
    Requests,
}

/// Which statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// `stats`.
    General,
    /// `stats settings`.
    Settings,
    /// `stats items`.
    Items,
    /// `stats slabs`.
    Slabs,
    /// `stats sizes`.
    Sizes,
    /// `stats granary`: the cache underneath.
    Granary,
    /// `stats conns`: the connections.
    Connections,
    /// Groups that are always empty here.
    Empty,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get`, `gets`: the keys, blanks between.
    Get {
        /// The keys as they were written.
        keys: &'a [u8],
        /// `gets`.
        with_cas: WithCas,
    },
    /// `gat`, `gats`: as `get`, and the items get a new end.
    Gat {
        /// The keys as they were written.
        keys: &'a [u8],
        /// `gats`.
        with_cas: WithCas,
        /// Their end.
        exptime: Exptime,
    },
    /// `set` and its kin.
    Put(Put<'a>),
    /// `delete`.
    Delete {
        /// The key.
        key: &'a [u8],
        /// Whether a reply is wanted.
        reply: Reply,
    },
    /// `incr`, `decr`.
    Arithmetic {
        /// The key.
        key: &'a [u8],
        /// Which of them.
        direction: Direction,
        /// By how much.
        delta: u64,
        /// Whether a reply is wanted.
        reply: Reply,
    },
    /// `touch`.
    Touch {
        /// The key.
        key: &'a [u8],
        /// The item's new end.
        exptime: Exptime,
        /// Whether a reply is wanted.
        reply: Reply,
    },
    /// `mg`.
    MetaGet(Meta<'a>),
    /// `ms`: the item, and the flags that shape reply and effect.
    MetaSet(Put<'a>, MetaFlags<'a>),
    /// `md`.
    MetaDelete(Meta<'a>),
    /// `ma`, with its direction.
    MetaArithmetic(Meta<'a>, Direction),
    /// `me`.
    MetaDebug(Cow<'a, [u8]>),
    /// An item over the size limit; its data is swallowed.
    TooLarge {
        /// Its key.
        key: Cow<'a, [u8]>,
        /// What becomes of the item that is there.
        older: Older,
        /// Whether a reply is wanted.
        reply: Reply,
    },
    /// `flush_all`.
    Flush {
        /// When.
        delay: Exptime,
        /// Whether a reply is wanted.
        reply: Reply,
    },
    /// `lru_crawler metadump` and its kin: all items, in lines of this form.
    Dump(DumpForm),
    /// `stats`.
    Stats(Group),
    /// `stats reset`.
    ResetStats,
    /// `user pass`, the data of the `set` that a client begins with where users must say who they are.
    Login(&'a [u8]),
    /// What is answered with a line that is always the same: `version`, `mn`, mistakes.
    Say(&'static str),
    /// What is answered with nothing.
    Nothing,
}

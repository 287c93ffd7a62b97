//! The requests of clients.

use std::borrow::Cow;

/// Whether the client waits for a reply: `noreply`, and `q` of the meta commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The client waits.
    Wanted,
    /// The client waits only for an error (meta commands) or not at all (the other commands).
    Quiet,
}

/// The end of an item as clients say it: 0: never; up to 30 days: seconds from now; greater: Unix time; negative:
/// already expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exptime(pub i32);

/// The condition of a store, and its effect on the item that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Whether there is an item of the key or not.
    Set,
    /// If there is no item of the key.
    Add,
    /// If there is an item of the key.
    Replace,
    /// Behind the value that is there.
    Append,
    /// Before the value that is there.
    Prepend,
    /// If the item that is there has the number asked for.
    Cas,
}

/// An item to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put<'a> {
    /// The condition of the store.
    pub mode: Mode,
    /// Its key.
    pub key: Cow<'a, [u8]>,
    /// The client's own bits.
    pub flags: u32,
    /// Its end.
    pub exptime: Exptime,
    /// The number that the item there must have; 0: any, except with [`Mode::Cas`].
    pub cas: u64,
    /// Its value.
    pub data: &'a [u8],
    /// Whether a reply is wanted.
    pub reply: Reply,
}

/// Whether a number is counted up (`incr`) or down (`decr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Up; wraps around after 64 bits.
    Up,
    /// Down, but not below 0.
    Down,
}

/// The form in which a key was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyForm {
    /// Raw.
    #[default]
    Text,
    /// In base64, flag `b`.
    Binary,
}

/// One flag of a meta command, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag<'a> {
    /// Its letter.
    pub letter: u8,
    /// The bytes behind the letter.
    pub token: &'a [u8],
}

/// The flags of a meta command, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetaFlags<'a> {
    /// All of them as they were written, with blanks between.
    pub text: &'a [u8],
    /// `b`.
    pub key_form: KeyForm,
    /// `v`.
    pub value: bool,
    /// `u`: the read is not noted.
    pub unnoticed: bool,
    /// `q`.
    pub quiet: bool,
    /// `I`.
    pub invalidate: bool,
    /// `N`: a missing item is created, with this exptime.
    pub vivify: Option<Exptime>,
    /// `T`.
    pub exptime: Option<Exptime>,
    /// `R`: an item that expires earlier than this is to be renewed.
    pub recache: Option<Exptime>,
    /// `C`.
    pub cas: Option<u64>,
    /// `E`: the number that a changed item gets. `E0` chooses none.
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

    /// The same flags with another `text`.
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

    /// Whether a reply is wanted, by the flag `q`.
    pub fn reply(&self) -> Reply {
        if self.quiet { Reply::Quiet } else { Reply::Wanted }
    }
}

impl Put<'_> {
    /// The same item with another key and another value.
    fn with<'b>(&self, key: &'b [u8], data: &'b [u8]) -> Put<'b> {
        Put {
            mode: self.mode,
            key: Cow::Borrowed(key),
            flags: self.flags,
            exptime: self.exptime,
            cas: self.cas,
            data,
            reply: self.reply,
        }
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

impl Meta<'_> {
    /// The same command with other texts.
    fn with<'b>(&self, texts: Texts<'b>) -> Meta<'b> {
        Meta { key: Cow::Borrowed(texts.key), flags: self.flags.with_text(texts.flags) }
    }
}

/// Whether the reply contains the items' numbers, as with `gets` and `gats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithCas {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// The fate of the item that is there when a new one is refused for its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTooLarge {
    /// It is removed, so that no client takes it for the new one.
    DropOld,
    /// It stays.
    KeepOld,
}

/// The form of a list of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpForm {
    /// Each item's metadata: `metadump`.
    Metadata,
    /// A request that reads the item, for each: `mgdump`.
    Requests,
}

/// A group of statistics.
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
    /// `stats granary`: figures of Granary's cache.
    Granary,
    /// `stats conns`: the connections.
    Connections,
    /// Groups that are always empty here.
    Empty,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `get`, `gets`.
    Get {
        /// The keys as they were written, with blanks between.
        keys: &'a [u8],
        /// `gets`.
        with_cas: WithCas,
    },
    /// `gat`, `gats`: like `get`, and the items get a new exptime.
    Gat {
        /// The keys as they were written, with blanks between.
        keys: &'a [u8],
        /// `gats`.
        with_cas: WithCas,
        /// The items' new exptime.
        exptime: Exptime,
    },
    /// `set`, `add`, `replace`, `append`, `prepend`, `cas`.
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
        /// Whether to count up or down.
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
        /// The item's new exptime.
        exptime: Exptime,
        /// Whether a reply is wanted.
        reply: Reply,
    },
    /// `mg`.
    MetaGet(Meta<'a>),
    /// `ms`: the item, and the flags that determine the reply and the effect.
    MetaSet(Put<'a>, MetaFlags<'a>),
    /// `md`.
    MetaDelete(Meta<'a>),
    /// `ma`, with its direction.
    MetaArithmetic(Meta<'a>, Direction),
    /// `me`.
    MetaDebug(Cow<'a, [u8]>),
    /// An item over the size limit; its data is skipped.
    TooLarge {
        /// Its key.
        key: Cow<'a, [u8]>,
        /// The fate of the item that is there.
        older: OnTooLarge,
        /// Whether a reply is wanted.
        reply: Reply,
    },
    /// `flush_all`.
    Flush {
        /// The delay: up to 0 at once, otherwise like an item's exptime; `None`: it is no number.
        delay: Option<Exptime>,
        /// Whether a reply is wanted.
        reply: Reply,
    },
    /// `lru_crawler metadump` and `mgdump`: a list of all items, in lines of this form.
    Dump(DumpForm),
    /// `stats`.
    Stats(Group),
    /// `stats reset`.
    ResetStats,
    /// `user password`, the data of the `set` with which a client logs in where users are configured.
    Login(&'a [u8]),
    /// A request that is answered with a fixed line: `version`, `mn`, errors.
    Say(&'static str),
    /// A request that gets no reply.
    Nothing,
}

/// The texts of a request; empty ones where it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Texts<'a> {
    /// The key, decoded, or the keys as they were written.
    pub key: &'a [u8],
    /// The flags of a meta command as they were written.
    pub flags: &'a [u8],
    /// The data.
    pub data: &'a [u8],
}

impl<'a> Texts<'a> {
    fn of_key(key: &'a [u8]) -> Self {
        Self { key, flags: &[], data: &[] }
    }
}

impl Request<'_> {
    /// The texts of the request.
    pub fn texts(&self) -> Texts<'_> {
        match self {
            Self::Get { keys, .. } | Self::Gat { keys, .. } => Texts::of_key(keys),
            Self::Delete { key, .. } | Self::Arithmetic { key, .. } | Self::Touch { key, .. } => {
                Texts::of_key(key)
            }
            Self::MetaDebug(key) | Self::TooLarge { key, .. } => Texts::of_key(key),
            Self::Put(put) => Texts { key: &put.key, flags: &[], data: put.data },
            Self::MetaSet(put, flags) => Texts { key: &put.key, flags: flags.text, data: put.data },
            Self::MetaGet(meta) | Self::MetaDelete(meta) | Self::MetaArithmetic(meta, _) => {
                Texts { key: &meta.key, flags: meta.flags.text, data: &[] }
            }
            Self::Login(data) => Texts { data, ..Texts::default() },
            Self::Flush { .. }
            | Self::Dump(_)
            | Self::Stats(_)
            | Self::ResetStats
            | Self::Say(_)
            | Self::Nothing => Texts::default(),
        }
    }

    /// The same request with other texts.
    pub fn with_texts<'b>(&self, texts: Texts<'b>) -> Request<'b> {
        let Texts { key, flags, data } = texts;
        match self {
            Self::Get { with_cas, .. } => Request::Get { keys: key, with_cas: *with_cas },
            Self::Gat { with_cas, exptime, .. } => {
                Request::Gat { keys: key, with_cas: *with_cas, exptime: *exptime }
            }
            Self::Put(put) => Request::Put(put.with(key, data)),
            Self::Delete { reply, .. } => Request::Delete { key, reply: *reply },
            Self::Arithmetic { direction, delta, reply, .. } => {
                Request::Arithmetic { key, direction: *direction, delta: *delta, reply: *reply }
            }
            Self::Touch { exptime, reply, .. } => Request::Touch { key, exptime: *exptime, reply: *reply },
            Self::MetaGet(meta) => Request::MetaGet(meta.with(texts)),
            Self::MetaSet(put, meta_flags) => {
                Request::MetaSet(put.with(key, data), meta_flags.with_text(flags))
            }
            Self::MetaDelete(meta) => Request::MetaDelete(meta.with(texts)),
            Self::MetaArithmetic(meta, direction) => Request::MetaArithmetic(meta.with(texts), *direction),
            Self::MetaDebug(_) => Request::MetaDebug(Cow::Borrowed(key)),
            Self::TooLarge { older, reply, .. } => {
                Request::TooLarge { key: Cow::Borrowed(key), older: *older, reply: *reply }
            }
            Self::Flush { delay, reply } => Request::Flush { delay: *delay, reply: *reply },
            Self::Dump(form) => Request::Dump(*form),
            Self::Stats(group) => Request::Stats(*group),
            Self::ResetStats => Request::ResetStats,
            Self::Login(_) => Request::Login(data),
            Self::Say(line) => Request::Say(line),
            Self::Nothing => Request::Nothing,
        }
    }
}

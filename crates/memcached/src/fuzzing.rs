//! Conversations of arbitrary bytes: each is refused or answered, none causes a panic or exceeds a bound; and how the
//! bytes are cut on their way makes no difference to the replies. Called by the fuzz target and, with a fixed seed, by
//! the tests.

use crate::engine::{Engine, ServerState, Settings};
use crate::limits::{GET_LINE_BYTES_MAX, OUTPUT_BYTES_MAX};
use crate::protocol::Ending;
use crate::store::{Store, StoreOptions, testing};
use std::path::Path;
use std::sync::Arc;

/// Item size limit of these conversations: small, so that refusals happen.
const ITEM_BYTES_MAX: usize = 4096;

/// The current second; its value does not matter.
const NOW: u32 = 2_000_000_000;

/// The engine that conversations are held with.
pub struct Stage {
    engine: Engine,
}

impl Stage {
    /// A stage with an empty store in RAM; its file of numbers lies in `folder`.
    pub fn new(folder: &Path) -> Self {
        let mut options = StoreOptions::new(folder, 64 << 20, 0);
        options.item_bytes_max = ITEM_BYTES_MAX;
        let store = Store::open(&options).expect("a store in RAM opens");
        let settings = Settings { threads: 1, item_bytes_max: ITEM_BYTES_MAX, ..Settings::default() };
        Self { engine: Engine::new(Arc::new(ServerState::new(store, None, settings)), 0) }
    }

    /// Sends `data` in pieces of `piece` bytes to an empty store; returns all replies.
    fn say(&mut self, data: &[u8], piece: usize) -> (Vec<u8>, Option<Ending>) {
        testing::forget_everything(&self.engine.shared().store);
        let mut session = self.engine.shared().session(0);
        let mut replies = Vec::new();
        for piece in data.chunks(piece.max(1)) {
            if session.ending().is_some() {
                break;
            }
            session.receive(piece);
            loop {
                let mut sessions = [session];
                self.engine.turn(&mut sessions, NOW);
                [session] = sessions;
                let len = session.replies().len();
                assert!(len <= 2 * OUTPUT_BYTES_MAX + GET_LINE_BYTES_MAX, "{len} bytes of replies wait");
                replies.extend_from_slice(session.replies());
                session.sent(len);
                if !session.may_step() {
                    break;
                }
            }
            session.tidy();
        }
        (replies, session.ending())
    }
}

/// Holds a conversation, sent at once and in pieces, and compares the replies.
pub fn conversation(stage: &mut Stage, data: &[u8]) {
    // The replies of `stats`, and those to lines that are too long, depend on how the bytes arrive.
    if data.windows(5).any(|five| five == b"stats") || data.len() > 2000 {
        stage.say(data, 7);
        return;
    }
    let at_once = stage.say(data, data.len());
    for piece in [1, 13] {
        let in_pieces = stage.say(data, piece);
        assert_eq!(text(&in_pieces.0), text(&at_once.0), "in pieces of {piece}");
        assert_eq!(in_pieces.1, at_once.1);
    }
}

fn text(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

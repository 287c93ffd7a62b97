//! One function a decoder: any bytes are refused or decoded, never a panic, and never more memory than is bounded.
//! Called by the fuzz targets and, with a fixed seed, by the tests.

use crate::export::Exports;
use crate::limits::{
    HANDSHAKE_OUTPUT_BYTES_SOFT, LARGE_BUFFER_BYTES_MAX, PAYLOAD_BYTES_MAX, STRING_BYTES_MAX,
};
use crate::memory::MemoryExport;
use crate::protocol::{Budget, Conversation, Ending, Need, TlsPolicy};
use crate::{Export, SingleExport};
use std::sync::Arc;

pub use crate::protocol::fuzzing::{options, request};

/// The export of the conversations. It is small, so that requests beyond the end happen.
fn exports() -> Arc<dyn Exports> {
    let disk: Arc<dyn Export> = Arc::new(MemoryExport::new("disk", 300_000));
    Arc::new(SingleExport(disk))
}

/// Returns the answers to a client that sends `data` in pieces of `piece` bytes, and why it ends. The client takes its
/// answers after each `taking` pieces.
pub fn say(data: &[u8], piece: usize, taking: usize, policy: TlsPolicy) -> (Vec<u8>, Option<Ending>) {
    let budget = Arc::new(Budget::new(LARGE_BUFFER_BYTES_MAX));
    let mut conversation = Conversation::new(exports(), policy, budget);
    let (mut answers, mut rest, mut turn) = (Vec::new(), data, 0);
    loop {
        let need = conversation.advance();
        turn += 1;
        let bound = match conversation.is_transmitting() {
            true => 2 * PAYLOAD_BYTES_MAX as usize,
            false => HANDSHAKE_OUTPUT_BYTES_SOFT + 4 * STRING_BYTES_MAX,
        };
        assert!(conversation.pending().len() <= bound, "{} bytes wait", conversation.pending().len());
        let is_waiting = matches!(need, Need::Room | Need::Nothing(_) | Need::StartTls) || rest.is_empty();
        if is_waiting || turn % taking == 0 {
            let len = conversation.pending().len();
            answers.extend_from_slice(conversation.pending());
            conversation.sent(len);
            conversation.tidy();
        }
        match need {
            Need::Nothing(ending) => return (answers, Some(ending)),
            // The rest would be TLS.
            Need::StartTls => return (answers, None),
            Need::Memory => unreachable!("one conversation has all the memory"),
            Need::Room | Need::AnotherCall => {}
            Need::Input if rest.is_empty() => return (answers, None),
            Need::Input => {
                let space = conversation.space();
                let len = rest.len().min(piece).min(space.len());
                assert!(len > 0, "there is room for what is needed");
                space[..len].copy_from_slice(&rest[..len]);
                conversation.arrived(len);
                rest = &rest[len..];
            }
        }
    }
}

/// A conversation: how its bytes are cut on their way makes no difference to the answers.
pub fn conversation(data: &[u8]) {
    for policy in [TlsPolicy::Off, TlsPolicy::Optional, TlsPolicy::Required] {
        let at_once = say(data, data.len().max(1), 1, policy);
        let pieces = if data.len() < 2000 { [1, 13] } else { [509, 4093] };
        for (piece, taking) in [(pieces[0], 1), (pieces[1], 5)] {
            let in_pieces = say(data, piece, taking, policy);
            // Bytes before TLS are noticed only if they arrive together with STARTTLS.
            let is_same = at_once == in_pieces
                || at_once.1 == Some(Ending::Violation("bytes were sent before TLS had begun"));
            assert!(is_same, "in pieces of {piece}: {:?}, not {:?}", in_pieces.1, at_once.1);
        }
    }
}

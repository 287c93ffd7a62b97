//! A conversation within the process.

use super::bytes;
use granary_nbd::limits::LARGE_BUFFER_BYTES_MAX;
use granary_nbd::protocol::{Budget, Conversation, Ending, Need};
use granary_nbd::{Export, Exports, SingleExport, TlsPolicy};
use std::sync::Arc;

pub struct Spoken(pub Conversation);

impl Spoken {
    pub fn new(export: Arc<dyn Export>, policy: TlsPolicy) -> Self {
        let budget = Arc::new(Budget::new(LARGE_BUFFER_BYTES_MAX));
        Self::with(Arc::new(SingleExport(export)), policy, budget)
    }

    /// A conversation that shares a memory budget.
    pub fn with(exports: Arc<dyn Exports>, policy: TlsPolicy, budget: Arc<Budget>) -> Self {
        let mut spoken = Self(Conversation::new(exports, policy, budget));
        assert_eq!(spoken.hear(), bytes::GREETING);
        spoken
    }

    /// A conversation in transmission, with or without structured replies.
    pub fn transmitting(export: Arc<dyn Export>, structured: bool) -> Self {
        Self::new(Arc::clone(&export), TlsPolicy::Off).transmit(&export.name(), structured)
    }

    /// A conversation in transmission, with simple replies, that shares a memory budget.
    pub fn sharing(export: Arc<dyn Export>, budget: &Arc<Budget>) -> Self {
        let exports = Arc::new(SingleExport(Arc::clone(&export)));
        Self::with(exports, TlsPolicy::Off, Arc::clone(budget)).transmit(&export.name(), false)
    }

    fn transmit(mut self, name: &str, structured: bool) -> Self {
        let (_, need) = self.say(&bytes::handshake(name, structured));
        assert_eq!(need, Need::Input);
        assert!(self.0.is_transmitting());
        self
    }

    /// Takes the pending output.
    pub fn hear(&mut self) -> Vec<u8> {
        let heard = self.0.pending().to_owned();
        self.0.sent(heard.len());
        heard
    }

    /// Sends `said` and returns the immediate answers.
    pub fn say(&mut self, mut said: &[u8]) -> (Vec<u8>, Need) {
        let mut heard = Vec::new();
        loop {
            let need = self.0.advance();
            heard.extend(self.hear());
            match need {
                Need::Input if !said.is_empty() => {
                    let space = self.0.space();
                    let len = space.len().min(said.len());
                    space[..len].copy_from_slice(&said[..len]);
                    self.0.arrived(len);
                    said = &said[len..];
                }
                Need::Room | Need::AnotherCall => {}
                need => return (heard, need),
            }
        }
    }

    /// Sends `said`, which must not end the conversation.
    pub fn ask(&mut self, said: &[u8]) -> Vec<u8> {
        let (heard, need) = self.say(said);
        assert_eq!(need, Need::Input);
        heard
    }

    /// Sends `said`, which must end the conversation.
    pub fn last(&mut self, said: &[u8]) -> (Vec<u8>, Ending) {
        let (heard, need) = self.say(said);
        let Need::Nothing(ending) = need else { panic!("it goes on: {need:?}") };
        (heard, ending)
    }
}

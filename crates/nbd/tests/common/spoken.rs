//! A conversation that is held in process.

use super::bytes;
use granary_nbd::limits::LARGE_BUFFER_BYTES_MAX;
use granary_nbd::protocol::{Budget, Conversation, Ending, Need};
use granary_nbd::{Export, SingleExport, TlsPolicy};
use std::sync::Arc;

pub struct Spoken(pub Conversation);

impl Spoken {
    pub fn new(export: Arc<dyn Export>, policy: TlsPolicy) -> Self {
        let budget = Arc::new(Budget::new(LARGE_BUFFER_BYTES_MAX));
        let mut spoken = Self(Conversation::new(Arc::new(SingleExport(export)), policy, budget));
        assert_eq!(spoken.hear(), bytes::GREETING);
        spoken
    }

    /// In transmission, with structured replies or without.
    pub fn transmitting(export: Arc<dyn Export>, structured: bool) -> Self {
        let name = export.name();
        let mut spoken = Self::new(export, TlsPolicy::Off);
        let (_, need) = spoken.say(&bytes::handshake(&name, structured));
        assert_eq!(need, Need::Input);
        assert!(spoken.0.is_transmitting());
        spoken
    }

    /// Takes what is pending.
    pub fn hear(&mut self) -> Vec<u8> {
        let heard = self.0.pending().to_owned();
        self.0.sent(heard.len());
        heard
    }

    /// Says this and hears the answers that come at once.
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
                Need::Room => {}
                need => return (heard, need),
            }
        }
    }

    /// Says this, which is fine.
    pub fn ask(&mut self, said: &[u8]) -> Vec<u8> {
        let (heard, need) = self.say(said);
        assert_eq!(need, Need::Input);
        heard
    }

    /// Says this, which ends the conversation.
    pub fn last(&mut self, said: &[u8]) -> (Vec<u8>, Ending) {
        let (heard, need) = self.say(said);
        let Need::Nothing(ending) = need else { panic!("it goes on: {need:?}") };
        (heard, ending)
    }
}

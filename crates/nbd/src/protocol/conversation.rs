//! One connection, from the first byte to the last.

use super::budget::{Budget, Lease};
use super::buffers::{Input, Output};
use super::handshake::{Handshake, HandshakeStep};
use super::transmission::{Pause, Transmission};
use super::{Ending, TlsPolicy, wire};
use crate::export::Exports;
use crate::limits::BUFFER_BYTES;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Rounds after which memory is given back that none of them needed.
const ROUNDS_LOOKED_BACK: u32 = 64;

/// A connection without its socket.
///
/// Whoever drives it, in turns: puts bytes that arrived into [`space`](Self::space), calls
/// [`advance`](Self::advance), sends what is [pending](Self::pending), does what `advance` [needs](Need), and looks at
/// the session's [event](Self::event).
pub struct Conversation {
    phase: Phase,
    input: Input,
    lease: Lease,
    /// Bytes that the next step needs at once.
    wanted: usize,
    /// Rounds since memory was last given back, and the most that one of them needed.
    rounds: u32,
    bytes_needed: usize,
    is_stopping: bool,
}

enum Phase {
    Handshake(Handshake, Output),
    Transmission(Box<Transmission>),
    Ending(Ending, Rest),
}

/// The work that is left for a client that asks for nothing more.
enum Rest {
    Output(Output),
    Commands(Box<Transmission>),
}

/// The condition under which a conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Bytes from the client; or its session's event, where commands are in flight.
    Input,
    /// That what is pending is sent, and TLS begun.
    StartTls,
    /// That commands are completed or replies are sent; bytes that arrive have to wait.
    Room,
    /// Memory that other connections have; to be looked at in a moment.
    Memory,
    /// Another turn, after whoever drives it has looked at what else there is: much was done in this one.
    AnotherCall,
    /// That commands in flight are completed and what is pending is sent; then it is over.
    Nothing(Ending),
}

impl Conversation {
    /// Begins a conversation.
    pub fn new(exports: Arc<dyn Exports>, policy: TlsPolicy, budget: Arc<Budget>) -> Self {
        let mut output = Output::new();
        let handshake = Handshake::new(exports, policy, &mut output);
        Self {
            phase: Phase::Handshake(handshake, output),
            input: Input::new(),
            lease: Lease::new(budget),
            wanted: 1,
            rounds: 0,
            bytes_needed: 0,
            is_stopping: false,
        }
    }

    /// Returns room for bytes that arrive; none while the conversation needs something else.
    pub fn space(&mut self) -> &mut [u8] {
        self.input.space(self.wanted)
    }

    /// Says that the first `len` bytes of the [space](Self::space) were filled.
    pub fn arrived(&mut self, len: usize) {
        self.input.arrived(len);
    }

    /// Whether a request, or an option, has arrived in part.
    pub fn is_partial(&self) -> bool {
        let awaits_payload = self.transmission().is_some_and(Transmission::awaits_payload);
        awaits_payload || !self.input.filled().is_empty()
    }

    /// Whether it has memory that other connections may wait for.
    pub fn holds_memory(&self) -> bool {
        !self.lease.is_empty()
    }

    /// Whether an export was chosen.
    pub fn is_transmitting(&self) -> bool {
        !matches!(self.phase, Phase::Handshake(..))
    }

    /// Returns what is to be sent.
    pub fn pending(&self) -> &[u8] {
        self.output().pending()
    }

    /// Says that the first `len` bytes of what is [pending](Self::pending) were sent.
    pub fn sent(&mut self, len: usize) {
        self.output_mut().sent(len);
    }

    /// Returns the number of commands in flight.
    pub fn in_flight(&self) -> usize {
        self.transmission().map_or(0, |transmission| transmission.completions.in_flight())
    }

    /// Whether part of a long WRITE is carried out, and the rest of it is still to come.
    pub fn is_within_write(&self) -> bool {
        self.transmission().is_some_and(Transmission::is_within_write)
    }

    /// Returns what is readable when a command in flight may have been completed.
    pub fn event(&self) -> Option<BorrowedFd<'_>> {
        self.transmission()?.session().event()
    }

    /// TLS has begun: later bytes come through it.
    pub fn encrypted(&mut self) {
        if let Phase::Handshake(handshake, _) = &mut self.phase {
            handshake.encrypted();
        }
    }

    /// From now on options and commands are refused; what was begun is completed.
    pub fn stop(&mut self) {
        self.is_stopping = true;
        match &mut self.phase {
            Phase::Handshake(handshake, _) => handshake.stop(),
            Phase::Transmission(transmission) => transmission.stop(),
            Phase::Ending(..) => {}
        }
    }

    /// The client may come back on another connection, and has not said goodbye; what it sent last may not have arrived
    /// here yet. What waits is given up.
    pub fn client_has_gone(&mut self) {
        if let Phase::Transmission(transmission) | Phase::Ending(_, Rest::Commands(transmission)) =
            &mut self.phase
        {
            transmission.client_has_gone();
        }
    }

    /// Whether the client has said goodbye in what has arrived, or in bytes that come `behind` it.
    pub fn has_disconnect(&self, behind: &[u8]) -> bool {
        self.transmission().is_some_and(|transmission| transmission.has_disconnect(&self.input, behind))
    }

    /// The client sends no more.
    pub fn hung_up(&mut self) {
        self.client_has_gone();
        if !matches!(self.phase, Phase::Ending(..)) {
            self.end(Ending::Goodbye);
        }
    }

    /// Answers what has arrived and completes what is ready.
    pub fn advance(&mut self) -> Need {
        let need = self.advance_phase();
        self.bytes_needed = self.bytes_needed.max(self.bytes_expected());
        need
    }

    fn advance_phase(&mut self) -> Need {
        if let Phase::Handshake(handshake, output) = &mut self.phase {
            match handshake.advance(&mut self.input, output) {
                HandshakeStep::Waiting => {
                    self.wanted = wire::OPTION_HEADER_BYTES + crate::limits::OPTION_BYTES_MAX;
                    return Need::Input;
                }
                HandshakeStep::Room => return Need::Room,
                HandshakeStep::StartTls => return Need::StartTls,
                HandshakeStep::Ended(ending) => self.end(ending),
                HandshakeStep::Transmission(target, session) => {
                    let output = std::mem::replace(output, Output::new());
                    let mut transmission = Transmission::new(target, session, output);
                    if self.is_stopping {
                        transmission.stop();
                    }
                    self.phase = Phase::Transmission(Box::new(transmission));
                }
            }
        }
        match &mut self.phase {
            Phase::Handshake(..) => unreachable!("it is over, or was returned from"),
            Phase::Transmission(transmission) => match transmission.advance(&mut self.input, &mut self.lease)
            {
                Pause::Input(wanted) => {
                    self.wanted = wanted;
                    Need::Input
                }
                Pause::Room => Need::Room,
                Pause::Memory => Need::Memory,
                Pause::AnotherCall => Need::AnotherCall,
                Pause::Ended(ending) => {
                    if ending != Ending::Goodbye {
                        transmission.client_has_gone();
                    }
                    self.end(ending);
                    Need::Nothing(ending)
                }
            },
            Phase::Ending(ending, rest) => {
                if let Rest::Commands(transmission) = rest {
                    transmission.poll();
                }
                Need::Nothing(*ending)
            }
        }
    }

    /// Gives back memory that large requests took, as far as none of the last rounds needed it.
    pub fn tidy(&mut self) {
        if self.output().capacity() <= BUFFER_BYTES && self.lease.is_empty() {
            return;
        }
        self.rounds += 1;
        if self.rounds >= ROUNDS_LOOKED_BACK {
            self.shrink(self.bytes_needed);
        }
    }

    /// Gives back memory that large requests took, as far as nothing that is under way needs it.
    pub fn give_back(&mut self) {
        self.shrink(self.bytes_expected());
    }

    fn shrink(&mut self, bytes: usize) {
        (self.rounds, self.bytes_needed) = (0, 0);
        self.output_mut().shrink(bytes);
        let needed = self.transmission().map_or(0, Transmission::memory_in_use);
        self.lease.shrink(needed.max(bytes.saturating_sub(BUFFER_BYTES)));
    }

    fn bytes_expected(&self) -> usize {
        match self.transmission() {
            Some(transmission) => transmission.bytes_expected(None),
            None => self.output().pending().len(),
        }
    }

    fn end(&mut self, ending: Ending) {
        let over = Phase::Ending(ending, Rest::Output(Output::new()));
        let rest = match std::mem::replace(&mut self.phase, over) {
            Phase::Handshake(_, output) => Rest::Output(output),
            Phase::Transmission(transmission) => Rest::Commands(transmission),
            Phase::Ending(_, rest) => rest,
        };
        self.phase = Phase::Ending(ending, rest);
    }

    fn transmission(&self) -> Option<&Transmission> {
        match &self.phase {
            Phase::Transmission(transmission) | Phase::Ending(_, Rest::Commands(transmission)) => {
                Some(transmission)
            }
            _ => None,
        }
    }

    fn output(&self) -> &Output {
        match &self.phase {
            Phase::Handshake(_, output) | Phase::Ending(_, Rest::Output(output)) => output,
            Phase::Transmission(transmission) | Phase::Ending(_, Rest::Commands(transmission)) => {
                &transmission.completions.output
            }
        }
    }

    fn output_mut(&mut self) -> &mut Output {
        match &mut self.phase {
            Phase::Handshake(_, output) | Phase::Ending(_, Rest::Output(output)) => output,
            Phase::Transmission(transmission) | Phase::Ending(_, Rest::Commands(transmission)) => {
                &mut transmission.completions.output
            }
        }
    }
}

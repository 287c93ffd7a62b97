//! Fixed newstyle negotiation.

use super::buffers::{Input, Output};
use super::options::{InfoRequest, MetaRequest, OptionError, OptionRequest};
use super::target::Target;
use super::{Ending, TlsPolicy, wire};
use crate::export::{Export, Exports, Session};
use crate::limits::{
    HANDSHAKE_OUTPUT_BYTES_SOFT, OPTION_BYTES_MAX, OPTIONS_MAX, PAYLOAD_BYTES_MAX, STRING_BYTES_MAX,
};
use std::sync::Arc;

/// The id of `base:allocation` in answers to BLOCK_STATUS.
pub(super) const ALLOCATION_CONTEXT: u32 = 1;

/// The result of handling the arrived bytes.
pub(super) enum HandshakeStep {
    /// More bytes are needed.
    Waiting,
    /// Gathered replies must be sent before the next option is answered.
    Room,
    /// TLS begins with the next byte, once the answer is sent.
    StartTls,
    /// Transmission begins with the next byte.
    Transmission(Target, Box<dyn Session>),
    /// The connection ends once the answers are sent.
    Ended(Ending),
}

pub(super) struct Handshake {
    exports: Arc<dyn Exports>,
    policy: TlsPolicy,
    is_encrypted: bool,
    /// STARTTLS was granted: no byte is handled before TLS has begun.
    awaits_tls: bool,
    /// The client's flags, its first message.
    client_flags: Option<u32>,
    options: u32,
    /// (option, bytes left to skip) of an option whose data is too long to be kept.
    skipped: Option<(u32, u32)>,
    /// The index of the export at which the answer to LIST goes on.
    listing: Option<usize>,
    structured: bool,
    /// The export for which `base:allocation` is selected.
    allocation: Option<String>,
    is_stopping: bool,
}

impl Handshake {
    pub fn new(exports: Arc<dyn Exports>, policy: TlsPolicy, output: &mut Output) -> Self {
        output.put(&wire::INIT_MAGIC.to_be_bytes());
        output.put(&wire::OPTION_MAGIC.to_be_bytes());
        output.put(&((wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES) as u16).to_be_bytes());
        Self {
            exports,
            policy,
            is_encrypted: false,
            awaits_tls: false,
            client_flags: None,
            options: 0,
            skipped: None,
            listing: None,
            structured: false,
            allocation: None,
            is_stopping: false,
        }
    }

    /// Notes that bytes come through TLS from now on. Earlier negotiation is void.
    pub fn encrypted(&mut self) {
        self.is_encrypted = true;
        self.awaits_tls = false;
        self.structured = false;
        self.allocation = None;
    }

    /// Refuses options from now on.
    pub fn stop(&mut self) {
        self.is_stopping = true;
    }

    /// Answers options as far as they have arrived.
    pub fn advance(&mut self, input: &mut Input, output: &mut Output) -> HandshakeStep {
        if self.awaits_tls {
            return HandshakeStep::StartTls;
        }
        if self.client_flags.is_none() {
            let Some(flags) = u32_at(input.filled(), 0) else { return HandshakeStep::Waiting };
            input.consume(4);
            if flags & !(wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES) != 0 {
                return HandshakeStep::Ended(Ending::Violation("unknown client flags"));
            }
            self.client_flags = Some(flags);
        }
        loop {
            if !has_room(output) {
                return HandshakeStep::Room;
            }
            if let Some(next) = self.listing.take() {
                self.list(next, output);
                continue;
            }
            match self.step(input, output) {
                Ok(true) => {}
                Ok(false) => return HandshakeStep::Waiting,
                Err(progress) => return progress,
            }
        }
    }

    /// Answers one option. Returns whether there may be another one, or what ends the negotiation.
    fn step(&mut self, input: &mut Input, output: &mut Output) -> Result<bool, HandshakeStep> {
        if let Some((option, left)) = self.skipped {
            let len = input.filled().len().min(left as usize);
            input.consume(len);
            self.skipped = Some((option, left - len as u32)).filter(|(_, left)| *left > 0);
            if self.skipped.is_some() {
                return Ok(false);
            }
            let request = match OptionRequest::decode(option, &[]) {
                request @ (Ok(OptionRequest::Abort) | Err(OptionError::Unsupported)) => request,
                // Options without data.
                Ok(_) => Err(OptionError::Invalid),
                Err(_) => Err(OptionError::TooBig),
            };
            return self.answer(option, request, output).map(|()| true);
        }
        let filled = input.filled();
        let (Some(option), Some(len)) = (u32_at(filled, 8), u32_at(filled, 12)) else { return Ok(false) };
        if filled[..8] != wire::OPTION_MAGIC.to_be_bytes() {
            return Err(HandshakeStep::Ended(Ending::Violation("an option's magic number is wrong")));
        }
        let total = wire::OPTION_HEADER_BYTES + len as usize;
        if len as usize <= OPTION_BYTES_MAX && filled.len() < total {
            return Ok(false);
        }
        self.options += 1;
        if self.options > OPTIONS_MAX {
            return Err(HandshakeStep::Ended(Ending::Violation("too many options")));
        }
        let flags = self.client_flags.unwrap_or_default();
        if flags & wire::FLAG_FIXED_NEWSTYLE == 0 && option != wire::OPT_EXPORT_NAME {
            return Err(HandshakeStep::Ended(Ending::Violation(
                "an option without fixed newstyle negotiation",
            )));
        }
        if len as usize > OPTION_BYTES_MAX {
            if option == wire::OPT_EXPORT_NAME {
                return Err(HandshakeStep::Ended(Ending::Refused));
            }
            input.consume(wire::OPTION_HEADER_BYTES);
            self.skipped = Some((option, len));
            return Ok(true);
        }
        let request = OptionRequest::decode(option, &filled[wire::OPTION_HEADER_BYTES..total]);
        let result = self.answer(option, request, output);
        input.consume(total);
        match result {
            Ok(()) => Ok(true),
            Err(HandshakeStep::StartTls) if !input.filled().is_empty() => {
                // They were sent before TLS had begun, perhaps injected by an attacker.
                Err(HandshakeStep::Ended(Ending::Violation("bytes were sent before TLS had begun")))
            }
            Err(progress) => Err(progress),
        }
    }

    fn answer(
        &mut self,
        option: u32,
        request: Result<OptionRequest<'_>, OptionError>,
        output: &mut Output,
    ) -> Result<(), HandshakeStep> {
        let is_abort = matches!(request, Ok(OptionRequest::Abort));
        let needs_tls = self.policy == TlsPolicy::Required && !self.is_encrypted;
        if option == wire::OPT_EXPORT_NAME {
            return match request {
                Ok(OptionRequest::ExportName(name)) if !needs_tls && !self.is_stopping => {
                    self.export_name(name, output)
                }
                _ => Err(HandshakeStep::Ended(Ending::Refused)),
            };
        }
        if is_abort {
            reply(output, option, wire::REP_ACK, &[]);
            return Err(HandshakeStep::Ended(Ending::Goodbye));
        }
        if self.is_stopping {
            refuse(output, option, OptionError::Shutdown, "the server is shutting down");
            return Ok(());
        }
        if needs_tls && option != wire::OPT_STARTTLS {
            refuse(output, option, OptionError::TlsRequired, "this server requires TLS");
            return Ok(());
        }
        match request {
            Ok(OptionRequest::ExportName(_) | OptionRequest::Abort) => unreachable!("answered above"),
            Ok(OptionRequest::List) => self.list(0, output),
            Ok(OptionRequest::StartTls) => return self.start_tls(output),
            Ok(OptionRequest::Info(request)) => {
                self.info(option, &request, output);
            }
            Ok(OptionRequest::Go(request)) => return self.go(&request, output),
            Ok(OptionRequest::StructuredReply) => {
                self.structured = true;
                reply(output, option, wire::REP_ACK, &[]);
            }
            Ok(OptionRequest::ListMetaContext(request)) => self.list_meta_context(&request, output),
            Ok(OptionRequest::SetMetaContext(request)) => self.set_meta_context(&request, output),
            Err(error) => {
                // This option replaces the selection even if it fails.
                if option == wire::OPT_SET_META_CONTEXT {
                    self.allocation = None;
                }
                let text = match error {
                    OptionError::Unsupported => "the option is unknown to this server",
                    OptionError::TooBig => {
                        "the option, or a name in it, is too long, or there are too many queries"
                    }
                    _ => "the option's data is malformed",
                };
                refuse(output, option, error, text);
            }
        }
        Ok(())
    }

    fn export_name(&mut self, name: &str, output: &mut Output) -> Result<(), HandshakeStep> {
        let refused = |_| HandshakeStep::Ended(Ending::Refused);
        let export = self.exports.open(name).ok_or(HandshakeStep::Ended(Ending::Refused))?;
        let target = self.target(name, &*export);
        let session = export.session().map_err(refused)?;
        output.put(&target.size.to_be_bytes());
        output.put(&target.flags().to_be_bytes());
        if self.client_flags.unwrap_or_default() & wire::FLAG_NO_ZEROES == 0 {
            output.put(&[0; 124]);
        }
        Err(HandshakeStep::Transmission(target, session))
    }

    fn target(&self, name: &str, export: &dyn Export) -> Target {
        Target::new(export, self.structured, self.allocation.as_deref() == Some(name))
    }

    /// Lists the exports from index `first` on, as far as there is room for replies.
    fn list(&mut self, first: usize, output: &mut Output) {
        let names = self.exports.names();
        for (number, (name, description)) in names.iter().enumerate().skip(first) {
            if !has_room(output) {
                self.listing = Some(number);
                return;
            }
            // Clients cannot request a longer name.
            if name.len() > STRING_BYTES_MAX {
                continue;
            }
            let length = (name.len() as u32).to_be_bytes();
            let parts = [&length, name.as_bytes(), bounded(description).as_bytes()];
            reply(output, wire::OPT_LIST, wire::REP_SERVER, &parts);
        }
        reply(output, wire::OPT_LIST, wire::REP_ACK, &[]);
    }

    fn start_tls(&mut self, output: &mut Output) -> Result<(), HandshakeStep> {
        let option = wire::OPT_STARTTLS;
        if self.is_encrypted {
            refuse(output, option, OptionError::Invalid, "TLS is on already");
            return Ok(());
        }
        if self.policy == TlsPolicy::Off {
            refuse(output, option, OptionError::Policy, "TLS is off on this server");
            return Ok(());
        }
        reply(output, option, wire::REP_ACK, &[]);
        self.awaits_tls = true;
        Err(HandshakeStep::StartTls)
    }

    /// Describes an export, without the final answer. Returns the export if there is one.
    fn info(&self, option: u32, request: &InfoRequest<'_>, output: &mut Output) -> Option<Arc<dyn Export>> {
        let Some(export) = self.exports.open(request.name) else {
            refuse_unknown(output, option, request.name);
            return None;
        };
        let target = self.target(request.name, &*export);
        let mut tell = |info: u16, parts: [&[u8]; 3]| {
            let info = info.to_be_bytes();
            reply(output, option, wire::REP_INFO, &[&info, parts[0], parts[1], parts[2]]);
        };
        tell(wire::INFO_EXPORT, [&target.size.to_be_bytes(), &target.flags().to_be_bytes(), &[]]);
        if request.wants_name {
            tell(wire::INFO_NAME, [bounded(&export.name()).as_bytes(), &[], &[]]);
        }
        if request.wants_description
            && let Some(description) = export.description()
        {
            tell(wire::INFO_DESCRIPTION, [bounded(&description).as_bytes(), &[], &[]]);
        }
        if request.wants_block_size {
            let sizes = [target.minimum_block, target.preferred_block, PAYLOAD_BYTES_MAX];
            let [minimum, preferred, maximum] = sizes.map(u32::to_be_bytes);
            tell(wire::INFO_BLOCK_SIZE, [&minimum, &preferred, &maximum]);
        }
        if option == wire::OPT_INFO {
            reply(output, option, wire::REP_ACK, &[]);
        }
        Some(export)
    }

    fn go(&self, request: &InfoRequest<'_>, output: &mut Output) -> Result<(), HandshakeStep> {
        let Some(export) = self.info(wire::OPT_GO, request, output) else { return Ok(()) };
        let target = self.target(request.name, &*export);
        match export.session() {
            Ok(session) => {
                reply(output, wire::OPT_GO, wire::REP_ACK, &[]);
                Err(HandshakeStep::Transmission(target, session))
            }
            Err(error) => {
                refuse(output, wire::OPT_GO, OptionError::Platform, &error.to_string());
                Ok(())
            }
        }
    }

    fn list_meta_context(&self, request: &MetaRequest<'_>, output: &mut Output) {
        let option = wire::OPT_LIST_META_CONTEXT;
        if self.exports.open(request.name).is_none() {
            refuse_unknown(output, option, request.name);
            return;
        }
        if request.queries == 0 || request.finds_allocation || request.finds_namespace {
            reply(output, option, wire::REP_META_CONTEXT, &[&[0; 4], b"base:allocation"]);
        }
        reply(output, option, wire::REP_ACK, &[]);
    }

    fn set_meta_context(&mut self, request: &MetaRequest<'_>, output: &mut Output) {
        let option = wire::OPT_SET_META_CONTEXT;
        self.allocation = None;
        if !self.structured {
            refuse(output, option, OptionError::Invalid, "structured replies come first");
            return;
        }
        if self.exports.open(request.name).is_none() {
            refuse_unknown(output, option, request.name);
            return;
        }
        if request.finds_allocation {
            self.allocation = Some(request.name.to_owned());
            let id = ALLOCATION_CONTEXT.to_be_bytes();
            reply(output, option, wire::REP_META_CONTEXT, &[&id, b"base:allocation"]);
        }
        reply(output, option, wire::REP_ACK, &[]);
    }
}

/// Whether replies may be gathered.
fn has_room(output: &Output) -> bool {
    output.pending().len() < HANDSHAKE_OUTPUT_BYTES_SOFT
}

/// A string cut to the length that the protocol allows.
fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(STRING_BYTES_MAX)]
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

/// Answers that there is no export of this name.
fn refuse_unknown(output: &mut Output, option: u32, name: &str) {
    let text = match name {
        "" => "there is no default export: name one, as in nbd://HOST/NAME",
        _ => "there is no export of this name",
    };
    refuse(output, option, OptionError::Unknown, text);
}

fn refuse(output: &mut Output, option: u32, error: OptionError, text: &str) {
    reply(output, option, error as u32, &[bounded(text).as_bytes()]);
}

fn reply(output: &mut Output, option: u32, kind: u32, parts: &[&[u8]]) {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    output.put(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
    output.put(&option.to_be_bytes());
    output.put(&kind.to_be_bytes());
    output.put(&(len as u32).to_be_bytes());
    parts.iter().for_each(|part| output.put(part));
}

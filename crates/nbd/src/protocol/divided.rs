//! WRITEs that are begun in parts while they arrive, so that their data is never kept completely.

use super::Errno;
use super::request::Request;
use crate::export::Outcome;
use crate::limits::WRITE_PART_BYTES;

/// Whether a WRITE is begun in parts.
pub(super) fn is_divided(request: &Request) -> bool {
    request.payload() > WRITE_PART_BYTES
}

/// The next part of the rest of a WRITE.
pub(super) fn first_part(rest: &Request) -> Request {
    let within = (rest.offset % u64::from(WRITE_PART_BYTES)) as u32;
    Request { len: rest.len.min(WRITE_PART_BYTES - within), ..*rest }
}

/// Returns the rest of a WRITE behind its first `len` bytes; `None`: there is none.
pub(super) fn behind(rest: &Request, len: u32) -> Option<Request> {
    let left = rest.len - len;
    (left > 0).then(|| Request { offset: rest.offset + u64::from(len), len: left, ..*rest })
}

/// WRITEs that were begun in part and are not answered.
#[derive(Debug, Default)]
pub(super) struct DividedWrites(Vec<Option<DividedWrite>>);

#[derive(Debug)]
struct DividedWrite {
    cookie: u64,
    /// Bytes whose parts are not completed.
    left: u32,
    failed: Option<Errno>,
}

/// The number of such a WRITE, reused once it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WriteNumber(usize);

impl DividedWrites {
    pub fn begin(&mut self, request: &Request) -> WriteNumber {
        let write = DividedWrite { cookie: request.cookie, left: request.len, failed: None };
        let number = self.0.iter().position(Option::is_none).unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        self.0[number] = Some(write);
        WriteNumber(number)
    }

    /// Whether a part has failed; the others do not change the answer then.
    pub fn has_failed(&self, WriteNumber(number): WriteNumber) -> bool {
        self.0[number].as_ref().is_some_and(|write| write.failed.is_some())
    }

    /// Notes the outcome of a part of `len` bytes. After the last part, returns the cookie and the answer.
    pub fn end_part(
        &mut self,
        WriteNumber(number): WriteNumber,
        len: u32,
        outcome: Outcome,
    ) -> Option<(u64, Outcome)> {
        let write = self.0[number].as_mut().expect("its WRITE is not answered before");
        write.left -= len;
        write.failed = write.failed.or(outcome.err());
        let answer = (write.cookie, write.failed.map_or(Ok(()), Err));
        (write.left == 0).then(|| {
            self.0[number] = None;
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::wire;

    const PART: u32 = WRITE_PART_BYTES;

    fn write(offset: u64, len: u32) -> Request {
        Request { flags: 0, kind: wire::CMD_WRITE, cookie: 9, offset, len }
    }

    #[test]
    fn parts_end_at_multiples_of_their_size_and_are_the_whole() {
        let part = u64::from(PART);
        for (offset, len, parts) in [(0, 2 * PART, 2), (1, 2 * PART, 3), (part - 512, PART + 512, 2)] {
            let (mut rest, mut next, mut count) = (Some(write(offset, len)), offset, 0);
            while let Some(left) = rest {
                let first = first_part(&left);
                assert_eq!(first.offset, next);
                next += u64::from(first.len);
                rest = behind(&left, first.len);
                assert!(first.len > 0 && (rest.is_none() || next.is_multiple_of(part)));
                count += 1;
            }
            assert_eq!((next, count), (offset + u64::from(len), parts));
        }
        assert!(is_divided(&write(0, PART + 1)) && !is_divided(&write(7, PART)));
        assert!(!is_divided(&Request { kind: wire::CMD_READ, ..write(0, 2 * PART) }));
    }

    #[test]
    fn the_last_part_answers_with_the_first_error() {
        let mut writes = DividedWrites::default();
        let (one, two) = (writes.begin(&write(0, 30)), writes.begin(&write(0, 20)));
        assert_eq!(writes.end_part(one, 10, Ok(())), None);
        assert_eq!(writes.end_part(two, 20, Ok(())), Some((9, Ok(()))));
        assert_eq!(writes.end_part(one, 10, Err(Errno::NoSpace)), None);
        assert!(writes.has_failed(one));
        assert_eq!(writes.begin(&write(0, 40)), two, "its number is free");
        assert_eq!(writes.end_part(one, 10, Err(Errno::Io)), Some((9, Err(Errno::NoSpace))));
    }
}

//! IP_TRIE: rows whose keys are networks, found by an address.

use super::rows::KeyedRows;
use crate::config::KeyAccess;
use crate::error::{Code, DictError};
use crate::row::{put_varint, text_span};
use crate::types::{ipv4_from_text, ipv4_to_text, ipv6_from_text, ipv6_text};
use std::net::Ipv4Addr;

/// The addresses that begin with the same bits; IPv4 is mapped into IPv6.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Network {
    first: u128,
    bits: u8,
    family: Family,
    /// Place of its row.
    place: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Family {
    V4,
    V6,
}

/// Networks as a line of addresses: all addresses from one start to the next belong to the same row.
pub(super) struct Networks {
    /// The starts, in ascending order.
    starts: Vec<u128>,
    /// The row of the smallest network at each start, or `NOWHERE`.
    places: Vec<u32>,
    count: usize,
}

const NOWHERE: u32 = u32::MAX;

impl Network {
    /// Reads the key of a row: an address, alone or with a prefix length.
    ///
    /// # Errors
    /// `CANNOT_PARSE_INPUT_ASSERTION_FAILED`.
    pub fn of_key(key: &[u8], place: u32) -> Result<Network, DictError> {
        let text = text_span(key, 0).and_then(|(start, end)| std::str::from_utf8(&key[start..end]).ok());
        let text = text.unwrap_or_default();
        Network::of_text(text, place).ok_or_else(|| {
            let message = format!("Can't parse address \"{text}\"");
            DictError::new(Code::CannotParseInputAssertionFailed, message)
        })
    }

    fn of_text(text: &str, place: u32) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let (octets, family, width) = match ipv4_from_text(address) {
            Some(v4) => (Ipv4Addr::from_bits(v4).to_ipv6_mapped().octets(), Family::V4, 32),
            None => (ipv6_from_text(address)?, Family::V6, 128),
        };
        let bits = bits.unwrap_or(width);
        let bits = (bits <= width).then_some(bits + (128 - width))?;
        let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
        Some(Network { first: u128::from_be_bytes(octets) & mask, bits, family, place })
    }

    fn last(self) -> u128 {
        self.first | u128::MAX.checked_shr(self.bits.into()).unwrap_or(0)
    }

    /// The network as ClickHouse shows it: beside IPv6 networks, an IPv4 one is shown as IPv6.
    fn text(self, beside: Family) -> String {
        match beside {
            Family::V4 => format!("{}/{}", ipv4_to_text(self.first as u32), self.bits - 96),
            Family::V6 => format!("{}/{}", ipv6_text(&self.first.to_be_bytes()), self.bits),
        }
    }
}

impl Networks {
    /// Sorts rows by their networks; the networks' texts become the keys, and are also appended to the rows if keys are
    /// attributes, too. Of rows of the same network the first one counts.
    ///
    /// # Errors
    /// `LIMIT_EXCEEDED` if rows become longer than 32 bits can count.
    pub fn of(
        rows: &KeyedRows,
        mut networks: Vec<Network>,
        access: KeyAccess,
    ) -> Result<(KeyedRows, Networks), DictError> {
        networks.sort_unstable_by_key(|network| (network.first, network.bits, network.place));
        let has_v6 = networks.iter().any(|network| network.family == Family::V6);
        networks.dedup_by_key(|network| (network.first, network.bits));
        let beside = if has_v6 { Family::V6 } else { Family::V4 };
        let mut sorted = KeyedRows::default();
        for network in &mut networks {
            let text = network.text(beside);
            let mut key = Vec::with_capacity(1 + text.len());
            put_varint(&mut key, text.len());
            key.extend_from_slice(text.as_bytes());
            let row = rows.row(network.place);
            network.place = sorted.push(&key, |bytes| {
                bytes.extend_from_slice(row);
                if access == KeyAccess::Attribute {
                    bytes.extend_from_slice(&key);
                }
            })?;
        }
        sorted.shrink();
        Ok((sorted, Networks::line(&networks)))
    }

    /// Makes the line of sorted networks.
    fn line(networks: &[Network]) -> Networks {
        let mut line = Networks { starts: vec![0], places: vec![NOWHERE], count: networks.len() };
        // Networks that contain the address, the largest first.
        let mut around: Vec<&Network> = Vec::new();
        for network in networks {
            line.leave(&mut around, |end| end < network.first);
            line.put(network.first, network.place);
            around.push(network);
        }
        line.leave(&mut around, |_| true);
        line.starts.shrink_to_fit();
        line.places.shrink_to_fit();
        line
    }

    /// Leaves the networks for whose end `is_over` holds.
    fn leave(&mut self, around: &mut Vec<&Network>, is_over: impl Fn(u128) -> bool) {
        while let Some(network) = around.pop_if(|network| is_over(network.last())) {
            if let Some(next) = network.last().checked_add(1) {
                self.put(next, around.last().map_or(NOWHERE, |larger| larger.place));
            }
        }
    }

    /// Addresses from `start` on belong to the row at `place`.
    fn put(&mut self, start: u128, place: u32) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.places.pop();
        }
        self.starts.push(start);
        self.places.push(place);
    }

    /// The place of the row for an address, 16 bytes in network byte order.
    pub fn find(&self, key: &[u8]) -> Option<u32> {
        let address = u128::from_be_bytes(key.try_into().ok()?);
        let at = self.starts.partition_point(|start| *start <= address).checked_sub(1)?;
        Some(self.places[at]).filter(|place| *place != NOWHERE)
    }

    pub fn bytes_allocated(&self) -> usize {
        self.starts.capacity() * size_of::<u128>() + self.places.capacity() * size_of::<u32>()
    }

    /// The number of networks, which is also the capacity.
    pub fn filled(&self) -> (usize, usize) {
        (self.count, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        put_varint(&mut key, text.len());
        key.extend_from_slice(text.as_bytes());
        key
    }

    fn held(texts: &[&str]) -> (KeyedRows, Networks) {
        let mut rows = KeyedRows::default();
        let network = |(place, text): (usize, &&str)| {
            let row = |bytes: &mut Vec<u8>| bytes.extend_from_slice(text.as_bytes());
            assert_eq!(rows.push(&key(text), row).unwrap(), place as u32);
            Network::of_key(&key(text), place as u32).unwrap()
        };
        let networks = texts.iter().enumerate().map(network).collect();
        Networks::of(&rows, networks, KeyAccess::Hidden).unwrap()
    }

    fn row<'r>((rows, networks): &'r (KeyedRows, Networks), address: &str) -> &'r str {
        let found = networks.find(&ipv6_from_text(address).unwrap());
        found.map_or("-", |place| std::str::from_utf8(rows.row(place)).unwrap())
    }

    fn keys((rows, _): &(KeyedRows, Networks)) -> Vec<String> {
        let text = |place| String::from_utf8(rows.key(place)[1..].to_vec()).unwrap();
        (0..rows.len() as u32).map(text).collect()
    }

    #[test]
    fn the_smallest_network_counts_and_of_equal_ones_the_first() {
        let v4 =
            held(&["10.1.2.3/16", "10.0.0.0/8", "10.1.255.255", "10.1.0.0/16", "0.0.0.0/1", "255.0.0.0/8"]);
        for (address, network) in [
            ("9.255.255.255", "0.0.0.0/1"),
            ("10.0.0.0", "10.0.0.0/8"),
            ("10.1.0.0", "10.1.2.3/16"),
            ("10.1.255.254", "10.1.2.3/16"),
            ("10.1.255.255", "10.1.255.255"),
            ("10.2.0.0", "10.0.0.0/8"),
            ("127.255.255.255", "0.0.0.0/1"),
            ("128.0.0.0", "-"),
            ("255.255.255.255", "255.0.0.0/8"),
            ("::10.1.0.0", "-"),
            ("::ffff:10.1.0.0", "10.1.2.3/16"),
        ] {
            assert_eq!(row(&v4, address), network, "{address}");
        }
        assert_eq!(keys(&v4), ["0.0.0.0/1", "10.0.0.0/8", "10.1.0.0/16", "10.1.255.255/32", "255.0.0.0/8"]);
    }

    #[test]
    fn networks_of_both_families_are_found_and_shown_as_those_of_ipv6() {
        let both = held(&["1.2.3.0/24", "2a02:6b8::/32", "2a02:6b8:1::1", "::/0", "ffff::/16"]);
        for (address, network) in [
            ("1.2.3.4", "1.2.3.0/24"),
            ("1.2.4.4", "::/0"),
            ("2a02:6b8:1::2", "2a02:6b8::/32"),
            ("2a02:6b8:1::1", "2a02:6b8:1::1"),
            ("2a02:6b9::", "::/0"),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff::/16"),
        ] {
            assert_eq!(row(&both, address), network, "{address}");
        }
        let shown = ["::/0", "::ffff:1.2.3.0/120", "2a02:6b8::/32", "2a02:6b8:1::1/128", "ffff::/16"];
        assert_eq!(keys(&both), shown);
        assert_eq!(row(&held(&[]), "::"), "-");
    }

    #[test]
    fn what_is_no_network() {
        for text in
            ["", "/8", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8", "x", "1.2.3.4/8/8"]
        {
            assert_eq!(Network::of_key(&key(text), 0).unwrap_err().code(), 27, "{text}");
        }
    }
}

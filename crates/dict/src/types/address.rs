//! Addresses of IPv4 and IPv6 to and from ClickHouse's text.

use std::net::{Ipv4Addr, Ipv6Addr};

/// `192.168.0.1` as a number. Octets may have leading zeros.
pub(crate) fn ipv4_from_text(text: &str) -> Option<u32> {
    let mut octets = text.split('.').map(|octet| {
        let sane = (1..=3).contains(&octet.len()) && octet.bytes().all(|byte| byte.is_ascii_digit());
        sane.then(|| octet.parse::<u8>().ok()).flatten()
    });
    let address = [octets.next()??, octets.next()??, octets.next()??, octets.next()??];
    octets.next().is_none().then_some(u32::from_be_bytes(address))
}

/// A number as `192.168.0.1`.
pub(crate) fn ipv4_to_text(address: u32) -> String {
    Ipv4Addr::from_bits(address).to_string()
}

/// `2001:db8::1` in network byte order. An address of IPv4 is mapped.
pub(crate) fn ipv6_from_text(text: &str) -> Option<[u8; 16]> {
    match ipv4_from_text(text) {
        Some(address) => Some(Ipv4Addr::from_bits(address).to_ipv6_mapped().octets()),
        None => text.parse::<Ipv6Addr>().ok().map(|address| address.octets()),
    }
}

/// ClickHouse's text of an address of IPv6, 16 bytes in network byte order: the shortest. After 96 zero bits that are
/// not followed by 16 more, the rest is shown as an address of IPv4.
///
/// # Panics
/// If there are fewer bytes.
pub fn ipv6_text(octets: &[u8]) -> String {
    let octets: [u8; 16] = octets[..16].try_into().expect("an address of IPv6 has 16 bytes");
    let address = Ipv6Addr::from(octets);
    match address.segments() {
        [0, 0, 0, 0, 0, 0, high, _] if high != 0 => {
            format!("::{}", Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]))
        }
        _ => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_goes_there_and_back() {
        for text in ["0.0.0.0", "1.2.3.4", "255.255.255.255", "192.168.0.1"] {
            assert_eq!(ipv4_to_text(ipv4_from_text(text).unwrap()), text);
        }
        assert_eq!(ipv4_from_text("1.2.3.4"), Some(0x0102_0304));
        assert_eq!(ipv4_from_text("001.02.3.4"), Some(0x0102_0304));
        for text in ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.-4", "1..3.4", "0001.2.3.4", "1.2.3.4 "] {
            assert_eq!(ipv4_from_text(text), None, "{text}");
        }
    }

    #[test]
    fn ipv6_is_shown_as_short_as_clickhouse_does() {
        for (text, shown) in [
            ("::", "::"),
            ("::1", "::1"),
            ("2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
            ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
            ("1.2.3.4", "::ffff:1.2.3.4"),
            ("::ffff:0102:0304", "::ffff:1.2.3.4"),
            ("::102:304", "::1.2.3.4"),
            ("::2:0", "::0.2.0.0"),
            ("fe80::1:2", "fe80::1:2"),
        ] {
            let shown_now = ipv6_text(&ipv6_from_text(text).unwrap());
            assert_eq!(shown_now, shown, "{text}");
            assert_eq!(ipv6_from_text(shown), ipv6_from_text(text));
        }
        for text in ["", ":", "1::2::3", "12345::", "fe80::1%eth0", "1.2.3"] {
            assert_eq!(ipv6_from_text(text), None, "{text}");
        }
    }
}

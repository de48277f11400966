//! Which addresses are on the public network, and what every other one is.
//!
//! The classification is pure and closed: an address that no line below calls public is not. IPv6 addresses that carry an IPv4 address
//! inside (mapped, compatible, NAT64, 6to4, Teredo, ISATAP) are a class of their own and never public, because what they reach is decided by a
//! translator we do not see. Whether a class may be reached is the grant's decision (`rules`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use palyra_common::runtime_contract_enum;

runtime_contract_enum! {
    /// What kind of network an address belongs to.
    pub enum AddressClass("egress_address_class") {
        /// Reachable on the internet.
        Public = "public",
        /// This machine.
        Loopback = "loopback",
        /// A private network (RFC 1918, unique local addresses).
        Private = "private",
        /// Addresses between a provider and its customers (RFC 6598).
        Shared = "shared",
        /// The link itself, without a router.
        LinkLocal = "link_local",
        /// The service that hands a cloud machine its credentials.
        Metadata = "metadata",
        /// An IPv6 address with an IPv4 address inside.
        Embedded = "embedded",
        /// Benchmarks between networks (RFC 2544).
        Benchmarking = "benchmarking",
        /// Documentation.
        Documentation = "documentation",
        /// Many receivers.
        Multicast = "multicast",
        /// No address, or "this network".
        Unspecified = "unspecified",
        /// Not assigned, or set aside for protocols.
        Reserved = "reserved",
    }
}

/// Metadata services outside the link-local range. Azure's lies in public space, so no range check would find it.
const METADATA_V4: [Ipv4Addr; 4] = [
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];

/// Metadata services of Amazon, Google and Scaleway over IPv6.
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x0042, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// What kind of network an address belongs to.
#[must_use]
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    if METADATA_V4.contains(&address) {
        return AddressClass::Metadata;
    }
    match address.octets() {
        [0, ..] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::Shared,
        // The container credential services of Amazon live here too.
        [169, 254, 170, 2 | 23] => AddressClass::Metadata,
        [169, 254, ..] => AddressClass::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Documentation,
        [198, 18 | 19, ..] => AddressClass::Benchmarking,
        // Protocol assignments; the old 6to4 relay; AS112 and AMT, which belong to the local network.
        [192, 0, 0, _] | [192, 88, 99, _] | [192, 31, 196, _] | [192, 52, 193, _] | [192, 175, 48, _] => {
            AddressClass::Reserved
        }
        [224..=239, ..] => AddressClass::Multicast,
        [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if METADATA_V6.contains(&address) {
        return AddressClass::Metadata;
    }
    if address.is_unspecified() {
        return AddressClass::Unspecified;
    }
    if address.is_loopback() {
        return AddressClass::Loopback;
    }
    match address.segments() {
        // Compatible, mapped and translated IPv4, both NAT64 prefixes, 6to4, Teredo.
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => AddressClass::Embedded,
        [0x64, 0xff9b, ..] | [0x2002, ..] | [0x2001, 0, ..] => AddressClass::Embedded,
        // ISATAP writes an IPv4 address into the interface part of any prefix.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => AddressClass::Embedded,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        // The site-local range was withdrawn but some networks still route it.
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Documentation,
        [0x2001, 2, 0, ..] => AddressClass::Benchmarking,
        // The rest of the protocol assignments 2001::/23.
        [0x2001, 1..=0x1ff, ..] => AddressClass::Reserved,
        // AS112 and the prefix reserved for the direct delegation service.
        [0x2620, 0x4f, 0x8000, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_address_is_known() {
        use AddressClass as C;
        for (text, class) in [
            ("1.1.1.1", C::Public),
            ("93.184.216.34", C::Public),
            ("172.15.255.255", C::Public),
            ("172.32.0.1", C::Public),
            ("100.63.255.255", C::Public),
            ("100.128.0.1", C::Public),
            ("2606:2800:220:1::1", C::Public),
            ("2a00:1450:4001::1", C::Public),
            ("0.0.0.0", C::Unspecified),
            ("0.1.2.3", C::Unspecified),
            ("127.0.0.1", C::Loopback),
            ("127.255.255.254", C::Loopback),
            ("10.0.0.1", C::Private),
            ("172.16.0.1", C::Private),
            ("172.31.255.255", C::Private),
            ("192.168.1.1", C::Private),
            ("100.64.0.1", C::Shared),
            ("100.127.255.255", C::Shared),
            ("169.254.1.1", C::LinkLocal),
            ("169.254.169.254", C::Metadata),
            ("169.254.170.2", C::Metadata),
            ("100.100.100.200", C::Metadata),
            ("192.0.0.192", C::Metadata),
            ("168.63.129.16", C::Metadata),
            ("192.0.0.1", C::Reserved),
            ("192.88.99.1", C::Reserved),
            ("192.0.2.1", C::Documentation),
            ("198.51.100.1", C::Documentation),
            ("203.0.113.1", C::Documentation),
            ("198.18.0.1", C::Benchmarking),
            ("198.19.255.255", C::Benchmarking),
            ("224.0.0.1", C::Multicast),
            ("239.255.255.255", C::Multicast),
            ("240.0.0.1", C::Reserved),
            ("255.255.255.255", C::Reserved),
            ("::", C::Unspecified),
            ("::1", C::Loopback),
            ("::ffff:127.0.0.1", C::Embedded),
            ("::ffff:8.8.8.8", C::Embedded),
            ("::127.0.0.1", C::Embedded),
            ("::ffff:0:127.0.0.1", C::Embedded),
            ("64:ff9b::7f00:1", C::Embedded),
            ("64:ff9b:1::a00:1", C::Embedded),
            ("2002:7f00:1::1", C::Embedded),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", C::Embedded),
            ("2a00:1450::5efe:7f00:1", C::Embedded),
            ("2a00:1450::200:5efe:a00:1", C::Embedded),
            ("fe80::1", C::LinkLocal),
            ("febf::1", C::LinkLocal),
            ("fc00::1", C::Private),
            ("fd12:3456::1", C::Private),
            ("fec0::1", C::Private),
            ("fd00:ec2::254", C::Metadata),
            ("fd20:ce::254", C::Metadata),
            ("ff02::1", C::Multicast),
            ("2001:db8::1", C::Documentation),
            ("3fff::1", C::Documentation),
            ("2001:2::1", C::Benchmarking),
            ("2001:10::1", C::Reserved),
            ("100::1", C::Reserved),
            ("4000::1", C::Reserved),
            ("5f00::1", C::Reserved),
        ] {
            assert_eq!(classify(text.parse().unwrap()), class, "{text}");
        }
    }

    proptest::proptest! {
        /// What the standard library calls private or local is never public here.
        #[test]
        fn nothing_local_is_public(bits: u32) {
            let address = Ipv4Addr::from(bits);
            if address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
                || address.is_broadcast() || address.is_documentation() || address.is_unspecified()
            {
                proptest::prop_assert_ne!(classify(IpAddr::V4(address)), AddressClass::Public);
            }
            for embedded in [address.to_ipv6_mapped(), address.to_ipv6_compatible()] {
                proptest::prop_assert_ne!(classify(IpAddr::V6(embedded)), AddressClass::Public);
            }
        }
    }
}

//! Ways to get somewhere one may not, each tried for real in a network where every one of them would arrive if it were let through.
//!
//! The rules of the grant are generous on purpose: the addresses of the tricks are often named in a rule, so that only the check a trick is aimed at
//! can stop it. A trick got through when any server anywhere saw a byte of it.

use std::net::{IpAddr, SocketAddr};

use palyra_egress::{EgressGrant, FetchRequest, Intercept, RefusalReason};

use crate::harness::{
    OWN, PUBLIC, Raw, World, client_hello, client_hello_without_name, encrypted_hello, grant, hand_made_hello,
    in_own_network, refusal_of, status_of,
};

/// How a trick is tried.
enum Attempt {
    /// An address, asked for through the client and through the proxy.
    Url(&'static str),
    /// A method and an address.
    Method(&'static str, &'static str),
    /// Bytes to the proxy.
    Bytes(Vec<u8>),
    /// The target of a `CONNECT`.
    Connect(&'static str),
    /// A SOCKS5 host by kind, and a port.
    Socks(u8, Vec<u8>, u16),
    /// A granted name that leads to these addresses.
    Leads(&'static [&'static str]),
    /// The first bytes inside a granted tunnel.
    Inside(Vec<u8>),
    /// Where a granted host redirects to.
    Redirect(&'static str),
}

fn raw(text: &str) -> Attempt {
    Attempt::Bytes(text.as_bytes().to_vec())
}

/// A request to a granted host with these header lines and this body.
fn request(lines: &str, body: &str) -> Attempt {
    raw(&format!("POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\n{lines}\r\n\r\n{body}"))
}

/// A request that a narrow rule allows, but for this header.
fn narrow(line: &str) -> Attempt {
    raw(&format!("GET http://narrow.example/v1/x HTTP/1.1\r\nHost: narrow.example\r\n{line}\r\n\r\n"))
}

fn generous() -> EgressGrant {
    let mut rules = vec![
        "http://api.example",
        "https://api.example",
        "GET http://narrow.example/v1",
        "http://*.pkg.example",
        "http://bad.example",
        "https://bad.example",
        "http://localhost",
        "https://localhost",
    ];
    // Named in a rule, yet not public: the rule alone must not be enough.
    for literal in [
        "http://127.0.0.1",
        "https://127.0.0.1",
        "http://0.0.0.0",
        "http://10.0.0.1",
        "http://169.254.169.254",
        "https://169.254.169.254",
        "http://100.64.0.1",
        "http://192.168.1.1",
        "http://[::1]",
        "https://[::1]",
        "http://[::]",
        "http://[::ffff:127.0.0.1]",
        "http://[::ffff:a9fe:a9fe]",
        "http://[::127.0.0.1]",
        "http://[64:ff9b::7f00:1]",
        "http://[2002:7f00:1::1]",
        "http://[fd00::1]",
        "http://[fd00:ec2::254]",
        "http://198.18.0.1",
        "http://255.255.255.255",
        "http://168.63.129.16",
        "http://151.101.1.1",
    ] {
        rules.push(literal);
    }
    let mut grant = grant(&rules);
    grant.limits.idle_ms = 700;
    grant.limits.connect_ms = 2000;
    grant.limits.header_bytes = 8 << 10;
    grant
}

fn tricks() -> Vec<(&'static str, Attempt)> {
    use Attempt::{Bytes, Connect, Inside, Leads, Method, Redirect, Socks, Url};
    let mut all = vec![
        ("encoded path parameter", Url("http://narrow.example/v1/..%3b/admin")),
        ("dots encoded three times", Url("http://narrow.example/v1/%25252e%25252e/admin")),
        ("overlong dots", Url("http://narrow.example/v1/%c0%ae%c0%ae/admin")),
        ("method in the query", Url("http://narrow.example/v1/things?_method=DELETE")),
        ("method in a header", narrow("X-HTTP-Method-Override: DELETE")),
        ("method in another header", narrow("X-Method-Override: PUT")),
        ("path in a header", narrow("X-Original-URL: /admin")),
        ("octal", Url("http://0177.0.0.1/")),
        ("hexadecimal parts", Url("http://0x7f.0.0.1/")),
        ("hexadecimal number", Url("http://0x7f000001/")),
        ("decimal number", Url("http://2130706433/")),
        ("octal number", Url("http://017700000001/")),
        ("two parts", Url("http://127.1/")),
        ("three parts", Url("http://127.0.1/")),
        ("two parts, one hexadecimal", Url("http://0x7f.1/")),
        ("zero", Url("http://0/")),
        ("leading zeros", Url("http://127.000.000.001/")),
        ("five parts", Url("http://127.0.0.1.1/")),
        ("parts above 255", Url("http://383.0.0.1/")),
        ("metadata in octal", Url("http://0251.0376.0251.0376/")),
        ("metadata in hexadecimal", Url("http://0xa9fea9fe/")),
        ("metadata as a number", Url("http://2852039166/")),
        ("this network", Url("http://0.0.0.0/")),
        ("loopback", Url("http://127.0.0.1/")),
        ("private", Url("http://10.0.0.1/")),
        ("private, another", Url("http://192.168.1.1/")),
        ("shared", Url("http://100.64.0.1/")),
        ("metadata", Url("http://169.254.169.254/latest/meta-data/")),
        ("metadata in public space", Url("http://168.63.129.16/")),
        ("benchmarking", Url("http://198.18.0.1/")),
        ("broadcast", Url("http://255.255.255.255/")),
        ("a public address of this machine", Url("http://151.101.1.1/")),
        ("loopback by IPv6", Url("http://[::1]/")),
        ("no address by IPv6", Url("http://[::]/")),
        ("mapped", Url("http://[::ffff:127.0.0.1]/")),
        ("mapped, in hexadecimal", Url("http://[::ffff:7f00:1]/")),
        ("mapped metadata, written out", Url("http://[0:0:0:0:0:ffff:a9fe:a9fe]/")),
        ("compatible", Url("http://[::127.0.0.1]/")),
        ("NAT64", Url("http://[64:ff9b::7f00:1]/")),
        ("6to4", Url("http://[2002:7f00:1::1]/")),
        ("unique local", Url("http://[fd00::1]/")),
        ("metadata by IPv6", Url("http://[fd00:ec2::254]/")),
        ("zone id", Url("http://[fe80::1%25lo]/")),
        ("IPv6 without brackets", Url("http://::1/")),
        ("IPv4 in brackets", Url("http://[127.0.0.1]/")),
        ("localhost", Url("http://localhost/")),
        ("localhost in capitals", Url("http://LOCALHOST/")),
        ("mixed case with a private address", Url("http://BaD.eXaMpLe/")),
        ("trailing dot", Url("http://api.example./")),
        ("trailing dot on an address", Url("http://127.0.0.1./")),
        ("user name", Url("http://api.example@127.0.0.1/")),
        ("user name and password", Url("http://api.example:80@127.0.0.1/")),
        ("encoded slash in the user name", Url("http://api.example%2f@127.0.0.1/")),
        ("backslash before the host", Url("http://api.example\\@127.0.0.1/")),
        ("backslash as a slash", Url("http://127.0.0.1\\.api.example/")),
        ("encoded letter", Url("http://ap%69.example/")),
        ("encoded NUL", Url("http://127.0.0.1%00.api.example/")),
        ("encoded dot", Url("http://127%2e0.0.1/")),
        ("full-width letters", Url("http://\u{ff41}pi.example/")),
        ("circled digits", Url("http://\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}/")),
        ("ideographic dot", Url("http://127\u{3002}0.0.1/")),
        ("soft hyphen", Url("http://a\u{ad}pi.example/")),
        ("right-to-left", Url("http://\u{202e}elpmaxe.ipa/")),
        ("homograph", Url("http://\u{430}pi.example/")),
        ("malformed punycode", Url("http://xn--a.example/")),
        ("tab in the host", Url("http://127.0.0\t.1/")),
        ("line break in the address", Url("http://api.example/\r\nHost: 127.0.0.1")),
        ("suffix glued on", Url("http://evilpkg.example/")),
        ("the name above a suffix", Url("http://pkg.example/")),
        ("granted name as a label", Url("http://api.example.evil.example/")),
        ("another port", Url("http://api.example:8080/")),
        ("port that wraps", Url("http://api.example:65616/")),
        ("port with a leading zero", Url("http://api.example:080/")),
        ("port nought", Url("http://api.example:0/")),
        ("ftp", Url("ftp://api.example/")),
        ("file", Url("file:///etc/passwd")),
        ("gopher", Url("gopher://127.0.0.1:80/_GET%20/")),
        ("another path", Url("http://narrow.example/v2")),
        ("a longer segment", Url("http://narrow.example/v1x")),
        ("dots out of the path", Url("http://narrow.example/v1/../admin")),
        ("encoded dots", Url("http://narrow.example/v1/%2e%2e/admin")),
        ("encoded slash behind dots", Url("http://narrow.example/v1/..%2fadmin")),
        ("encoded backslash behind dots", Url("http://narrow.example/v1/..%5cadmin")),
        ("encoded twice", Url("http://narrow.example/v1/%252e%252e/admin")),
        ("dots with a parameter", Url("http://narrow.example/v1/..;/admin")),
        ("double slash", Url("http://narrow.example//v1")),
        ("capitals in the path", Url("http://narrow.example/V1")),
        ("another method", Method("POST", "http://narrow.example/v1")),
        ("a method in small letters", Method("get", "http://narrow.example/v1")),
        ("leads to loopback", Leads(&["127.0.0.1"])),
        ("leads to loopback, not .1", Leads(&["127.8.8.8"])),
        ("leads to loopback by IPv6", Leads(&["::1"])),
        ("leads to private", Leads(&["172.16.0.1"])),
        ("leads to private, the last", Leads(&["172.31.255.1"])),
        ("leads to link-local", Leads(&["169.254.1.1"])),
        ("leads to metadata", Leads(&["169.254.169.254"])),
        ("leads to a container's credentials", Leads(&["169.254.170.2"])),
        ("leads to Alibaba's metadata", Leads(&["100.100.100.200"])),
        ("leads to Oracle's metadata", Leads(&["192.0.0.192"])),
        ("leads to metadata by IPv6", Leads(&["fd20:ce::254"])),
        ("leads to shared", Leads(&["100.64.0.1"])),
        ("leads to protocol assignments", Leads(&["192.0.0.1"])),
        ("leads to documentation", Leads(&["203.0.113.1"])),
        ("leads to the old 6to4 relay", Leads(&["192.88.99.1"])),
        ("leads to benchmarking", Leads(&["198.18.0.1"])),
        ("leads to the reserved range", Leads(&["240.0.0.1"])),
        ("leads to multicast", Leads(&["224.0.0.1"])),
        ("leads to no address", Leads(&["0.0.0.0"])),
        ("leads to mapped", Leads(&["::ffff:127.0.0.1"])),
        ("leads to mapped public", Leads(&["::ffff:93.184.216.34"])),
        ("leads to compatible", Leads(&["::127.0.0.1"])),
        ("leads to translated", Leads(&["::ffff:0:127.0.0.1"])),
        ("leads to NAT64", Leads(&["64:ff9b::7f00:1"])),
        ("leads to local NAT64", Leads(&["64:ff9b:1::a00:1"])),
        ("leads to 6to4", Leads(&["2002:7f00:1::1"])),
        ("leads to Teredo", Leads(&["2001:0:4136:e378:8000:63bf:3fff:fdd2"])),
        ("leads to ISATAP", Leads(&["2a00:1450::5efe:7f00:1"])),
        ("leads to unique local", Leads(&["fc00::1"])),
        ("leads to site-local", Leads(&["fec0::1"])),
        ("leads to a private address behind a public one", Leads(&[PUBLIC, "10.0.0.1"])),
        ("leads to a private IPv6 address beside a public IPv4 one", Leads(&[PUBLIC, "fd00::1"])),
        ("leads to a public address of this machine", Leads(&[OWN])),
        ("leads nowhere", Leads(&[])),
        ("Host of another", raw("GET http://api.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        (
            "Host of another on the granted address",
            raw("GET http://api.example/ HTTP/1.1\r\nHost: internal.api.example\r\n\r\n"),
        ),
        ("Host with another port", raw("GET http://api.example/ HTTP/1.1\r\nHost: api.example:8080\r\n\r\n")),
        ("Host with a user name", raw("GET http://api.example/ HTTP/1.1\r\nHost: x@api.example\r\n\r\n")),
        ("two Hosts", raw("GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\nHost: localhost\r\n\r\n")),
        ("no Host", raw("GET http://api.example/ HTTP/1.1\r\n\r\n")),
        ("a path alone", raw("GET / HTTP/1.1\r\nHost: api.example\r\n\r\n")),
        ("an address without a scheme", raw("GET //api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n")),
        ("both lengths", request("Content-Length: 6\r\nTransfer-Encoding: chunked", "0\r\n\r\nG")),
        ("both lengths, the other way", request("Transfer-Encoding: chunked\r\nContent-Length: 6", "0\r\n\r\nG")),
        (
            "two lengths",
            request("Content-Length: 0\r\nContent-Length: 44", "GET /admin HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ),
        ("one length twice", request("Content-Length: 1\r\nContent-Length: 1", "x")),
        ("a list of lengths", request("Content-Length: 1, 1", "x")),
        ("a length with a sign", request("Content-Length: +1", "x")),
        ("chunked, then identity", request("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", "0\r\n\r\n")),
        ("chunked misspelt", request("Transfer-Encoding: xchunked", "0\r\n\r\n")),
        ("chunked with a vertical tab", request("Transfer-Encoding: \x0bchunked", "0\r\n\r\n")),
        ("chunked, twice", request("Transfer-Encoding: chunked, chunked", "0\r\n\r\n")),
        ("a space before the colon", request("Transfer-Encoding : chunked", "0\r\n\r\n")),
        ("a folded line", request("X: y\r\n Transfer-Encoding: chunked", "0\r\n\r\n")),
        ("a bare line feed", request("X: y\nTransfer-Encoding: chunked", "0\r\n\r\n")),
        ("a bare carriage return", request("X: y\rTransfer-Encoding: chunked", "0\r\n\r\n")),
        ("an underscore for the hyphen", request("Transfer_Encoding: chunked", "0\r\n\r\n")),
        ("NUL in a header", request("X: a\0b", "")),
        (
            "HTTP/1.0 with chunks",
            raw(
                "POST http://api.example/ HTTP/1.0\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            ),
        ),
        ("HTTP/0.9", raw("GET http://api.example/\r\n\r\n")),
        ("HTTP/2 at once", raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
        ("an empty line first", raw("\r\nGET http://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n")),
        ("two spaces", raw("GET  http://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n")),
        ("an oversized header", request(&format!("X: {}", "y".repeat(20_000)), "")),
        (
            "oversized without end",
            Bytes([b"GET http://api.example/ HTTP/1.1\r\nX: ".to_vec(), vec![b'y'; 40_000]].concat()),
        ),
        ("too many headers", request("X: y\r\n".repeat(200).trim_end(), "")),
        ("slow loris", raw("GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\nX-Slow")),
        ("slow loris at a tunnel", raw("CONNECT api.example:443 HTTP/1.1\r\nHost: api.exa")),
        ("CONNECT to loopback", Connect("127.0.0.1:80")),
        ("CONNECT to metadata", Connect("169.254.169.254:443")),
        ("CONNECT to loopback by IPv6", Connect("[::1]:443")),
        ("CONNECT to a public address", Connect("93.184.216.34:443")),
        ("CONNECT to another port", Connect("api.example:22")),
        ("CONNECT with a trailing dot", Connect("api.example.:443")),
        ("CONNECT with a user name", Connect("api.example@127.0.0.1:443")),
        ("CONNECT in hexadecimal", Connect("0x7f.1:443")),
        ("CONNECT with two ports", Connect("api.example:443:80")),
        ("CONNECT with a leading zero", Connect("api.example:0443")),
        ("CONNECT without a port", Connect("api.example")),
        ("CONNECT to another host", Connect("evil.example:443")),
        ("CONNECT to localhost", Connect("localhost:443")),
        ("CONNECT with an address", Connect("https://api.example:443/")),
        ("CONNECT with another Host", raw("CONNECT api.example:443 HTTP/1.1\r\nHost: localhost:443\r\n\r\n")),
        (
            "CONNECT with a body",
            raw("CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\nContent-Length: 5\r\n\r\nhello"),
        ),
        ("a tunnel that names another server", Inside(client_hello("evil.example"))),
        ("a tunnel that names a server below", Inside(client_hello("x.api.example"))),
        ("a tunnel that names nobody", Inside(client_hello_without_name())),
        ("a tunnel that hides a name", Inside(encrypted_hello("api.example"))),
        ("a tunnel that names a server with a dot", Inside(hand_made_hello("api.example.", &[]))),
        ("a tunnel that names an address", Inside(hand_made_hello("127.0.0.1", &[]))),
        ("a tunnel with a malformed greeting", Inside(vec![22, 3, 1, 0, 5, 1, 0, 0, 1, 9])),
        ("a tunnel in the clear", Inside(b"GET / HTTP/1.1\r\nHost: api.example\r\n\r\n".to_vec())),
        ("a tunnel for SSH", Inside(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec())),
        ("SOCKS to loopback", Socks(1, vec![127, 0, 0, 1], 80)),
        ("SOCKS to metadata", Socks(1, vec![169, 254, 169, 254], 80)),
        ("SOCKS to a public address", Socks(1, vec![93, 184, 216, 34], 80)),
        ("SOCKS to loopback by IPv6", Socks(4, [vec![0; 15], vec![1]].concat(), 80)),
        ("SOCKS to mapped", Socks(4, [vec![0; 10], vec![0xff, 0xff, 127, 0, 0, 1]].concat(), 80)),
        ("SOCKS to an address as a name", Socks(3, b"127.0.0.1".to_vec(), 80)),
        ("SOCKS to a bare IPv6 address as a name", Socks(3, b"::1".to_vec(), 80)),
        ("SOCKS in hexadecimal", Socks(3, b"0x7f000001".to_vec(), 80)),
        ("SOCKS with NUL", Socks(3, b"api.example\0.evil".to_vec(), 80)),
        ("SOCKS to another host", Socks(3, b"evil.example".to_vec(), 80)),
        ("SOCKS to localhost", Socks(3, b"localhost".to_vec(), 80)),
        ("SOCKS to another port", Socks(3, b"api.example".to_vec(), 22)),
        ("SOCKS asking to listen", Bytes([&[5, 1, 0, 5, 2, 0, 3, 11][..], b"api.example", &[0, 80]].concat())),
        ("SOCKS asking for UDP", Bytes([&[5, 1, 0, 5, 3, 0, 3, 11][..], b"api.example", &[0, 80]].concat())),
        ("SOCKS 4", Bytes(vec![4, 1, 0, 80, 127, 0, 0, 1, 0])),
    ];
    for (name, to) in [
        ("redirect to loopback", "http://127.0.0.1/"),
        ("redirect to metadata", "http://169.254.169.254/latest/"),
        ("redirect to IPv6 loopback", "http://[::1]/"),
        ("redirect to mapped", "http://[::ffff:127.0.0.1]/"),
        ("redirect in hexadecimal", "http://0x7f.1/"),
        ("redirect to a name that leads to loopback", "http://localhost/"),
        ("redirect without a scheme", "//127.0.0.1/"),
        ("redirect with a user name", "http://api.example@127.0.0.1/"),
        ("redirect with backslashes", "\\\\127.0.0.1\\x"),
        ("redirect to a file", "file:///etc/passwd"),
        ("redirect to another port", "http://api.example:8080/"),
        ("redirect to another host", "http://evil.example/"),
        ("redirect out of the path", "http://narrow.example/admin"),
    ] {
        all.push((name, Redirect(to)));
    }
    all
}

#[test]
fn no_trick_gets_through() {
    in_own_network("tricks::no_trick_gets_through", || async {
        let world = World::new().await;
        world.dns.set("api.example", &[PUBLIC]);
        world.dns.set("narrow.example", &[PUBLIC]);
        for name in [
            "localhost",
            "evil.example",
            "evilpkg.example",
            "pkg.example",
            "api.example.evil.example",
            "internal.api.example",
        ] {
            world.dns.set(name, &["127.0.0.1"]);
        }
        let proxy = world.proxy(generous()).await;
        prove_that_the_way_is_open(&world, proxy.address()).await;

        let mut through = Vec::new();
        let mut tried = 0;
        for (name, attempt) in tricks() {
            let heard = try_one(&world, proxy.address(), &attempt).await;
            let visits = world.servers.visits().await;
            let arrived = visits.iter().any(|visit| match &attempt {
                // The tunnel's own host is connected to, but hears nothing.
                Attempt::Inside(_) => visit.bytes > 0,
                // The host that redirects is asked; nobody else is.
                Attempt::Redirect(_) => visit.to.to_string() != PUBLIC || !visit.said.starts_with(b"GET /redirect"),
                _ => true,
            });
            if arrived || heard.windows(9).any(|window| window == b"served by") {
                through.push(format!("{name}: {:?} {visits:?}", String::from_utf8_lossy(&heard)));
            }
            tried += 1;
        }
        println!("{tried} tricks tried, {} got through", through.len());
        assert!(through.is_empty(), "{through:#?}");
        assert!(tried >= 80);
        // A name that is not granted is not even looked up: the question itself could carry data out.
        for name in ["evil.example", "evilpkg.example", "api.example.evil.example", "internal.api.example"] {
            assert_eq!(world.dns.asked(name), 0, "{name}");
        }
        // The way is still open: the tricks were refused one by one, not because something broke.
        prove_that_the_way_is_open(&world, proxy.address()).await;
        proxy.shutdown().await;
    });
}

async fn try_one(world: &World, proxy: SocketAddr, attempt: &Attempt) -> Vec<u8> {
    match attempt {
        Attempt::Url(url) => both_ways(world, proxy, "GET", url).await,
        Attempt::Method(method, url) => both_ways(world, proxy, method, url).await,
        Attempt::Bytes(bytes) => {
            let mut raw = Raw::connect(proxy).await;
            raw.say(bytes).await;
            raw.rest().await
        }
        Attempt::Connect(target) => {
            let (mut raw, head) = Raw::tunnel(proxy, target).await;
            raw.say(client_hello("api.example")).await;
            // A tunnel that stands is one that got through, whatever goes over it.
            let stands = if head.starts_with("HTTP/1.1 200") { "served by a tunnel" } else { "" };
            [stands.as_bytes(), head.as_bytes(), &raw.rest().await].concat()
        }
        Attempt::Socks(kind, host, port) => {
            let (mut raw, status) = Raw::socks(proxy, *kind, host, *port).await;
            raw.say("GET / HTTP/1.1\r\nHost: api.example\r\n\r\n").await;
            let stands = if status == Some(0) { "served by a tunnel" } else { "" };
            [stands.as_bytes(), &raw.rest().await].concat()
        }
        Attempt::Leads(addresses) => {
            world.dns.set("bad.example", addresses);
            let mut heard = both_ways(world, proxy, "GET", "http://bad.example/").await;
            let (mut raw, head) = Raw::tunnel(proxy, "bad.example:443").await;
            raw.say(client_hello("bad.example")).await;
            heard.extend(head.into_bytes());
            heard.extend(raw.rest().await);
            let (mut raw, _) = Raw::socks(proxy, 3, b"bad.example", 80).await;
            raw.say("GET / HTTP/1.1\r\nHost: bad.example\r\n\r\n").await;
            heard.extend(raw.rest().await);
            heard
        }
        Attempt::Inside(bytes) => {
            // Only https is granted here: what is not TLS has no other rule to go by.
            let proxy = world.proxy(grant(&["https://api.example"])).await;
            let (mut raw, head) = Raw::tunnel(proxy.address(), "api.example:443").await;
            assert!(head.starts_with("HTTP/1.1 200"), "{head}");
            raw.say(bytes).await;
            raw.rest().await
        }
        Attempt::Redirect(to) => {
            let request = FetchRequest::get(format!("http://api.example/redirect?{}", to.replace('\\', "%5C")));
            match world.egress.client().send(&generous(), request).await {
                Ok(answer) => answer.body.to_vec(),
                Err(error) => error.to_string().into_bytes(),
            }
        }
    }
}

/// The same address through the client and through the proxy.
async fn both_ways(world: &World, proxy: SocketAddr, method: &str, url: &str) -> Vec<u8> {
    let mut heard = match world.egress.client().send(&generous(), FetchRequest::new(method, url)).await {
        Ok(answer) => answer.body.to_vec(),
        Err(error) => error.to_string().into_bytes(),
    };
    let host = url.split("://").nth(1).unwrap_or("").split('/').next().unwrap_or("");
    heard.extend(Raw::ask(proxy, format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")).await);
    heard
}

/// What is granted works, by every door: otherwise a refusal would prove nothing.
async fn prove_that_the_way_is_open(world: &World, proxy: SocketAddr) {
    let public: IpAddr = PUBLIC.parse().unwrap();
    let served = format!("served by {PUBLIC}");
    let client = world.egress.client();
    for url in ["http://api.example/", "https://api.example/", "http://narrow.example/v1/x", "http://API.example/"] {
        let answer = client.send(&generous(), FetchRequest::get(url)).await.unwrap();
        assert_eq!((answer.status, answer.address), (200, Some(public)), "{url}");
        assert_eq!(answer.body, served.as_bytes());
    }
    let answer = Raw::ask(proxy, "GET http://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n").await;
    assert!(status_of(&answer) == 200 && String::from_utf8_lossy(&answer).contains(&served));
    let inside = "GET / HTTP/1.1\r\nHost: api.example\r\n\r\n";
    let (raw, head) = Raw::tunnel(proxy, "api.example:443").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let answer = raw.ask_inside(&world.authority.pem(), "api.example", inside).await.unwrap();
    assert!(String::from_utf8_lossy(&answer).contains(&served));
    let (raw, status) = Raw::socks(proxy, 3, b"api.example", 443).await;
    assert_eq!(status, Some(0));
    let answer = raw.ask_inside(&world.authority.pem(), "api.example", inside).await.unwrap();
    assert!(String::from_utf8_lossy(&answer).contains(&served));
    let (mut raw, status) = Raw::socks(proxy, 3, b"api.example", 80).await;
    assert_eq!(status, Some(0));
    raw.say("GET / HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n").await;
    assert!(String::from_utf8_lossy(&raw.rest().await).contains(&served));
    let visits = world.servers.visits().await;
    assert_eq!(visits.len(), 8, "{visits:?}");
    assert!(visits.iter().all(|visit| visit.to == public));
}

/// The name server changes its mind between the check and the use, as fast as it can.
#[test]
fn an_answer_that_changes_changes_nothing() {
    in_own_network("tricks::an_answer_that_changes_changes_nothing", || async {
        let world = World::new().await;
        let mut grant = grant(&["http://rebind.example", "GET https://api.example"]);
        grant.intercept = Intercept::WhenGranted;
        let proxy = world.proxy(grant.clone()).await;
        for round in 0..3 {
            // First public, from then on loopback: the first request goes to the public address and to nothing else.
            world.dns.set_sequence("rebind.example", &[&[PUBLIC], &["127.0.0.1"]]);
            let asked = world.dns.asked("rebind.example");
            let target = "GET http://rebind.example/ HTTP/1.1\r\nHost: rebind.example\r\n\r\n";
            if round == 0 {
                let first = Raw::ask(proxy.address(), target).await;
                assert!(String::from_utf8_lossy(&first).contains(PUBLIC), "{}", String::from_utf8_lossy(&first));
                assert_eq!(
                    world.dns.asked("rebind.example"),
                    asked + 1,
                    "the name was looked up once, and connected to by address"
                );
            }
            let second = Raw::ask(proxy.address(), target).await;
            assert_eq!(status_of(&second), 403);
            let error =
                world.egress.client().send(&grant, FetchRequest::get("http://rebind.example/")).await.unwrap_err();
            assert_eq!(error.code(), "egress_refused");
            let visits = world.servers.visits().await;
            assert_eq!(visits.len(), usize::from(round == 0), "{visits:?}");
            assert!(visits.iter().all(|visit| visit.to.to_string() == PUBLIC));
        }
    });
}

/// Answers that do not fit a datagram are asked for again over TCP, and judged all the same.
#[test]
fn a_long_answer_is_judged_too() {
    in_own_network("tricks::a_long_answer_is_judged_too", || async {
        let world = World::new().await;
        for (name, address, code) in
            [("api.example", PUBLIC, None), ("bad.example", "10.0.0.1", Some("egress_refused"))]
        {
            world.dns.set(name, &[address]);
            world.dns.truncate(name);
            let outcome = world
                .egress
                .client()
                .send(
                    &grant(&["http://api.example", "http://bad.example"]),
                    FetchRequest::get(format!("http://{name}/")),
                )
                .await;
            assert_eq!(outcome.as_ref().err().map(|error| error.code()), code, "{outcome:?}");
        }
        assert_eq!(world.servers.visits().await.len(), 1);
    });
}

/// A second request on a connection is judged like the first, and a first one that is fine does not help it.
#[tokio::test]
async fn pipelined_requests_are_judged_one_by_one() {
    let world = World::on_loopback().await;
    let port = world.servers.http.port();
    world.dns.set("local.example", &["127.0.0.1"]);
    let grant =
        grant(&[&format!("GET http://local.example:{port}/ok")]).private_host("loopback:local.example").unwrap();
    let proxy = world.proxy(grant).await;
    let one = |method: &str, path: &str, more: &str| {
        format!("{method} http://local.example:{port}{path} HTTP/1.1\r\nHost: local.example:{port}\r\n{more}\r\n")
    };
    let mut raw = Raw::connect(proxy.address()).await;
    raw.say(
        one("GET", "/ok", "")
            + &one("GET", "/secret", "")
            + &one("POST", "/ok", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
    )
    .await;
    let heard = String::from_utf8_lossy(&raw.rest().await).into_owned();
    let statuses: Vec<&str> = heard.match_indices("HTTP/1.1 ").map(|(at, _)| &heard[at + 9..at + 12]).collect();
    // The second is refused too, if it is answered before the third ends the connection.
    assert_eq!((statuses.first(), statuses.last()), (Some(&"200"), Some(&"400")), "{heard}");
    let visits = world.servers.visits().await;
    assert_eq!(visits.len(), 1, "{visits:?}");
    assert!(visits[0].said.starts_with(b"GET /ok HTTP/1.1\r\n"));
}

/// What is not even HTTP leaves a record too.
#[tokio::test]
async fn a_malformed_request_is_recorded() {
    let world = World::on_loopback().await;
    let proxy = world.proxy(grant(&["http://api.example"])).await;
    let malformed: [&[u8]; 6] = [
        b"BAD\r\n\r\n",
        b"GET http://api.example/ HTTP/9.9\r\nHost: api.example\r\n\r\n",
        b"GET http://api.example/\x01 HTTP/1.1\r\nHost: api.example\r\n\r\n",
        b"GET http://api.example/ HTTP/1.1\r\nHo st: api.example\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"G\xffT http://api.example/ HTTP/1.1\r\nHost: api.example\r\n\r\n",
    ];
    for (index, bytes) in malformed.iter().enumerate() {
        let mut raw = Raw::connect(proxy.address()).await;
        raw.say(bytes.to_vec()).await;
        raw.rest().await;
        let record = world.record(index + 1).await;
        assert_eq!(
            refusal_of(&record),
            Some(RefusalReason::AmbiguousRequest),
            "{:?}: {record:?}",
            bytes.escape_ascii()
        );
    }
}

//! The address of a request as far as grants look at it: scheme, host, port, path.
//!
//! Reading is strict on purpose. An address that two readers could understand differently is refused here, before the way out reads it again; that reader
//! knows international names and private addresses and has the last word.

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// `https` or `http`.
    pub(crate) scheme: String,
    /// In lower case.
    pub(crate) host: String,
    /// The one written, or the scheme's own.
    pub(crate) port: u16,
    /// With its slash, without query.
    pub(crate) path: String,
}

impl Target {
    /// Reads an address; the error says what is wrong with it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        if url.len() > 8192 {
            return Err("the URL is longer than 8192 bytes".to_owned());
        }
        if let Some(odd) = url.chars().find(|character| !character.is_ascii_graphic() || *character == '\\') {
            return Err(format!("the URL contains the character {odd:?}"));
        }
        let (scheme, rest) = url.split_once("://").ok_or("the URL has no scheme")?;
        let scheme = scheme.to_ascii_lowercase();
        let own_port = match scheme.as_str() {
            "https" => 443,
            "http" => 80,
            _ => return Err(format!("the scheme `{scheme}` is not `https` or `http`")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return Err("the URL contains a user name".to_owned());
        }
        let (host, port) = split_port(authority)?;
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        Ok(Self {
            scheme,
            host: read_host(host)?,
            port: port.unwrap_or(own_port),
            path: if path.is_empty() { "/".to_owned() } else { read_path(path)? },
        })
    }
}

/// Splits `host:port`, with brackets around IPv6 addresses.
pub(super) fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let Some(port) = port else { return Ok((host, None)) };
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("`{port}` is not a port"));
    }
    match port.parse::<u16>() {
        Ok(number) if number > 0 && !port.starts_with('0') => Ok((host, Some(number))),
        _ => Err(format!("`{port}` is not a port")),
    }
}

/// A host in its one spelling.
pub(super) fn read_host(host: &str) -> Result<String, String> {
    let refuse = || format!("`{host}` is not a host");
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').ok_or_else(refuse)?;
        let address: std::net::Ipv6Addr = address.parse().map_err(|_| refuse())?;
        return Ok(format!("[{address}]"));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let sound = !host.is_empty()
        && host.len() <= 253
        && host.bytes().all(allowed)
        && host.split('.').all(|label| !label.is_empty() && label.len() <= 63);
    if sound { Ok(host.to_ascii_lowercase()) } else { Err(refuse()) }
}

/// A path without steps upwards, however they are spelt.
pub(super) fn read_path(path: &str) -> Result<String, String> {
    let lower = path.to_ascii_lowercase().replace("%2e", ".");
    // A parameter (`..;x`) is cut off by some servers before they resolve dots.
    let dotted = lower.split('/').any(|segment| {
        let name = segment.split(';').next().unwrap_or_default();
        name == "." || name == ".."
    });
    if dotted { Err("the path contains dot segments".to_owned()) } else { Ok(path.to_owned()) }
}

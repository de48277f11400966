//! A real name server on loopback that answers what the test tells it to, and another thing the next time if so told.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

#[derive(Default)]
struct Zone {
    /// Answers by name; each question for A moves on to the next set, the last one stays.
    names: HashMap<String, Vec<Vec<IpAddr>>>,
    /// Names whose answers are too long for a datagram.
    truncated: Vec<String>,
    asked: Vec<String>,
}

#[derive(Clone)]
pub(crate) struct Dns {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

impl Dns {
    pub(crate) async fn start() -> Self {
        // The same port for both protocols; another test may hold one of the two.
        let (socket, address, listener) = loop {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let address = socket.local_addr().unwrap();
            if let Ok(listener) = TcpListener::bind(address).await {
                break (socket, address, listener);
            }
        };
        let zone = Arc::new(Mutex::new(Zone::default()));
        let over_udp = Arc::clone(&zone);
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            while let Ok((length, peer)) = socket.recv_from(&mut buffer).await {
                let answer = reply(&over_udp, &buffer[..length], true);
                let _ = socket.send_to(&answer, peer).await;
            }
        });
        let over_tcp = Arc::clone(&zone);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let length = stream.read_u16().await.unwrap();
                let mut question = vec![0; usize::from(length)];
                stream.read_exact(&mut question).await.unwrap();
                let answer = reply(&over_tcp, &question, false);
                let length = u16::try_from(answer.len()).unwrap();
                stream.write_all(&[&length.to_be_bytes()[..], &answer].concat()).await.unwrap();
            }
        });
        Self { address, zone }
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// `name` leads to these addresses.
    pub(crate) fn set(&self, name: &str, addresses: &[&str]) {
        self.set_sequence(name, &[addresses]);
    }

    /// `name` leads to the first set when first asked for, then to the next.
    pub(crate) fn set_sequence(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers.iter().map(|set| set.iter().map(|text| text.parse().unwrap()).collect()).collect();
        self.zone.lock().unwrap().names.insert(name.to_owned(), answers);
    }

    /// Answers for `name` do not fit a datagram.
    pub(crate) fn truncate(&self, name: &str) {
        self.zone.lock().unwrap().truncated.push(name.to_owned());
    }

    /// How often addresses of `name` were asked for.
    pub(crate) fn asked(&self, name: &str) -> usize {
        self.zone.lock().unwrap().asked.iter().filter(|asked| *asked == name).count()
    }
}

fn reply(zone: &Mutex<Zone>, question: &[u8], datagram: bool) -> Vec<u8> {
    let mut at = 12;
    let mut labels = Vec::new();
    while question[at] != 0 {
        let length = usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..at + 1 + length]).to_ascii_lowercase());
        at += 1 + length;
    }
    let name = labels.join(".");
    let kind = u16::from_be_bytes([question[at + 1], question[at + 2]]);
    let end = at + 5;
    let mut zone = zone.lock().unwrap();
    let mut answer = question[..end].to_vec();
    answer[2] = 0x81;
    answer[3] = 0x80;
    answer[6..12].fill(0);
    if datagram && zone.truncated.contains(&name) {
        answer[2] |= 2;
        return answer;
    }
    if kind == 1 {
        zone.asked.push(name.clone());
    }
    let round = zone.asked.iter().filter(|asked| **asked == name).count().saturating_sub(1);
    let Some(sets) = zone.names.get(&name) else {
        answer[3] |= 3;
        return answer;
    };
    // A and AAAA are asked for together; both see the same set.
    let set = &sets[round.min(sets.len() - 1)];
    let mut count = 0_u8;
    for address in set {
        let data = match (address, kind) {
            (IpAddr::V4(address), 1) => address.octets().to_vec(),
            (IpAddr::V6(address), 28) => address.octets().to_vec(),
            _ => continue,
        };
        answer.extend([0xc0, 12]);
        answer.extend(kind.to_be_bytes());
        answer.extend([0, 1, 0, 0, 0, 0]);
        answer.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        answer.extend(data);
        count += 1;
    }
    answer[7] = count;
    answer
}

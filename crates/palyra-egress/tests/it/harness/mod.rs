//! What the tests share: a network of their own, servers that count who came, a name server that lies on demand, a client that speaks raw bytes.

mod client;
mod dns;
mod namespace;
mod server;
mod tls;

use std::sync::Arc;

use palyra_common::{SecretRef, SecretString, SystemClock};
use palyra_egress::{
    ConnectionRecord, ConnectionVerdict, Egress, EgressGrant, EgressOptions, MemoryLog, NameServer, ProxyAccess,
    ProxyHandle, ProxyOptions, RefusalReason, SecretSource, Trust, bind,
};

pub(crate) use client::{Raw, client_hello, client_hello_without_name, encrypted_hello, hand_made_hello, status_of};
pub(crate) use dns::Dns;
pub(crate) use namespace::{in_own_network, outside, sandbox};
pub(crate) use server::Servers;
pub(crate) use tls::Authority;

/// The address that stands for the public internet in the tests' namespace.
pub(crate) const PUBLIC: &str = "93.184.216.34";
/// A public address that the machine of the tests has itself.
pub(crate) const OWN: &str = "151.101.1.1";
/// The secret that no client may ever see.
pub(crate) const SECRET: &str = "s3cr3t/Value+With=Signs&\"42";

/// Hands out the one secret.
struct OneSecret;

#[async_trait::async_trait]
impl SecretSource for OneSecret {
    async fn resolve(&self, reference: &SecretRef) -> Result<SecretString, String> {
        match reference.to_string().as_str() {
            "env:TEST_TOKEN" => Ok(SecretString::from(SECRET.to_owned())),
            "env:SHORT" => Ok(SecretString::from("short".to_owned())),
            _ => Err("it is not in the vault".to_owned()),
        }
    }
}

/// A whole world: servers on ports 80 and 443 of every address, a name server, the way out.
pub(crate) struct World {
    pub(crate) servers: Servers,
    pub(crate) dns: Dns,
    pub(crate) log: Arc<MemoryLog>,
    pub(crate) egress: Egress,
    pub(crate) authority: Authority,
}

impl World {
    /// In the test's own network namespace: the ports are real, the addresses are real, and nothing leaves the machine.
    pub(crate) async fn new() -> Self {
        let authority = Authority::new("test authority");
        // Here, where no trick may lead, and out there, where the public address is.
        let mut servers = Servers::start(&authority, 80, 443).await;
        let (there, config) = (servers.clone(), authority.server(&server::NAMES));
        outside(move || async move {
            there.listen(config, 80, 443).await;
        });
        servers.also_at(PUBLIC.parse().unwrap());
        Self::with(servers, authority).await
    }

    /// On loopback with free ports, where no public address is needed.
    pub(crate) async fn on_loopback() -> Self {
        let authority = Authority::new("test authority");
        let servers = Servers::start(&authority, 0, 0).await;
        Self::with(servers, authority).await
    }

    async fn with(servers: Servers, authority: Authority) -> Self {
        let dns = Dns::start().await;
        let log = Arc::new(MemoryLog::default());
        let egress = Egress::new(EgressOptions {
            resolver: Arc::new(NameServer::new(dns.address())),
            secrets: Arc::new(OneSecret),
            log: Arc::clone(&log) as _,
            trust: Trust::Pem(authority.pem()),
            clock: Arc::new(SystemClock),
        })
        .unwrap();
        Self { servers, dns, log, egress, authority }
    }

    pub(crate) async fn proxy(&self, grant: EgressGrant) -> ProxyHandle {
        self.proxy_with(grant, ProxyAccess::Open).await
    }

    pub(crate) async fn proxy_with(&self, grant: EgressGrant, access: ProxyAccess) -> ProxyHandle {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        self.egress.serve(listener, ProxyOptions { grant, access }).unwrap()
    }

    /// The record that was written last, once `count` were.
    pub(crate) async fn record(&self, count: usize) -> ConnectionRecord {
        for _ in 0..500 {
            let records = self.log.records();
            if records.len() >= count {
                assert_eq!(records.len(), count, "{records:#?}");
                return records.last().unwrap().clone();
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("record {count} was never written: {:#?}", self.log.records());
    }
}

/// A grant with these rules.
pub(crate) fn grant(rules: &[&str]) -> EgressGrant {
    rules.iter().fold(EgressGrant::new("test"), |grant, rule| grant.rule(rule).unwrap())
}

pub(crate) fn refusal_of(record: &ConnectionRecord) -> Option<RefusalReason> {
    match &record.verdict {
        ConnectionVerdict::Refused { reason, .. } => Some(*reason),
        _ => None,
    }
}

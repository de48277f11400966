//! The authority of this installation, in `identity/` of the state root.
//!
//! Nothing is read or made before somebody needs it: keys and the files they are kept in would cost a start most of its time. Whoever is first opens it for all;
//! with it comes the certificate of the local owner, which local clients of QUIC show. Once it is open, certificates that are due are renewed every hour.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use palyra_client::quic::LOCAL_IDENTITY;
use palyra_common::config::Config;
use palyra_common::{Clock, DeviceId, SecretString, Timestamp, ToStableError as _};
use palyra_identity::{Authority, AuthorityOptions, ClientCredentials, IdentityError, PrincipalId, Serial};
use palyra_journal::Journal;
use ring::hmac;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::own::OwnCertificate;
use crate::dispatch::{RevokedCertificate, revoked_certificates};
use crate::error::DaemonError;

const DIRECTORY: &str = "identity";
/// The authority's key in there.
const KEY_FILE: &str = "ca.key";
/// How often certificates are looked at. They are renewed when a third of their life is left, so an hour more or less is nothing.
const RENEW_EVERY: Duration = Duration::from_secs(3600);

/// The authority, opened when it is needed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Identity {
    shared: Arc<Shared>,
}

struct Shared {
    state_root: PathBuf,
    names: Vec<String>,
    /// Says what was taken back, also if a daemon died before it could tell the authority.
    journal: Journal,
    clock: Arc<dyn Clock>,
    authority: OnceCell<Arc<Authority>>,
    own: OnceCell<Arc<OwnCertificate>>,
    /// Held while the local owner's files are looked at and written: two writers could leave the key of one beside the certificate of the other.
    owner: Mutex<()>,
}

impl Identity {
    /// The identity of the daemon at this state root; nothing is opened yet.
    pub(crate) fn new(state_root: &Path, config: &Config, journal: Journal, clock: Arc<dyn Clock>) -> Self {
        let shared = Shared {
            state_root: state_root.to_owned(),
            names: names(config),
            journal,
            clock,
            authority: OnceCell::new(),
            own: OnceCell::new(),
            owner: Mutex::new(()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The authority, opened by whoever asks first.
    pub(crate) async fn authority(&self) -> Result<Arc<Authority>, DaemonError> {
        let opened = self.shared.authority.get_or_try_init(|| async {
            let shared = Arc::clone(&self.shared);
            let opened = tokio::task::spawn_blocking(move || shared.open()).await;
            Ok::<_, DaemonError>(Arc::new(opened.map_err(stopped)??))
        });
        opened.await.cloned()
    }

    /// The certificate that the operator brought, read for the first time now.
    pub(super) async fn own(&self, certificate: &Path, key: &Path) -> Result<Arc<OwnCertificate>, DaemonError> {
        let read = self.shared.own.get_or_try_init(|| async {
            let (certificate, key) = (certificate.to_owned(), key.to_owned());
            let read = tokio::task::spawn_blocking(move || OwnCertificate::read(certificate, key)).await;
            Ok::<_, DaemonError>(Arc::new(read.map_err(stopped)??))
        });
        read.await.cloned()
    }

    /// A key for some other purpose, which is the same after every start and tells nothing about the authority's own.
    pub(crate) async fn derived_key(&self, purpose: &'static [u8]) -> Result<hmac::Key, DaemonError> {
        // Opening has checked that nobody else can read it.
        self.authority().await?;
        let path = self.shared.state_root.join(DIRECTORY).join(KEY_FILE);
        let read = tokio::task::spawn_blocking(move || {
            let secret = SecretString::new(fs::read_to_string(&path).map_err(DaemonError::file("read", &path))?);
            let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
            Ok(hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, purpose).as_ref()))
        });
        read.await.map_err(stopped)?
    }

    /// Whether a certificate was taken back. While no authority is open nobody has shown one.
    pub(crate) fn is_revoked(&self, serial: &Serial) -> bool {
        let authority = self.shared.authority.get();
        authority.is_some_and(|authority| authority.revocations().iter().any(|entry| entry.serial == *serial))
    }

    /// The device that the local owner's own certificate stands for, if there is one.
    pub(crate) fn local_device(&self) -> Option<DeviceId> {
        self.shared.authority.get()?;
        let kept = ClientCredentials::read(&self.shared.state_root.join(LOCAL_IDENTITY)).ok()??;
        Some(kept.identity.device)
    }

    /// When a certificate runs out, if that is known.
    pub(crate) fn expiry(&self, serial: &Serial) -> Option<Timestamp> {
        self.shared.authority.get().and_then(|authority| authority.expiry(serial))
    }

    /// Gives the local owner another certificate, as another device, if the one there is was taken back. Whoever cannot have one now gets it within the hour.
    pub(crate) async fn replace_revoked_owner(&self) {
        let shared = Arc::clone(&self.shared);
        let looked = tokio::task::spawn_blocking(move || shared.renew_owner()).await;
        if let Err(error) = looked {
            tracing::error!(%error, "the local owner's certificate could not be checked");
        }
    }

    /// Renews what is due, every hour, until told to stop.
    pub(crate) async fn keep_fresh(self, closing: CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(RENEW_EVERY) => {}
            }
            let shared = Arc::clone(&self.shared);
            if let Err(error) = tokio::task::spawn_blocking(move || shared.renew()).await {
                tracing::error!(%error, "certificates could not be checked");
            }
        }
    }
}

impl Shared {
    fn open(&self) -> Result<Authority, DaemonError> {
        let options = AuthorityOptions { names: self.names.clone(), ..AuthorityOptions::default() };
        let directory = self.state_root.join(DIRECTORY);
        let authority = Authority::open_or_create(&directory, options, Arc::clone(&self.clock))?;
        self.catch_up(&authority)?;
        self.certify_owner(&authority)?;
        Ok(authority)
    }

    /// Takes back what the journal says was taken back. Nobody can show a certificate before this is done.
    fn catch_up(&self, authority: &Authority) -> Result<(), DaemonError> {
        let revoked = self.journal.read_blocking(|reader| Ok(revoked_certificates(reader.connection())?))?;
        let known: BTreeSet<_> = authority.revocations().into_iter().map(|entry| entry.serial).collect();
        // Those that have run out are forgotten by the authority, and need not be taken back.
        let issued: BTreeSet<_> = authority.issued()?.into_iter().map(|certificate| certificate.serial).collect();
        let missing = |entry: &RevokedCertificate| issued.contains(&entry.serial) && !known.contains(&entry.serial);
        for entry in revoked.into_iter().filter(missing) {
            tracing::warn!(serial = %entry.serial, "revoking a certificate that a daemon which died was revoking");
            authority.revoke(&entry.serial, &entry.by)?;
        }
        Ok(())
    }

    fn certify_owner(&self, authority: &Authority) -> Result<(), IdentityError> {
        let _alone = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = PrincipalId::uid(rustix::process::geteuid().as_raw());
        authority.ensure_local_owner(&self.state_root.join(LOCAL_IDENTITY), &owner).map(|_| ())
    }

    /// A failure leaves the old certificates in use, which are good for weeks more; each hour it is tried again.
    fn renew(&self) {
        if let Some(authority) = self.authority.get() {
            match authority.renew_server() {
                Ok(true) => tracing::info!("the daemon's certificate was renewed"),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!(error = %error.to_stable().message, "the daemon's certificate could not be renewed");
                }
            }
        }
        self.renew_owner();
        if let Some(own) = self.own.get()
            && let Err(error) = own.reload()
        {
            tracing::error!(error = %error.to_stable().message, "the certificate could not be reread; the previous one stays in use");
        }
    }

    fn renew_owner(&self) {
        if let Some(authority) = self.authority.get()
            && let Err(error) = self.certify_owner(authority)
        {
            tracing::error!(error = %error.to_stable().message, "the local owner's certificate could not be renewed");
        }
    }
}

fn stopped(error: tokio::task::JoinError) -> DaemonError {
    DaemonError::system("open the identity")(std::io::Error::other(error))
}

/// Every name that a caller may use besides the local ones.
fn names(config: &Config) -> Vec<String> {
    let hosts = config.http.allowed_hosts.iter().map(|name| name.trim_matches(['[', ']']).to_owned());
    let bound = |bind: SocketAddr| {
        let ip = bind.ip();
        (!ip.is_unspecified() && !ip.is_loopback()).then(|| ip.to_string())
    };
    let binds = [config.daemon.http_bind, config.grpc.bind, config.quic.bind];
    hosts.chain(binds.into_iter().filter_map(bound)).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use palyra_common::{FixedClock, SystemClock};
    use palyra_journal::{JournalOptions, NewRecord};

    use super::*;

    fn journal(root: &Path) -> Journal {
        let options = JournalOptions::at(root.join("journal"));
        Journal::open(JournalOptions { projections: crate::dispatch::projections(), ..options }).unwrap()
    }

    #[tokio::test]
    async fn what_the_journal_says_was_revoked_is_revoked_although_the_daemon_died_in_between() {
        let root = tempfile::tempdir().unwrap();
        let journal = journal(root.path());
        let open = || Identity::new(root.path(), &Config::default(), journal.clone(), Arc::new(SystemClock));
        let identity = open();
        identity.authority().await.unwrap();
        let local = ClientCredentials::read(&root.path().join(LOCAL_IDENTITY)).unwrap().unwrap().identity;
        // What a daemon leaves that is killed right after its record of the revocation.
        let record = serde_json::json!({"device_id": local.device, "serials": [local.serial, "0c"], "by": "user:ada"});
        let record = NewRecord::new("device.revoked", SystemClock.now(), serde_json::to_vec(&record).unwrap());
        journal.append(vec![record]).await.unwrap();
        assert!(!identity.is_revoked(&local.serial));

        let again = open();
        let authority = again.authority().await.unwrap();
        assert!(again.is_revoked(&local.serial));
        let entries = authority.revocations();
        assert_eq!(entries.len(), 1, "a certificate that is not there is not revoked: {entries:?}");
        assert_eq!(entries[0].by.as_str(), "user:ada");
        let fresh = ClientCredentials::read(&root.path().join(LOCAL_IDENTITY)).unwrap().unwrap().identity;
        assert_ne!(fresh.device, local.device, "the owner is another device");
    }

    #[tokio::test]
    async fn nothing_is_made_before_it_is_needed_and_then_only_once() {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.http.allowed_hosts = vec!["agents.example".to_owned(), "[2001:db8::7]".to_owned()];
        let journal = journal(root.path());
        let identity = Identity::new(root.path(), &config, journal.clone(), Arc::new(SystemClock));
        assert!(!root.path().join(DIRECTORY).exists());
        let (one, two) = tokio::join!(identity.authority(), identity.authority());
        assert!(Arc::ptr_eq(&one.unwrap(), &two.unwrap()));
        let local = ClientCredentials::read(&root.path().join(LOCAL_IDENTITY)).unwrap().unwrap();
        assert!(!identity.is_revoked(&local.identity.serial));
        let again = Identity::new(root.path(), &config, journal, Arc::new(SystemClock));
        let authority = again.authority().await.unwrap();
        let kept = ClientCredentials::read(&root.path().join(LOCAL_IDENTITY)).unwrap().unwrap();
        assert_eq!(kept.identity.serial, local.identity.serial, "a good certificate is kept");
        authority.revoke(&kept.identity.serial, &kept.identity.principal).unwrap();
        assert!(again.is_revoked(&kept.identity.serial));
        tokio::join!(again.replace_revoked_owner(), again.replace_revoked_owner());
        let other = ClientCredentials::read(&root.path().join(LOCAL_IDENTITY)).unwrap().unwrap();
        assert_ne!(other.identity.device, kept.identity.device, "the owner is another device at once");
        assert_ne!(other.key_pem.expose(), kept.key_pem.expose(), "with another key");
        assert_eq!(authority.issued().unwrap().len(), 2, "and got one certificate, however many asked");
    }

    #[tokio::test]
    async fn what_is_due_is_renewed_and_what_others_renewed_is_read_again() {
        let root = tempfile::tempdir().unwrap();
        let clock = FixedClock::at(SystemClock.now());
        let identity = Identity::new(root.path(), &Config::default(), journal(root.path()), Arc::new(clock.clone()));
        let authority = identity.authority().await.unwrap();
        let local = || ClientCredentials::read(&root.path().join(LOCAL_IDENTITY)).unwrap().unwrap().identity;
        let (server, owner) = (authority.server_certificate(), local());
        let write = |name: &str, text: String| {
            let path = root.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path
        };
        let make = || {
            let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
            (write("own.pem", made.cert.pem()), write("own.key", made.signing_key.serialize_pem()))
        };
        let (certificate, key) = make();
        let own = identity.own(&certificate, &key).await.unwrap();
        let shown = || own.shown().cert.clone();
        let first = shown();

        identity.shared.renew();
        assert_eq!((authority.server_certificate(), local(), shown()), (server.clone(), owner.clone(), first.clone()));
        make();
        clock.advance(Duration::from_secs(50 * 24 * 3600));
        identity.shared.renew();
        assert_ne!(authority.server_certificate(), server);
        assert_eq!(local().device, owner.device, "the same device with a new certificate");
        assert_ne!(local().serial, owner.serial);
        let second = shown();
        assert_ne!(second, first);
        // What cannot be read changes nothing.
        write("own.pem", "nonsense".to_owned());
        identity.shared.renew();
        assert_eq!(shown(), second);
    }

    #[tokio::test]
    async fn keys_that_others_can_read_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let journal = journal(root.path());
        let identity = || Identity::new(root.path(), &Config::default(), journal.clone(), Arc::new(SystemClock));
        identity().authority().await.unwrap();
        let key = root.path().join(DIRECTORY).join("ca.key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        let refused = identity().authority().await.unwrap_err();
        assert_eq!(refused.to_stable().code, "identity_exposed");
    }
}

//! The way out of one sandbox: the egress proxy on the sockets that the sandbox made inside its own network.
//!
//! Where a secret is bound to a host, the proxy has to look into TLS. For that every sandbox gets a certificate authority of its own, which it finds in a file together
//! with the system's; the file goes with the process, the authority's keys never leave the daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use palyra_egress::{
    Egress, EgressGrant, Intercept, ProxyAccess, ProxyHandle, ProxyOptions, SandboxAuthority, listener_from_fd,
};
use palyra_sandbox::Child;
use palyra_tools::{EffectId, ToolError};

use super::options::ProcessOptions;
use super::readiness::refused;

/// Where the system keeps the authorities that programs trust.
const SYSTEM_BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The variables by which common programs find such a file.
pub(super) const BUNDLE_VARIABLES: [&str; 7] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
];

/// What a sandbox with network needs before it starts.
pub(super) struct WayOut {
    grant: EgressGrant,
    authority: Option<(Arc<SandboxAuthority>, Bundle)>,
}

impl WayOut {
    /// Prepares the way out; `None` if the operator granted no network. Blocks.
    pub(super) fn prepare(
        egress: &Egress,
        options: &ProcessOptions,
        effect_id: &EffectId,
    ) -> Result<Option<Self>, ToolError> {
        if options.network.is_empty() {
            return Ok(None);
        }
        let mut grant = EgressGrant::new(effect_id.to_string());
        grant.rules.clone_from(&options.network);
        grant.private_hosts.clone_from(&options.private_hosts);
        grant.credentials.clone_from(&options.credentials);
        let looks_inside =
            !options.credentials.is_empty() || options.network.iter().any(|rule| !rule.covers_everything_inside());
        let authority = if looks_inside {
            grant.intercept = Intercept::WhenGranted;
            let authority = egress.authority(effect_id.as_str()).map_err(|error| refused(&error))?;
            let bundle = Bundle::write(effect_id, authority.pem())?;
            Some((authority, bundle))
        } else {
            None
        };
        Ok(Some(Self { grant, authority }))
    }

    /// The file of authorities that the sandbox may read, if there is one.
    pub(super) fn bundle(&self) -> Option<&Path> {
        self.authority.as_ref().map(|(_, bundle)| bundle.file.as_path())
    }

    /// Serves the proxies of a process that was started. They end when this is dropped.
    pub(super) fn serve(self, egress: &Egress, child: &mut Child) -> Result<Served, ToolError> {
        let mut handles = Vec::new();
        for socket in std::mem::take(&mut child.proxy_listeners) {
            let listener = listener_from_fd(socket).map_err(|error| refused(&error))?;
            let options = ProxyOptions { grant: self.grant.clone(), access: ProxyAccess::Open };
            let authority = self.authority.as_ref().map(|(authority, _)| Arc::clone(authority));
            handles.push(egress.serve_under(listener, options, authority).map_err(|error| refused(&error))?);
        }
        Ok(Served { _proxies: handles, _bundle: self.authority.map(|(_, bundle)| bundle) })
    }
}

/// The proxies of a living process.
#[derive(Default)]
pub(crate) struct Served {
    _proxies: Vec<ProxyHandle>,
    _bundle: Option<Bundle>,
}

/// A file of certificates in a directory of its own; both are removed when it is dropped.
struct Bundle {
    directory: PathBuf,
    file: PathBuf,
}

impl Bundle {
    fn write(effect_id: &EffectId, pem: &str) -> Result<Self, ToolError> {
        let name: String = effect_id.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
        let directory = std::env::temp_dir().join(format!("palyra-authorities-{}-{name}", std::process::id()));
        let file = directory.join("authorities.pem");
        let write = || {
            fs::create_dir(&directory)?;
            let mut text = fs::read_to_string(SYSTEM_BUNDLE).unwrap_or_default();
            text.push_str(pem);
            fs::write(&file, text)?;
            // Certificates are no secret, and a guest of root's daemon has an id of its own.
            fs::set_permissions(&directory, fs::Permissions::from_mode(0o755))?;
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644))
        };
        let written = write();
        let bundle = Self { directory, file };
        written.map_err(|error| ToolError::io(&bundle.file.display().to_string(), error))?;
        Ok(bundle)
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

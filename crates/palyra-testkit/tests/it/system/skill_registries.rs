//! Registries over TLS, served by a server that nobody here wrote: Python's own, with certificates of an authority that the operator names.

use std::io::BufRead as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use palyra_common::{Clock as _, SystemClock, Timestamp};
use palyra_skills::{ArchiveLimits, PublisherKey, RegistryLifetimes, RegistryRoles, RegistryWriter};
use palyra_testkit::TestContext;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;

use super::skills::{context, done, packed, refused};

/// Serves a directory as it is, unless the file `mode` beside it asks for something else.
const SERVER: &str = r#"
import functools, http.server, ssl, sys
directory, certificate, key, mode_file = sys.argv[1:]

class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        mode = open(mode_file).read()
        if mode == "redirect":
            self.send_response(302)
            self.send_header("Location", "https://elsewhere.example" + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif mode == "truncate" and "/artifacts/" in self.path:
            data = open(self.translate_path(self.path), "rb").read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[:len(data) // 2])
            self.close_connection = True
        elif mode == "fail":
            self.send_error(500)
        else:
            super().do_GET()

    def log_message(self, *arguments):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=directory))
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// Somebody who issues certificates.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }
}

/// A running server; it ends with the test.
struct Server {
    process: Child,
    port: u16,
    mode: PathBuf,
}

impl Server {
    /// Serves a directory under a certificate for `name`.
    fn start(files: &Path, served: &Path, authority: &Authority, name: &str) -> Self {
        std::fs::create_dir_all(files).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &authority.issuer).unwrap();
        let at = |name: &str| files.join(name);
        std::fs::write(at("server.py"), SERVER).unwrap();
        std::fs::write(at("certificate.pem"), certificate.pem()).unwrap();
        std::fs::write(at("key.pem"), key.serialize_pem()).unwrap();
        std::fs::write(at("mode"), "serve").unwrap();
        let mut process = Command::new("python3")
            .arg(at("server.py"))
            .arg(served)
            .args([at("certificate.pem"), at("key.pem"), at("mode")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().expect("the server says its port");
        Self { process, port, mode: at("mode") }
    }

    fn behave(&self, mode: &str) {
        std::fs::write(&self.mode, mode).unwrap();
    }

    fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A context that knows some registries, and whose daemon trusts an authority besides those of the system.
fn following(context: TestContext, authority: &Authority, registries: &[(&str, u16, &str)]) -> TestContext {
    let ca_file = context.root().join("authority.pem");
    std::fs::write(&ca_file, &authority.pem).unwrap();
    let lines: Vec<String> =
        registries.iter().map(|(name, port, path)| format!("{name} https://127.0.0.1:{port}/{path}")).collect();
    context
        .env("PALYRA_EGRESS_CA_FILE", ca_file.display())
        .env("PALYRA_EGRESS_PRIVATE_HOSTS", "127.0.0.1")
        .env("PALYRA_SKILLS_REGISTRIES", lines.join(","))
}

fn publish(context: &TestContext, directory: &str, file: &str) {
    done(context, &["skills", "registry", "publish", directory, file, "--key", "registry.key"]);
}

/// A registry as it was, under the same name again.
fn restore(saved: &Path, place: &Path) {
    std::fs::remove_dir_all(place).unwrap();
    palyra_testkit::copy_tree(saved, place).unwrap();
}

#[test]
fn a_skill_is_installed_and_updated_over_tls_from_a_foreign_server() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    let served = context.root().join("served");
    let authority = Authority::new("Registry test authority");
    let mut server = Server::start(&context.root().join("server"), &served, &authority, "127.0.0.1");
    let context = following(context, &authority, &[("team", server.port, "team"), ("stale", server.port, "stale/")]);
    for key in ["one.key", "registry.key"] {
        done(&context, &["skills", "keygen", key]);
    }
    let team = served.join("team");
    let directory = team.display().to_string();
    done(&context, &["skills", "registry", "create", &directory, "--key", "registry.key"]);
    publish(&context, &directory, &packed(&context, "0.1.0", "one.key"));
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    let installed = done(&context, &["skills", "install", "team/hello"]);
    assert!(installed.stdout.contains("hello 0.1.0") && installed.stdout.contains("enabled"), "{installed}");
    refused(&context, &["skills", "install", "team/nobody"], "registry_artifact_not_found");

    let saved = context.root().join("saved");
    palyra_testkit::copy_tree(&team, &saved).unwrap();
    let newer = packed(&context, "0.2.0", "one.key");
    publish(&context, &directory, &newer);
    // What does not come whole, from where it was asked for, is not taken.
    for (mode, code, word) in [
        ("redirect", "registry_unreachable", "redirects elsewhere"),
        ("fail", "registry_unreachable", "500"),
        ("truncate", "registry_unreachable", "artifacts/"),
    ] {
        server.behave(mode);
        let run = refused(&context, &["skills", "update", "team/hello"], code);
        assert!(run.stderr.contains(word), "{mode}: {run}");
    }
    server.behave("serve");
    let updated = done(&context, &["skills", "update", "team/hello"]);
    assert!(updated.stdout.contains("hello 0.2.0"), "{updated}");
    let run = done(&context, &["run", "--mode", "open", "use hello.echo"]);
    assert!(run.stdout.contains("Ada"), "{run}");

    // Old files under the same address; then files that nobody has signed anew for a month.
    let current = context.root().join("current");
    palyra_testkit::copy_tree(&team, &current).unwrap();
    restore(&saved, &team);
    refused(&context, &["skills", "update", "team/hello"], "registry_rollback");
    restore(&current, &team);
    refused(&context, &["skills", "update", "team/hello"], "skill_already_installed");
    stale(&context, &served.join("stale"), &newer);
    refused(&context, &["skills", "install", "stale/hello"], "registry_expired");

    server.stop();
    let run = refused(&context, &["skills", "update", "team/hello"], "registry_unreachable");
    assert!(run.stderr.contains("timestamp.json") || run.stderr.contains("root/"), "{run}");
    context.finish().unwrap();
}

/// A registry that was written a month ago and left alone.
fn stale(context: &TestContext, directory: &Path, archive: &str) {
    let key = PublisherKey::load(&context.workspace().join("registry.key")).unwrap();
    let lifetimes = RegistryLifetimes::default();
    let then = Timestamp(SystemClock.now().0 - i64::try_from(Duration::from_secs(30 * 86_400).as_millis()).unwrap());
    let mut root = RegistryWriter::draft_first_root(RegistryRoles::of_one(key.public()), lifetimes, then).unwrap();
    root.countersign(&key).unwrap();
    let mut writer = RegistryWriter::create(directory, &root, lifetimes, &[&key], then).unwrap();
    let bytes = std::fs::read(context.workspace().join(archive)).unwrap();
    writer.publish(&bytes, &ArchiveLimits::default(), &[&key], then).unwrap();
}

#[test]
fn a_server_without_the_right_certificate_is_not_listened_to() {
    let context = context("hello.echo", json!({"text": "Ada"}));
    let served = context.root().join("served");
    let (authority, stranger) = (Authority::new("Registry test authority"), Authority::new("Somebody else"));
    let servers = [
        Server::start(&context.root().join("stranger"), &served, &stranger, "127.0.0.1"),
        Server::start(&context.root().join("misnamed"), &served, &authority, "skills.example.org"),
    ];
    let [stranger, misnamed] = servers.each_ref().map(|server| server.port);
    let context = following(context, &authority, &[("stranger", stranger, "team"), ("misnamed", misnamed, "team")]);
    for key in ["one.key", "registry.key"] {
        done(&context, &["skills", "keygen", key]);
    }
    let directory = served.join("team").display().to_string();
    done(&context, &["skills", "registry", "create", &directory, "--key", "registry.key"]);
    publish(&context, &directory, &packed(&context, "0.1.0", "one.key"));
    done(&context, &["skills", "trust", "hello", "one.key.pub"]);
    for registry in ["stranger/hello", "misnamed/hello"] {
        let run = refused(&context, &["skills", "install", registry], "registry_unreachable");
        assert!(run.stderr.contains("certificate"), "{registry}: {run}");
    }
    let listed = done(&context, &["skills", "list"]);
    assert!(!listed.stdout.contains("hello"), "{listed}");
}

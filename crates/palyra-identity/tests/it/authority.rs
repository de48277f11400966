//! The authority's files: kept over restarts, private, and never replaced in silence.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use palyra_common::{PrincipalRole, ToStableError as _};
use palyra_identity::{AuthorityOptions, ClientAuth, ClientCredentials, PrincipalId, TlsVersions};

use crate::support::{DAY, Place, client, owner, shake};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn fails_with(place: &Place) -> String {
    place.open_with(AuthorityOptions::default()).unwrap_err().to_stable().code
}

#[test]
fn everything_is_kept_over_a_restart() {
    let place = Place::new();
    let (first, credentials) = {
        let authority = place.open();
        (authority.server_certificate().unwrap(), client(&authority))
    };
    let again = place.open();
    assert_eq!(again.server_certificate().unwrap(), first);
    let server = again.server_config(&[], ClientAuth::Required, TlsVersions::Tls13Only).unwrap();
    let config = credentials.client_config(&[], TlsVersions::Tls13Only).unwrap();
    let shaken = shake(&server, &config, "localhost").unwrap();
    assert_eq!(again.identify(&shaken.peer).unwrap(), credentials.identity);

    again.revoke(&credentials.identity.serial, &owner()).unwrap();
    let third = place.open();
    assert_eq!(third.revocations()[0].serial, credentials.identity.serial);
    let server = third.server_config(&[], ClientAuth::Required, TlsVersions::Tls13Only).unwrap();
    assert!(shake(&server, &config, "localhost").is_err(), "a revocation survives");
}

#[test]
fn files_are_private_from_the_start() {
    let place = Place::new();
    let authority = place.open();
    authority.ensure_local_owner(&place.path().join("clients/owner"), &owner()).unwrap();
    authority.revoke(&client(&authority).identity.serial, &owner()).unwrap();
    assert_eq!(mode(&place.path()), 0o700);
    let mut seen = 0;
    for directory in [place.path(), place.path().join("clients/owner")] {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
            seen += 1;
        }
    }
    assert_eq!(seen, 9, "ca.key, ca.pem, server.pem, issued.json, revoked.json, clients, and three for the client");
}

#[test]
fn exposed_files_are_refused() {
    for name in ["ca.key", "ca.pem", "server.pem"] {
        let place = Place::new();
        drop(place.open());
        fs::set_permissions(place.path().join(name), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(fails_with(&place), "identity_exposed", "{name}");
    }
    let place = Place::new();
    drop(place.open());
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(fails_with(&place), "identity_exposed");
}

#[test]
fn an_authority_is_never_replaced_in_silence() {
    let place = Place::new();
    let pem = place.open().pem().to_owned();
    let (key, certificate) = (place.path().join("ca.key"), place.path().join("ca.pem"));
    let saved = fs::read(&key).unwrap();

    fs::remove_file(&key).unwrap();
    assert_eq!(fails_with(&place), "identity_file_unusable", "a certificate without its key");
    let other = Place::new();
    drop(other.open());
    fs::copy(other.path().join("ca.key"), &key).unwrap();
    assert_eq!(fails_with(&place), "identity_file_unusable", "somebody else's key");
    fs::write(&key, "nonsense").unwrap();
    assert_eq!(fails_with(&place), "identity_file_unusable");
    fs::write(&key, &saved).unwrap();
    assert_eq!(place.open().pem(), pem);
    fs::write(&certificate, "nonsense").unwrap();
    assert_eq!(fails_with(&place), "identity_file_unusable");
}

/// The process ended between the key and the certificate, when the authority was made.
#[test]
fn a_key_alone_is_taken_up() {
    let place = Place::new();
    drop(place.open());
    let key = fs::read(place.path().join("ca.key")).unwrap();
    fs::remove_file(place.path().join("ca.pem")).unwrap();
    fs::remove_file(place.path().join("server.pem")).unwrap();
    let authority = place.open();
    assert_eq!(fs::read(place.path().join("ca.key")).unwrap(), key);
    let server = authority.server_config(&[], ClientAuth::Required, TlsVersions::Tls13Only).unwrap();
    let config = client(&authority).client_config(&[], TlsVersions::Tls13Only).unwrap();
    assert!(shake(&server, &config, "localhost").is_ok());
}

#[test]
fn the_server_certificate_follows_the_configured_names() {
    let place = Place::new();
    let first = place.open().server_certificate().unwrap();
    let named =
        AuthorityOptions { names: vec!["palyra.example".into(), "192.0.2.7".into()], ..AuthorityOptions::default() };
    let authority = place.open_with(named.clone()).unwrap();
    assert_ne!(authority.server_certificate().unwrap(), first, "the old one lacks the names");
    let server = authority.server_config(&[], ClientAuth::None, TlsVersions::Tls13Only).unwrap();
    let bare = palyra_identity::server_only_client_config(authority.pem(), &[], TlsVersions::Tls13Only).unwrap();
    for name in ["palyra.example", "192.0.2.7", "localhost", "::1"] {
        assert!(shake(&server, &bare, name).is_ok(), "{name}");
    }
    let again = place.open_with(named).unwrap();
    assert_eq!(again.server_certificate(), authority.server_certificate());
    let bad = AuthorityOptions { names: vec!["not a name".into()], ..AuthorityOptions::default() };
    assert_eq!(place.open_with(bad).unwrap_err().to_stable().code, "certificate_request_invalid");
    fs::write(place.path().join("server.pem"), "nonsense").unwrap();
    assert!(place.open_with(AuthorityOptions::default()).is_ok(), "a broken server certificate is made anew");
}

#[test]
fn the_local_owners_certificate_is_kept_renewed_and_replaced() {
    let place = Place::new();
    let authority = place.open();
    let directory = place.path().join("owner");
    let first = authority.ensure_local_owner(&directory, &owner()).unwrap();
    assert_eq!((first.identity.role, &first.identity.principal), (PrincipalRole::Owner, &owner()));
    let kept = authority.ensure_local_owner(&directory, &owner()).unwrap();
    assert_eq!(kept.identity, first.identity);

    place.clock.advance(DAY * 10);
    let renewed = authority.ensure_local_owner(&directory, &owner()).unwrap();
    assert_ne!(renewed.identity.serial, first.identity.serial, "due when a third is left");
    assert_eq!(renewed.identity.device, first.identity.device);
    assert_eq!(renewed.key_pem.expose(), first.key_pem.expose(), "a reader never sees a key without its certificate");
    assert_eq!(ClientCredentials::read(&directory).unwrap().unwrap().identity, renewed.identity);

    authority.revoke(&renewed.identity.serial, &owner()).unwrap();
    let replaced = authority.ensure_local_owner(&directory, &owner()).unwrap();
    assert_ne!(replaced.identity.device, renewed.identity.device);
    assert_ne!(replaced.key_pem.expose(), renewed.key_pem.expose(), "a key that was taken back is not used again");

    let somebody = PrincipalId::uid(2);
    let other = authority.ensure_local_owner(&directory, &somebody).unwrap();
    assert_eq!(other.identity.principal, somebody);

    fs::write(directory.join("client.pem"), "nonsense").unwrap();
    let mended = authority.ensure_local_owner(&directory, &somebody).unwrap();
    assert_eq!(ClientCredentials::read(&directory).unwrap().unwrap().identity, mended.identity);
    fs::set_permissions(directory.join("client.key"), fs::Permissions::from_mode(0o640)).unwrap();
    let error = authority.ensure_local_owner(&directory, &somebody).unwrap_err();
    assert_eq!(error.to_stable().code, "identity_exposed");
}

#[test]
fn a_key_and_a_certificate_that_do_not_belong_together_are_refused() {
    let place = Place::new();
    let authority = place.open();
    let (one, two) = (place.path().join("one"), place.path().join("two"));
    authority.ensure_local_owner(&one, &owner()).unwrap();
    authority.ensure_local_owner(&two, &owner()).unwrap();
    assert!(ClientCredentials::read(&place.path().join("none")).unwrap().is_none());
    fs::copy(two.join("client.key"), one.join("client.key")).unwrap();
    assert_eq!(ClientCredentials::read(&one).unwrap_err().to_stable().code, "tls_setup_failed");
}

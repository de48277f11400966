use super::*;
use crate::engine::{Allocation, config};

fn engine() -> Engine {
    Engine::new(&config(Allocation::OnDemand { calls: 1 })).unwrap()
}

fn cache(dir: &Path, key: u8, fingerprint: u8) -> Cache {
    let key = CacheKey::from_bytes([key; 32]);
    Cache::open(CacheOptions { dir: dir.to_owned(), key }, Digest([fingerprint; 32])).unwrap()
}

/// A stored module: its digest and the path of its file.
fn stored(cache: &Cache, engine: &Engine, text: &str) -> (Digest, PathBuf) {
    let wasm = wat::parse_str(text).unwrap();
    let digest = Digest::of(&wasm);
    let code = Module::from_binary(engine, &wasm).unwrap().serialize().unwrap();
    cache.store(digest, PluginKind::CoreModule, &code);
    (digest, cache.path(digest))
}

#[test]
fn code_comes_back_for_the_same_module_and_engine_only() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let cache_one = cache(dir.path(), 1, 1);
    let (digest, path) = stored(&cache_one, &engine, "(module)");
    assert!(cache_one.load(&engine, digest, PluginKind::CoreModule).is_some());
    assert!(cache_one.load(&engine, Digest([0; 32]), PluginKind::CoreModule).is_none());
    assert_eq!(cache_one.stats(), CacheStats { hits: 1, misses: 1, stored: 1, ..CacheStats::default() });
    // Another engine looks for another file, and does not take this one under its own name either.
    let other = cache(dir.path(), 1, 2);
    assert!(other.load(&engine, digest, PluginKind::CoreModule).is_none());
    fs::copy(&path, other.path(digest)).unwrap();
    assert!(other.load(&engine, digest, PluginKind::CoreModule).is_none());
    assert_eq!(other.stats(), CacheStats { misses: 1, refused: 1, ..CacheStats::default() });
    assert!(!other.path(digest).exists() && path.exists());
}

#[test]
fn every_flipped_bit_is_noticed() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let cache = cache(dir.path(), 1, 1);
    let (digest, path) = stored(&cache, &engine, "(module (func))");
    let good = fs::read(&path).unwrap();
    for position in [0, 15, 16, 47, 48, 49, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[position] ^= 1;
        fs::write(&path, &bad).unwrap();
        assert!(cache.load(&engine, digest, PluginKind::CoreModule).is_none(), "bit at {position}");
        assert!(!path.exists());
    }
    for length in [0, 10, 16, 40, 48, good.len() - 1] {
        fs::write(&path, &good[..length]).unwrap();
        assert!(cache.load(&engine, digest, PluginKind::CoreModule).is_none(), "{length} bytes");
    }
    assert_eq!(cache.stats().refused, 14);
    fs::write(&path, &good).unwrap();
    assert!(cache.load(&engine, digest, PluginKind::CoreModule).is_some());
    assert!(cache.load(&engine, digest, PluginKind::Component).is_none(), "the kind is authenticated too");
}

#[test]
fn files_of_others_are_refused() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let cache_one = cache(dir.path(), 1, 1);
    let (victim, path) = stored(&cache_one, &engine, "(module)");
    let (_, evil) = stored(&cache_one, &engine, "(module (func (export \"evil\")))");
    let good = fs::read(&path).unwrap();
    fs::copy(&evil, &path).unwrap();
    assert!(cache_one.load(&engine, victim, PluginKind::CoreModule).is_none(), "a file of another module");
    // The same bytes under another key.
    let foreign = tempfile::tempdir().unwrap();
    let (_, foreign_path) = stored(&cache(foreign.path(), 9, 1), &engine, "(module)");
    fs::copy(&foreign_path, &path).unwrap();
    assert!(cache_one.load(&engine, victim, PluginKind::CoreModule).is_none(), "a file under another key");
    // Authentic, but behind a link that could be turned later.
    let aside = dir.path().join("aside");
    fs::write(&aside, &good).unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&aside, &path).unwrap();
        assert!(cache_one.load(&engine, victim, PluginKind::CoreModule).is_none(), "a link");
        assert!(aside.exists() && fs::symlink_metadata(&path).is_err(), "the link goes, its target stays");
    }
    fs::create_dir(&path).unwrap();
    assert!(cache_one.load(&engine, victim, PluginKind::CoreModule).is_none(), "a folder");
    assert!(!path.exists());
}

#[test]
fn authentic_code_of_another_version_is_refused_by_the_engine() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let cache = cache(dir.path(), 1, 1);
    let mut other = config(Allocation::OnDemand { calls: 1 });
    other.module_version(wasmtime::ModuleVersionStrategy::Custom("another".to_owned())).unwrap();
    let (digest, _) = stored(&cache, &Engine::new(&other).unwrap(), "(module)");
    assert!(cache.load(&engine, digest, PluginKind::CoreModule).is_none());
    assert_eq!(cache.stats().refused, 1);
}

#[test]
fn a_module_is_forgotten_with_its_files() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let cache = cache(dir.path(), 1, 1);
    let (digest, path) = stored(&cache, &engine, "(module)");
    let (_, kept) = stored(&cache, &engine, "(module (func))");
    cache.forget(digest).unwrap();
    assert!(!path.exists() && kept.exists());
}

#[cfg(unix)]
#[test]
fn folder_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let inner = dir.path().join("a/b");
    let (_, path) = stored(&cache(&inner, 1, 1), &engine, "(module)");
    assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[cfg(unix)]
#[test]
fn a_key_is_made_once_and_refused_when_others_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let first = CacheKey::load_or_create(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(CacheKey::load_or_create(&path).unwrap().bytes(), first.bytes());
    assert_eq!(format!("{first:?}"), "CacheKey([redacted])");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(matches!(CacheKey::load_or_create(&path), Err(PluginError::Cache(_))));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    // Only root can give a file away.
    if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
        let refused = CacheKey::load_or_create(&path).unwrap_err().to_string();
        assert!(refused.contains("another user"), "{refused}");
        std::os::unix::fs::chown(&path, Some(rustix::process::geteuid().as_raw()), None).unwrap();
    }
    fs::write(&path, b"short").unwrap();
    assert!(matches!(CacheKey::load_or_create(&path), Err(PluginError::Cache(_))));
}

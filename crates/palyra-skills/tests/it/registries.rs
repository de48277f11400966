//! Registries, honest and under attack.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use palyra_common::Timestamp;
use palyra_skills::{
    ArchiveLimits, DirectoryRegistry, Fetched, FollowedRegistry, PublisherKey, RegistryBook, RegistryFetch,
    RegistryLifetimes, RegistryRole, RegistryRoles, RegistryState, RegistryWriter, RevocationList, RevokedKey, RootPin,
    SkillError, download,
};

use crate::skill::{NOW, Skill, key};

const DAY: Duration = Duration::from_secs(86_400);

/// A registry whose files somebody else decides about.
#[derive(Default)]
struct Attacked {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    asked: Mutex<Vec<(String, u64)>>,
}

impl Attacked {
    fn snapshot(directory: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for part in ["", "root", "index", "artifacts"] {
            for entry in std::fs::read_dir(directory.join(part)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned();
                    files.insert(name, std::fs::read(&path).unwrap());
                }
            }
        }
        files
    }

    fn serve(&self, files: BTreeMap<String, Vec<u8>>) {
        *self.files.lock().unwrap() = files;
    }

    fn change(&self, path: &str, bytes: Option<Vec<u8>>) {
        match bytes {
            Some(bytes) => self.files.lock().unwrap().insert(path.to_owned(), bytes),
            None => self.files.lock().unwrap().remove(path),
        };
    }
}

#[async_trait]
impl RegistryFetch for Attacked {
    async fn fetch(&self, path: &str, limit: u64) -> Result<Fetched, String> {
        self.asked.lock().unwrap().push((path.to_owned(), limit));
        // It ignores the limit, as a careless port might: the client has to notice.
        Ok(self.files.lock().unwrap().get(path).map_or(Fetched::Missing, |bytes| Fetched::Bytes(bytes.clone())))
    }
}

/// A registry whose root takes two of three keys; index and timestamp have keys of their own.
struct Scene {
    directory: tempfile::TempDir,
    writer: RegistryWriter,
    attacked: Attacked,
}

const INDEX_KEY: u8 = 20;
const TIMESTAMP_KEY: u8 = 30;

fn roles(root: &[u8], index: u8, timestamp: u8) -> RegistryRoles {
    RegistryRoles {
        root: RegistryRole { keys: root.iter().map(|number| key(*number).public()).collect(), threshold: 2 },
        index: RegistryRole::of_one(key(index).public()),
        timestamp: RegistryRole::of_one(key(timestamp).public()),
    }
}

fn online() -> [PublisherKey; 2] {
    [key(INDEX_KEY), key(TIMESTAMP_KEY)]
}

fn scene() -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let lifetimes = RegistryLifetimes::default();
    let mut root =
        RegistryWriter::draft_first_root(roles(&[10, 11, 12], INDEX_KEY, TIMESTAMP_KEY), lifetimes, NOW).unwrap();
    root.countersign(&key(10)).unwrap();
    root.countersign(&key(11)).unwrap();
    let [index, timestamp] = online();
    let mut writer = RegistryWriter::create(directory.path(), &root, lifetimes, &[&index, &timestamp], NOW).unwrap();
    writer.publish(&Skill::default().signed(), &ArchiveLimits::default(), &[&index, &timestamp], NOW).unwrap();
    let attacked = Attacked::default();
    attacked.serve(Attacked::snapshot(directory.path()));
    Scene { directory, writer, attacked }
}

impl Scene {
    fn publish(&mut self, version: &str, now: Timestamp) {
        let [index, timestamp] = online();
        let skill = Skill { version: version.to_owned(), ..Skill::default() };
        self.writer.publish(&skill.signed(), &ArchiveLimits::default(), &[&index, &timestamp], now).unwrap();
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        Attacked::snapshot(self.directory.path())
    }

    /// Puts a new root in place, signed by these keys.
    fn rotate(&mut self, next: RegistryRoles, root_signers: &[u8], online: [u8; 2]) -> Result<(), SkillError> {
        let mut root = self.writer.draft_next_root(next, NOW).unwrap();
        for signer in root_signers {
            root.countersign(&key(*signer)).unwrap();
        }
        let [index, timestamp] = online.map(key);
        self.writer.adopt_root(&root, &[&index, &timestamp], NOW)
    }
}

async fn begin(fetch: &dyn RegistryFetch) -> RegistryState {
    RegistryState::begin(fetch, 1, RootPin::FirstUse).await.unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, SkillError>) -> &'static str {
    result.unwrap_err().code()
}

#[tokio::test]
async fn an_honest_registry_serves_what_was_published() {
    let mut scene = scene();
    scene.publish("1.1.0", NOW);
    scene.publish("2.0.0-rc.1", NOW);
    let fetch = DirectoryRegistry::new(scene.directory.path());
    let mut state = RegistryState::begin(&fetch, 1, RootPin::Digest(scene.writer.first_root_digest())).await.unwrap();
    let index = state.refresh(&fetch, NOW).await.unwrap();
    let newest = index.find(&"acme.echo".parse().unwrap(), None).unwrap();
    assert_eq!(newest.version.to_string(), "1.1.0");
    let (bytes, archive) = download(&fetch, newest, &ArchiveLimits::default()).await.unwrap();
    assert_eq!(bytes, Skill { version: "1.1.0".to_owned(), ..Skill::default() }.signed());
    assert_eq!(archive.content(), newest.content);
    assert_eq!(index.search("ECHO").len(), 1);
    assert_eq!(code(index.find(&"acme.none".parse().unwrap(), None)), "registry_artifact_not_found");
    // Taken back, it is offered no more, but told of.
    let [index_key, timestamp_key] = online();
    let (skill, version) = (newest.skill_id.clone(), newest.version.clone());
    scene.writer.revoke(&skill, &version, "broken", &[&index_key, &timestamp_key], NOW).unwrap();
    let index = state.refresh(&fetch, NOW).await.unwrap();
    assert_eq!(index.find(&skill, None).unwrap().version.to_string(), "1.0.0");
    assert_eq!(index.revoked.len(), 1);
    // State survives being written down, and the registry being opened again.
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<RegistryState>(&text).unwrap(), state);
    let mut writer = RegistryWriter::open(scene.directory.path(), RegistryLifetimes::default()).unwrap();
    assert_eq!(writer.index(), scene.writer.index());
    writer.renew(&[&index_key, &timestamp_key], NOW).unwrap();
    writer.renew_timestamp(&[&timestamp_key], NOW).unwrap();
    state.refresh(&fetch, NOW).await.unwrap();
}

#[tokio::test]
async fn publishing_refuses_what_contradicts_itself() {
    let mut scene = scene();
    let [index, timestamp] = online();
    let signers: [&PublisherKey; 2] = [&index, &timestamp];
    let mut publish = |bytes: &[u8], signers: &[&PublisherKey]| {
        code(scene.writer.publish(bytes, &ArchiveLimits::default(), signers, NOW))
    };
    assert_eq!(publish(&Skill::default().signed(), &signers), "skill_already_installed");
    let changed = Skill { description: "Another.".to_owned(), ..Skill::default() };
    assert_eq!(publish(&changed.signed(), &signers), "skill_version_conflict");
    let taken = Skill { version: "3.0.0".to_owned(), publisher: "evil".to_owned(), ..Skill::default() };
    assert_eq!(publish(&taken.signed(), &signers), "skill_publisher_changed");
    let newer = Skill { version: "3.0.0".to_owned(), ..Skill::default() };
    assert_eq!(publish(&newer.packed(), &signers), "skill_unsigned");
    // The wrong keys, or not all of them: nothing changes.
    assert_eq!(publish(&newer.signed(), &[&timestamp]), "registry_untrusted");
    assert_eq!(publish(&newer.signed(), &[&index]), "registry_untrusted");
    assert_eq!(scene.writer.index().artifacts.len(), 1);
}

#[tokio::test]
async fn rollback_to_older_files_is_noticed() {
    let mut scene = scene();
    let old = scene.files();
    scene.publish("1.1.0", NOW);
    scene.attacked.serve(scene.files());
    let mut state = begin(&scene.attacked).await;
    state.refresh(&scene.attacked, NOW).await.unwrap();
    scene.attacked.serve(old.clone());
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_rollback");
    // Only the index is old: the new timestamp announces another.
    let mut mixed = scene.files();
    mixed.insert("index/3.json".to_owned(), old["index/2.json"].clone());
    scene.attacked.serve(mixed);
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_mismatch");
}

#[tokio::test]
async fn a_frozen_registry_expires() {
    let scene = scene();
    let mut state = begin(&scene.attacked).await;
    state.refresh(&scene.attacked, NOW.plus(6 * DAY)).await.unwrap();
    assert_eq!(code(state.refresh(&scene.attacked, NOW.plus(8 * DAY)).await), "registry_expired");
    assert_eq!(code(state.refresh(&scene.attacked, NOW.plus(400 * DAY)).await), "registry_expired");
}

#[tokio::test]
async fn files_of_different_times_do_not_mix() {
    let mut scene = scene();
    let first = scene.files();
    scene.publish("1.1.0", NOW);
    let mut mixed = scene.files();
    // The older timestamp with the newer index under the older name.
    mixed.insert("timestamp.json".to_owned(), first["timestamp.json"].clone());
    mixed.insert("index/2.json".to_owned(), scene.files()["index/3.json"].clone());
    scene.attacked.serve(mixed);
    let mut state = begin(&scene.attacked).await;
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_mismatch");
    // A statement of one kind does not pass for another, though the same key may have signed both.
    let one = key(40);
    let directory = tempfile::tempdir().unwrap();
    let mut root =
        RegistryWriter::draft_first_root(RegistryRoles::of_one(one.public()), RegistryLifetimes::default(), NOW)
            .unwrap();
    root.countersign(&one).unwrap();
    RegistryWriter::create(directory.path(), &root, RegistryLifetimes::default(), &[&one], NOW).unwrap();
    let attacked = Attacked::default();
    attacked.serve(Attacked::snapshot(directory.path()));
    let mut state = begin(&attacked).await;
    let index = attacked.files.lock().unwrap()["index/1.json"].clone();
    attacked.change("timestamp.json", Some(index));
    assert_eq!(code(state.refresh(&attacked, NOW).await), "skill_statement_invalid");
}

#[tokio::test]
async fn endless_swollen_and_wrong_files_are_cut_off() {
    let scene = scene();
    let mut state = begin(&scene.attacked).await;
    let index = state.refresh(&scene.attacked, NOW).await.unwrap();
    let artifact = index.artifacts[0].clone();
    let path = format!("artifacts/{}.palyra-skill", artifact.sha256.to_hex());
    let good = scene.files()[&path].clone();
    let mut longer = good.clone();
    longer.push(0);
    let mut other = good.clone();
    other[100] ^= 1;
    for bad in [longer, good[..good.len() - 1].to_vec(), other] {
        scene.attacked.change(&path, Some(bad));
        assert_eq!(code(download(&scene.attacked, &artifact, &ArchiveLimits::default()).await), "registry_mismatch");
    }
    scene.attacked.change(&path, None);
    assert_eq!(code(download(&scene.attacked, &artifact, &ArchiveLimits::default()).await), "registry_unreachable");
    // Every file was asked for with a limit, and one that is known was asked for with its exact length.
    assert!(scene.attacked.asked.lock().unwrap().iter().all(|(_, limit)| *limit <= 64 << 20));
    assert!(scene.attacked.asked.lock().unwrap().contains(&(path, artifact.length)));
    for file in ["timestamp.json", "root/2.json", "index/2.json"] {
        scene.attacked.serve(scene.files());
        scene.attacked.change(file, Some(vec![b' '; 17 << 20]));
        assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_mismatch", "{file}");
    }
    // An artifact that is another than the index says, under a digest that fits.
    let impostor = Skill { id: "acme.impostor".to_owned(), ..Skill::default() }.signed();
    let mut lie = artifact;
    (lie.length, lie.sha256) = (impostor.len() as u64, palyra_common::Digest::of(&impostor));
    scene.attacked.change(&format!("artifacts/{}.palyra-skill", lie.sha256.to_hex()), Some(impostor));
    assert_eq!(code(download(&scene.attacked, &lie, &ArchiveLimits::default()).await), "registry_mismatch");
}

#[tokio::test]
async fn another_root_does_not_get_in() {
    let scene = scene();
    // Somebody with keys of their own sets up the same registry.
    let forged = tempfile::tempdir().unwrap();
    let thief = key(66);
    let mut root =
        RegistryWriter::draft_first_root(RegistryRoles::of_one(thief.public()), RegistryLifetimes::default(), NOW)
            .unwrap();
    root.countersign(&thief).unwrap();
    let writer = RegistryWriter::create(forged.path(), &root, RegistryLifetimes::default(), &[&thief], NOW).unwrap();
    let forged_fetch = DirectoryRegistry::new(forged.path());
    let pin = RootPin::Digest(scene.writer.first_root_digest());
    assert_eq!(code(RegistryState::begin(&forged_fetch, 1, pin).await), "registry_mismatch");
    // A client that follows the true registry does not take the forged files.
    let mut state = begin(&scene.attacked).await;
    scene.attacked.serve(Attacked::snapshot(forged.path()));
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_untrusted");
    // Nor the forged root as a successor.
    let mut next = writer.draft_next_root(RegistryRoles::of_one(thief.public()), NOW).unwrap();
    next.countersign(&thief).unwrap();
    scene.attacked.serve(scene.files());
    scene.attacked.change("root/2.json", Some(next.to_bytes().unwrap()));
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_untrusted");
}

#[tokio::test]
async fn keys_below_the_threshold_change_nothing() {
    let mut scene = scene();
    let thief = roles(&[66, 67], 66, 67);
    // One of the three root keys was stolen; signing twice does not make it two.
    assert_eq!(code(scene.rotate(thief.clone(), &[10, 66, 67], [66, 67])), "registry_untrusted");
    let mut root = scene.writer.draft_next_root(thief, NOW).unwrap();
    for signer in [10, 10, 66, 67] {
        root.countersign(&key(signer)).unwrap();
    }
    let mut state = begin(&scene.attacked).await;
    scene.attacked.change("root/2.json", Some(root.to_bytes().unwrap()));
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_untrusted");
    assert_eq!(state.root_version().unwrap(), 1);
    // A threshold that nobody can reach, or none at all, is no root.
    for threshold in [0, 3] {
        let mut broken = roles(&[10, 11], INDEX_KEY, TIMESTAMP_KEY);
        broken.root.threshold = threshold;
        assert_eq!(code(scene.rotate(broken, &[10, 11], [INDEX_KEY, TIMESTAMP_KEY])), "skill_statement_invalid");
    }
    let mut doubled = roles(&[10, 10], INDEX_KEY, TIMESTAMP_KEY);
    doubled.root.threshold = 2;
    assert_eq!(code(scene.rotate(doubled, &[10, 11], [INDEX_KEY, TIMESTAMP_KEY])), "skill_statement_invalid");
}

#[tokio::test]
async fn stolen_online_keys_are_replaced_and_their_numbers_forgotten() {
    let mut scene = scene();
    let mut state = begin(&scene.attacked).await;
    state.refresh(&scene.attacked, NOW).await.unwrap();
    // The thief pushes the versions up, so that nothing true would ever be newer.
    let [index, timestamp] = online();
    let mut stolen = RegistryWriter::open(scene.directory.path(), RegistryLifetimes::default()).unwrap();
    for _ in 0..20 {
        stolen.renew(&[&index, &timestamp], NOW).unwrap();
    }
    scene.attacked.serve(scene.files());
    state.refresh(&scene.attacked, NOW).await.unwrap();
    // The owners replace both keys from what they have; clients follow.
    scene.rotate(roles(&[10, 11, 12], 21, 31), &[11, 12], [21, 31]).unwrap();
    scene.attacked.serve(scene.files());
    let index = state.refresh(&scene.attacked, NOW).await.unwrap();
    assert_eq!((index.version, index.root_version, state.root_version().unwrap()), (3, 2, 2));
    // What the thief signs counts no more, and the old root is not taken again.
    scene.attacked.change("root/3.json", Some(scene.files()["root/1.json"].clone()));
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_rollback");
    assert_eq!(code(scene.writer.renew(&online().iter().collect::<Vec<_>>(), NOW)), "registry_untrusted");
}

#[tokio::test]
async fn a_root_that_is_held_back_is_noticed() {
    let mut scene = scene();
    let mut state = begin(&scene.attacked).await;
    // Same online keys, new root keys: whoever hides root 2 cannot hide that the index names it.
    scene.rotate(roles(&[10, 11, 13], INDEX_KEY, TIMESTAMP_KEY), &[10, 11], [INDEX_KEY, TIMESTAMP_KEY]).unwrap();
    scene.attacked.serve(scene.files());
    scene.attacked.change("root/2.json", None);
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_mismatch");
    // Far behind, a client follows all roots.
    for _ in 0..3 {
        scene.rotate(roles(&[10, 11, 13], INDEX_KEY, TIMESTAMP_KEY), &[10, 11], [INDEX_KEY, TIMESTAMP_KEY]).unwrap();
    }
    scene.attacked.serve(scene.files());
    state.refresh(&scene.attacked, NOW).await.unwrap();
    assert_eq!(state.root_version().unwrap(), 5);
}

#[tokio::test]
async fn two_timestamps_of_one_version_are_noticed() {
    let mut scene = scene();
    let before = scene.files();
    let mut state = begin(&scene.attacked).await;
    let [_, timestamp] = online();
    scene.writer.renew_timestamp(&[&timestamp], NOW).unwrap();
    let one = scene.files();
    // The same number again, from the state before.
    for (path, bytes) in &before {
        std::fs::write(scene.directory.path().join(path), bytes).unwrap();
    }
    let mut other = RegistryWriter::open(scene.directory.path(), RegistryLifetimes::default()).unwrap();
    other.renew_timestamp(&[&timestamp], NOW.plus(DAY)).unwrap();
    scene.attacked.serve(one);
    state.refresh(&scene.attacked, NOW).await.unwrap();
    scene.attacked.serve(scene.files());
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_mismatch");
}

#[tokio::test]
async fn what_is_remembered_is_kept_and_never_begun_anew_in_silence() {
    let scene = scene();
    let fetch = DirectoryRegistry::new(scene.directory.path());
    let place = tempfile::tempdir().unwrap();
    let book = RegistryBook::open(&place.path().join("registries")).unwrap();
    let name: palyra_skills::RegistryName = "main".parse().unwrap();
    let location = scene.directory.path().to_str().unwrap().parse().unwrap();
    let mut followed = FollowedRegistry { name: name.clone(), location, state: begin(&fetch).await };
    book.add(&followed).unwrap();
    assert_eq!(code(book.add(&followed)), "skill_file_unusable");
    followed.state.refresh(&fetch, NOW).await.unwrap();
    book.save(&followed).unwrap();
    assert_eq!(book.list().unwrap(), [followed]);
    std::fs::write(place.path().join("registries/main.json"), "{}").unwrap();
    assert_eq!(code(book.get(&name)), "skill_statement_invalid");
    assert_eq!(code(book.list()), "skill_statement_invalid");
    book.remove(&name).unwrap();
    assert!(book.list().unwrap().is_empty());
}

#[tokio::test]
async fn a_new_root_needs_the_word_of_its_own_keys() {
    let mut scene = scene();
    // Whoever may name new keys has to show that somebody holds them, or the registry would be lost.
    let next = roles(&[70, 71], INDEX_KEY, TIMESTAMP_KEY);
    assert_eq!(code(scene.rotate(next.clone(), &[10, 11], [INDEX_KEY, TIMESTAMP_KEY])), "registry_untrusted");
    let mut root = scene.writer.draft_next_root(next.clone(), NOW).unwrap();
    for signer in [10, 11, 70] {
        root.countersign(&key(signer)).unwrap();
    }
    let mut state = begin(&scene.attacked).await;
    scene.attacked.change("root/2.json", Some(root.to_bytes().unwrap()));
    assert_eq!(code(state.refresh(&scene.attacked, NOW).await), "registry_untrusted");
    scene.rotate(next, &[10, 11, 70, 71], [INDEX_KEY, TIMESTAMP_KEY]).unwrap();
    scene.attacked.serve(scene.files());
    state.refresh(&scene.attacked, NOW).await.unwrap();
}

#[tokio::test]
async fn an_old_index_expires_under_a_new_timestamp() {
    let mut scene = scene();
    let later = NOW.plus(100 * DAY);
    let [_, timestamp] = online();
    scene.writer.renew_timestamp(&[&timestamp], later).unwrap();
    scene.attacked.serve(scene.files());
    let mut state = begin(&scene.attacked).await;
    match state.refresh(&scene.attacked, later).await.unwrap_err() {
        SkillError::RegistryExpired { path, .. } => assert_eq!(path, "index/2.json"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_registry_passes_on_the_newest_list_of_a_publisher() {
    let mut scene = scene();
    let [index_key, timestamp_key] = online();
    let signers = [&index_key, &timestamp_key];
    let lost = |number| vec![RevokedKey { key_id: key(number).public().id(), reason: "lost".to_owned() }];
    let first = RevocationList::none("acme".parse().unwrap()).and(lost(41), Vec::new(), NOW);
    let second = first.clone().and(lost(42), Vec::new(), NOW);
    let (first, second) = (first.sign(&key(1)).unwrap(), second.sign(&key(1)).unwrap());
    scene.writer.announce(&first, &signers, NOW).unwrap();
    scene.writer.announce(&second, &signers, NOW).unwrap();
    for known in [&first, &second] {
        assert_eq!(code(scene.writer.announce(known, &signers, NOW)), "skill_revocation_refused");
    }
    let stranger = RevocationList::none("zeta".parse().unwrap()).and(lost(43), Vec::new(), NOW).sign(&key(9)).unwrap();
    assert_eq!(code(scene.writer.announce(&stranger, &signers, NOW)), "skill_revocation_refused");
    let fetch = DirectoryRegistry::new(scene.directory.path());
    let mut state = begin(&fetch).await;
    assert_eq!(state.refresh(&fetch, NOW).await.unwrap().revocations, [second]);
}

//! Sessions of the console: a random value in a cookie stands for a principal until it is idle or old for too long.
//!
//! Only the digest of the value is kept, and only in memory: a restart ends all sessions. A request that changes something must also
//! carry the session's CSRF token, a keyed hash of the session that a page can read from the daemon and another site cannot.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use palyra_common::{Clock, Digest, SecretString, Timestamp};
use serde::Serialize;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::{IdentityError, Principal, PrincipalId, Refusal, TokenId, Via, random};

/// Bytes of a session's digest that name it in records.
const ID_BYTES: usize = 8;

/// The public name of a session: it stands in records and opens nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ConsoleSessionId(String);

impl ConsoleSessionId {
    fn of(digest: Digest) -> Self {
        Self(hex::encode(digest.0.iter().copied().take(ID_BYTES).collect::<Vec<_>>()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ConsoleSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// How long sessions last, and how many there may be.
#[derive(Debug, Clone, Copy)]
pub struct ConsoleOptions {
    /// How long a session may be idle.
    pub idle: Duration,
    /// How long a session may last at all.
    pub absolute: Duration,
    /// Most sessions of everybody together; whoever has most of them makes room, by the one idle for longest.
    pub max_sessions: usize,
    /// Most sessions of one principal; its own that is idle for longest makes room.
    pub max_per_principal: usize,
}

impl Default for ConsoleOptions {
    /// A working day, with a break of an hour.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60 * 60),
            absolute: Duration::from_secs(12 * 60 * 60),
            max_sessions: 256,
            max_per_principal: 32,
        }
    }
}

/// A session that was just opened.
#[derive(Debug)]
pub struct OpenedSession {
    /// Its public name.
    pub id: ConsoleSessionId,
    /// The value of the cookie.
    pub cookie: SecretString,
    /// What requests that change something carry beside it.
    pub csrf: String,
    /// For how long the cookie is worth keeping.
    pub max_age: Duration,
}

#[derive(Debug)]
struct Session {
    principal: Principal,
    /// The credential that it was opened with.
    opened_by: Via,
    opened: Timestamp,
    seen: Timestamp,
}

/// The sessions of the console.
pub struct ConsoleSessions {
    options: ConsoleOptions,
    clock: Arc<dyn Clock>,
    csrf_key: [u8; 32],
    sessions: Mutex<HashMap<Digest, Session>>,
}

impl fmt::Debug for ConsoleSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleSessions").field("options", &self.options).finish_non_exhaustive()
    }
}

impl ConsoleSessions {
    /// No sessions yet.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn new(options: ConsoleOptions, clock: Arc<dyn Clock>) -> Result<Self, IdentityError> {
        Ok(Self { options, clock, csrf_key: random::bytes()?, sessions: Mutex::default() })
    }

    /// Opens a session for somebody whose credential was checked. It has that credential's scopes.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn open(&self, principal: &Principal) -> Result<OpenedSession, IdentityError> {
        let cookie = SecretString::new(random::secret()?);
        let digest = digest(cookie.expose());
        let id = ConsoleSessionId::of(digest);
        let now = self.clock.now();
        let mut principal = principal.clone();
        let opened_by = std::mem::replace(&mut principal.via, Via::Console { session: id.clone() });
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| self.is_live(session, now));
        // Whoever logs in again and again ends sessions of their own, never somebody else's.
        while count(&sessions, &principal.id) >= self.options.max_per_principal.max(1) {
            remove_idlest(&mut sessions, &principal.id);
        }
        while sessions.len() >= self.options.max_sessions.max(1) {
            let mut counts: HashMap<&PrincipalId, usize> = HashMap::new();
            for session in sessions.values() {
                *counts.entry(&session.principal.id).or_default() += 1;
            }
            let Some(most) = counts.into_iter().max_by_key(|(_, count)| *count).map(|(id, _)| id.clone()) else {
                break;
            };
            remove_idlest(&mut sessions, &most);
        }
        sessions.insert(digest, Session { principal, opened_by, opened: now, seen: now });
        Ok(OpenedSession { id, csrf: self.csrf(digest), cookie, max_age: self.options.absolute })
    }

    /// Who shows this cookie. Being asked counts as use.
    ///
    /// # Errors
    /// When there is no such session, or it was idle or old for too long.
    pub fn resolve(&self, cookie: &str) -> Result<Principal, Refusal> {
        let now = self.clock.now();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = digest(cookie);
        let session = sessions.get_mut(&digest).ok_or(Refusal::Unknown)?;
        if !self.is_live(session, now) {
            sessions.remove(&digest);
            return Err(Refusal::Expired);
        }
        session.seen = session.seen.max(now);
        Ok(session.principal.clone())
    }

    /// The CSRF token of a session, for a page that lost it. It is bound to the cookie and the same each time.
    ///
    /// # Errors
    /// When the cookie opens no session.
    pub fn csrf_token(&self, cookie: &str) -> Result<String, Refusal> {
        self.resolve(cookie)?;
        Ok(self.csrf(digest(cookie)))
    }

    /// Who sends a request that changes something.
    ///
    /// # Errors
    /// When the cookie opens no session, or the token is not this session's.
    pub fn resolve_change(&self, cookie: &str, csrf: &str) -> Result<Principal, Refusal> {
        let principal = self.resolve(cookie)?;
        let expected = self.csrf(digest(cookie));
        if bool::from(expected.as_bytes().ct_eq(csrf.as_bytes())) { Ok(principal) } else { Err(Refusal::Csrf) }
    }

    /// Ends a session.
    pub fn close(&self, cookie: &str) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest(cookie));
    }

    /// Ends all sessions of somebody; says how many there were.
    pub fn close_all(&self, of: &PrincipalId) -> usize {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sessions.len();
        sessions.retain(|_, session| session.principal.id != *of);
        before - sessions.len()
    }

    /// Ends all sessions that were opened with a token, because the token was revoked or got another secret; says how many there were.
    pub fn close_opened_by(&self, token: &TokenId) -> usize {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = sessions.len();
        sessions.retain(|_, session| !matches!(&session.opened_by, Via::ApiToken { id, .. } if id == token));
        before - sessions.len()
    }

    /// The credential that an open session was opened with; nothing for one that was ended or is too old. Being asked does not count as use.
    #[must_use]
    pub fn opened_by(&self, id: &ConsoleSessionId) -> Option<Via> {
        let now = self.clock.now();
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let session =
            sessions.values().find(|open| matches!(&open.principal.via, Via::Console { session } if session == id))?;
        (now.since(session.opened) < self.options.absolute).then(|| session.opened_by.clone())
    }

    fn is_live(&self, session: &Session, now: Timestamp) -> bool {
        now.since(session.seen) < self.options.idle && now.since(session.opened) < self.options.absolute
    }

    fn csrf(&self, session: Digest) -> String {
        let mut mac = Hmac::<Sha256>::new(&hmac::digest::Key::<Hmac<Sha256>>::from(widened(self.csrf_key)));
        mac.update(b"palyra console csrf");
        mac.update(&session.0);
        random::encode(&mac.finalize().into_bytes())
    }
}

fn count(sessions: &HashMap<Digest, Session>, of: &PrincipalId) -> usize {
    sessions.values().filter(|session| session.principal.id == *of).count()
}

/// Ends the session of somebody that was idle for longest.
fn remove_idlest(sessions: &mut HashMap<Digest, Session>, of: &PrincipalId) {
    let own = sessions.iter().filter(|(_, session)| session.principal.id == *of);
    if let Some(idlest) = own.min_by_key(|(_, session)| session.seen).map(|(digest, _)| *digest) {
        sessions.remove(&idlest);
    }
}

/// A key as long as the hash's block, as HMAC takes it: shorter keys are filled with zeros anyway.
fn widened(key: [u8; 32]) -> [u8; 64] {
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = from);
    block
}

/// A lookup by digest tells nothing about the value: whoever cannot guess the value cannot choose its digest.
fn digest(cookie: &str) -> Digest {
    Digest::of_parts(&[b"palyra console session", cookie.as_bytes()])
}

#[cfg(test)]
mod tests {
    use palyra_common::{FixedClock, PrincipalRole};

    use super::*;

    fn sessions(max_sessions: usize) -> (ConsoleSessions, FixedClock) {
        let clock = FixedClock::at(Timestamp(1_800_000_000_000));
        let options = ConsoleOptions { max_sessions, ..ConsoleOptions::default() };
        (ConsoleSessions::new(options, Arc::new(clock.clone())).unwrap(), clock)
    }

    fn alice() -> Principal {
        Principal::unix_socket(1, PrincipalRole::Owner)
    }

    #[test]
    fn a_cookie_stands_for_who_opened_the_session() {
        let (sessions, _) = sessions(4);
        let opened = sessions.open(&alice()).unwrap();
        let principal = sessions.resolve(opened.cookie.expose()).unwrap();
        assert_eq!((principal.id.as_str(), &principal.scopes), ("uid:1", &alice().scopes));
        assert_eq!(principal.via, Via::Console { session: opened.id.clone() });
        assert!(!opened.cookie.expose().contains(opened.id.as_str()), "the public name opens nothing");
        for bad in ["", opened.id.as_str(), "x"] {
            assert_eq!(sessions.resolve(bad), Err(Refusal::Unknown));
        }
        sessions.close(opened.cookie.expose());
        assert_eq!(sessions.resolve(opened.cookie.expose()), Err(Refusal::Unknown));
    }

    #[test]
    fn idle_and_old_sessions_end() {
        let (sessions, clock) = sessions(4);
        let minute = Duration::from_secs(60);
        let idle = sessions.open(&alice()).unwrap();
        let used = sessions.open(&alice()).unwrap();
        for _ in 0..13 {
            clock.advance(minute * 55);
            sessions.resolve(used.cookie.expose()).unwrap();
        }
        assert_eq!(sessions.resolve(idle.cookie.expose()), Err(Refusal::Expired));
        clock.advance(minute * 5);
        assert_eq!(sessions.resolve(used.cookie.expose()), Err(Refusal::Expired), "twelve hours are the end");
        assert_eq!(sessions.resolve(used.cookie.expose()), Err(Refusal::Unknown), "and it is gone");
    }

    #[test]
    fn changes_need_the_token_of_the_same_session() {
        let (sessions, _) = sessions(4);
        let (one, two) = (sessions.open(&alice()).unwrap(), sessions.open(&alice()).unwrap());
        let cookie = one.cookie.expose();
        assert!(sessions.resolve_change(cookie, &one.csrf).is_ok());
        assert_eq!(sessions.csrf_token(cookie), Ok(one.csrf.clone()));
        for bad in ["", two.csrf.as_str(), one.cookie.expose(), &one.csrf[1..]] {
            assert_eq!(sessions.resolve_change(cookie, bad), Err(Refusal::Csrf));
        }
        assert_eq!(sessions.resolve_change("x", &one.csrf), Err(Refusal::Unknown));
        let other_process = self::sessions(4).0;
        assert_ne!(other_process.csrf(digest(cookie)), one.csrf, "the key is this process's own");
    }

    #[test]
    fn the_number_is_bounded_and_the_idlest_makes_room() {
        let (sessions, clock) = sessions(2);
        let first = sessions.open(&alice()).unwrap();
        clock.advance(Duration::from_secs(1));
        let second = sessions.open(&alice()).unwrap();
        clock.advance(Duration::from_secs(1));
        sessions.resolve(first.cookie.expose()).unwrap();
        let third = sessions.open(&alice()).unwrap();
        assert!(sessions.resolve(second.cookie.expose()).is_err());
        assert!(sessions.resolve(first.cookie.expose()).is_ok() && sessions.resolve(third.cookie.expose()).is_ok());
    }

    #[test]
    fn whoever_logs_in_often_ends_only_sessions_of_their_own() {
        let (sessions, clock) = sessions(256);
        let owner = sessions.open(&alice()).unwrap();
        clock.advance(Duration::from_millis(1));
        let viewer = Principal::unix_socket(2, PrincipalRole::Viewer);
        let kept: Vec<_> = (0..300).map(|_| sessions.open(&viewer).unwrap()).collect();
        let open = kept.iter().filter(|one| sessions.resolve(one.cookie.expose()).is_ok()).count();
        assert_eq!(open, ConsoleOptions::default().max_per_principal);
        assert!(sessions.resolve(owner.cookie.expose()).is_ok());
        // Nor do many who log in often together: whoever has most sessions makes room.
        for number in 0..400_u32 {
            sessions.open(&Principal::unix_socket(2 + number % 12, PrincipalRole::Viewer)).unwrap();
        }
        assert!(sessions.resolve(owner.cookie.expose()).is_ok());
    }

    #[test]
    fn a_session_ends_with_the_token_that_opened_it() {
        let (sessions, _) = sessions(8);
        let id: TokenId = "0123456789abcdef".parse().unwrap();
        let by_token = Principal::new(
            PrincipalId::uid(1),
            PrincipalRole::Owner,
            Via::ApiToken { id: id.clone(), secret: Digest([0; 32]) },
        );
        let (one, two) = (sessions.open(&by_token).unwrap(), sessions.open(&alice()).unwrap());
        assert_eq!(sessions.close_opened_by(&"fedcba9876543210".parse().unwrap()), 0);
        assert_eq!(sessions.close_opened_by(&id), 1);
        assert!(sessions.resolve(one.cookie.expose()).is_err() && sessions.resolve(two.cookie.expose()).is_ok());
    }

    #[test]
    fn all_sessions_of_somebody_can_be_ended() {
        let (sessions, _) = sessions(8);
        let (one, two) = (sessions.open(&alice()).unwrap(), sessions.open(&alice()).unwrap());
        let bob = sessions.open(&Principal::unix_socket(2, PrincipalRole::Viewer)).unwrap();
        assert_eq!(sessions.close_all(&PrincipalId::uid(1)), 2);
        assert!(sessions.resolve(one.cookie.expose()).is_err() && sessions.resolve(two.cookie.expose()).is_err());
        assert!(sessions.resolve(bob.cookie.expose()).is_ok());
    }
}

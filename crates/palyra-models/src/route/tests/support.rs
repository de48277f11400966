//! Providers, time and secrets that do as they are told.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use palyra_common::{Clock as _, FixedClock, RunId, SecretError, SecretRef, SecretResolver, SecretString, Timestamp};

use crate::accounts::{Account, Accounts, ProviderKind};
use crate::route::{AnswerMemory, Pace, ProviderFactory, RoutePolicy, Router, RouterOptions};
use crate::wire::{HttpProviderOptions, Timeouts};
use crate::{
    Answering, AssembledTurn, Message, ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest,
    ModelStream, ProviderInfo, Purpose, StopReason, TurnAssembler, Usage,
};

/// Two accounts, one with two keys.
pub(super) const TWO: &str = "
version = 1
[providers.a]
kind = 'openai_compatible'
base_url = 'http://a.example'
context_tokens = 2000
[[providers.a.keys]]
name = 'one'
key = 'env:A_ONE'
[[providers.a.keys]]
name = 'two'
key = 'env:A_TWO'
[providers.b]
kind = 'anthropic'
context_tokens = 9000
[[providers.b.keys]]
name = 'only'
key = 'env:B_ONLY'
[routes]
default = ['a/m', 'b/n']
";

/// One account without keys.
pub(super) const ONE: &str = "
version = 1
[providers.a]
kind = 'openai_compatible'
base_url = 'http://a.example'
[routes]
default = ['a/m']
";

/// What a provider does with a call.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Refuse(ModelError),
    Say(&'static str),
    /// Says something, then breaks off.
    Break(&'static str, ModelError),
    /// Never answers.
    Hang,
}

pub(super) fn fail(class: ModelErrorClass) -> Reply {
    Reply::Refuse(ModelError::new(class, format!("it is {class}")))
}

pub(super) fn limited(seconds: u64) -> Reply {
    let error = ModelError::new(ModelErrorClass::RateLimit, "slow down");
    Reply::Refuse(error.retry_after(Duration::from_secs(seconds)))
}

/// Everything a test can look at.
#[derive(Default)]
pub(super) struct World {
    replies: Mutex<BTreeMap<String, VecDeque<Reply>>>,
    /// Who was asked, as `provider/model key`.
    pub(super) asked: Mutex<Vec<String>>,
    /// Waits in milliseconds.
    pub(super) waits: Mutex<Vec<u64>>,
    /// Keys that were read.
    pub(super) read: Mutex<Vec<String>>,
    pub(super) clock: FixedClock,
    /// Streams that are open.
    pub(super) open: Arc<AtomicUsize>,
    missing: Mutex<Vec<String>>,
    /// Who answered, over all routers.
    answered: Mutex<BTreeMap<String, Account>>,
    stuck: Mutex<bool>,
}

impl World {
    /// What a provider answers next; `provider` may be `provider key`. Without any it says its own name.
    pub(super) fn tell(&self, provider: &str, replies: impl IntoIterator<Item = Reply>) {
        self.replies.lock().unwrap().entry(provider.to_owned()).or_default().extend(replies);
    }

    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }

    pub(super) fn waits(&self) -> Vec<u64> {
        std::mem::take(&mut *self.waits.lock().unwrap())
    }

    pub(super) fn lose_key(&self, reference: &str) {
        self.missing.lock().unwrap().push(reference.to_owned());
    }

    /// From now on no wait ends.
    pub(super) fn stop_time(&self) {
        *self.stuck.lock().unwrap() = true;
    }
}

/// The world as time, keys and providers.
#[derive(Clone)]
pub(super) struct In(pub(super) Arc<World>);

impl Pace for In {
    fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        self.0.waits.lock().unwrap().push(u64::try_from(wait.as_millis()).unwrap());
        if *self.0.stuck.lock().unwrap() {
            return std::future::pending().boxed();
        }
        self.0.clock.advance(wait);
        std::future::ready(()).boxed()
    }

    fn chance(&self) -> u32 {
        u32::MAX
    }
}

impl AnswerMemory for In {
    fn has_answered(&self, provider: &str, account: &Account) -> bool {
        self.0.answered.lock().unwrap().get(provider) == Some(account)
    }

    fn note_answer(&self, provider: &str, account: &Account) {
        self.0.answered.lock().unwrap().insert(provider.to_owned(), account.clone());
    }
}

impl SecretResolver for In {
    fn resolve(&self, reference: &SecretRef) -> Result<SecretString, SecretError> {
        let name = reference.to_string();
        self.0.read.lock().unwrap().push(name.clone());
        if self.0.missing.lock().unwrap().contains(&name) {
            return Err(SecretError::EnvMissing(name));
        }
        Ok(SecretString::from(format!("secret of {name}")))
    }
}

impl ProviderFactory for In {
    fn make(&self, _: ProviderKind, options: HttpProviderOptions) -> Result<Arc<dyn ModelProvider>, ModelError> {
        Ok(Arc::new(Fake { world: Arc::clone(&self.0), options }))
    }
}

struct Fake {
    world: Arc<World>,
    options: HttpProviderOptions,
}

/// Counts an open stream until it is dropped.
struct Open(Arc<AtomicUsize>);

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl ModelProvider for Fake {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn describe(&self) -> ProviderInfo {
        ProviderInfo {
            name: self.options.name.clone(),
            model: String::new(),
            context_tokens: self.options.context_tokens,
            is_language_model: true,
        }
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let name = &self.options.name;
        let key = self.options.credential.clone().unwrap_or_default();
        self.world.asked.lock().unwrap().push(format!("{name}/{} {key}", request.model).trim_end().to_owned());
        let reply = {
            let mut replies = self.world.replies.lock().unwrap();
            let own = replies.get_mut(&format!("{name} {key}")).and_then(VecDeque::pop_front);
            own.or_else(|| replies.get_mut(name).and_then(VecDeque::pop_front))
        };
        let answering = ModelEvent::Answering(Answering {
            provider: name.clone(),
            model: request.model,
            credential: self.options.credential.clone(),
        });
        let usage = |output| ModelEvent::Usage(Usage::plain(10, output));
        let text = |text: &str| ModelEvent::TextDelta(text.to_owned());
        let items: Vec<Result<ModelEvent, ModelError>> = match reply.unwrap_or(Reply::Say("fine")) {
            Reply::Refuse(error) => return Err(error),
            Reply::Say(said) => {
                vec![Ok(answering), Ok(text(said)), Ok(usage(1)), Ok(ModelEvent::Finished(StopReason::EndTurn))]
            }
            Reply::Break(said, error) => vec![Ok(answering), Ok(usage(7)), Ok(text(said)), Err(error)],
            Reply::Hang => {
                let open = Open::new(&self.world.open);
                let hanging = stream::pending().map(move |item| {
                    let _ = &open;
                    item
                });
                return Ok(stream::iter([Ok(answering)]).chain(hanging).boxed());
            }
        };
        Ok(stream::iter(items).boxed())
    }
}

/// A router over these accounts, and the world it is in.
pub(super) fn router(file: &str) -> (Router, Arc<World>) {
    router_with(file, RoutePolicy::default())
}

pub(super) fn router_with(file: &str, policy: RoutePolicy) -> (Router, Arc<World>) {
    let world = Arc::new(World::default());
    (router_in(&world, file, policy), world)
}

/// Another router in the same world.
pub(super) fn router_in(world: &Arc<World>, file: &str, policy: RoutePolicy) -> Router {
    let of = In(Arc::clone(world));
    let accounts = Accounts::parse(file, Path::new("models.toml")).unwrap();
    let options = RouterOptions {
        factory: Arc::new(of.clone()),
        secrets: Arc::new(of.clone()),
        timeouts: Timeouts::default(),
        policy,
        pace: Arc::new(of.clone()),
        memory: Some(Arc::new(of)),
    };
    Router::new(accounts, options).unwrap()
}

/// A request of a run whose turn is the first key's.
pub(super) fn request() -> ModelRequest {
    ModelRequest::new(RunId::from_u128(0), 1, Purpose::Turn, vec![Message::user("hello")])
}

/// A whole answer, or the error.
pub(super) async fn answer(router: &Router, request: ModelRequest) -> Result<AssembledTurn, ModelError> {
    let mut stream = router.stream(request).await?;
    let mut assembler = TurnAssembler::new();
    while let Some(event) = stream.next().await {
        assembler.push(&event?)?;
    }
    assert!(assembler.is_finished(), "a stream without error must end with Finished");
    Ok(assembler.finish())
}

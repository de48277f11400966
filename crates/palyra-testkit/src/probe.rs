//! Tools of every class whose effects can be counted, and the decider that lets them.
//!
//! Each call reports itself to a [`Receiver`](crate::Receiver) over the Unix socket in `PALYRA_PROBE_SOCKET` and is done when
//! that acknowledges. One thread does all sending, with the calls `sendto` and `recvmsg` that nothing else in the daemon uses: so
//! a tracer can stop the daemon exactly before an effect, or between an effect and its outcome.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use palyra_agent::{AnswerProposal, Decide, PolicyDecider, Proposal, Verdict};
use palyra_common::{Confidentiality, Integrity, StableErrorEnvelope, ToolVerdict};
use palyra_policy::{PatternGrant, PolicyError, PolicySources, PolicyStore};
use palyra_tools::{
    CallResource, Concurrency, Invocation, Repeatability, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput,
    Workspace,
};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, SendFlags};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::receiver::Delivery;

/// Names the receiver's socket.
pub const SOCKET_VARIABLE: &str = "PALYRA_PROBE_SOCKET";
/// How often the sending thread looks whether its call was cancelled while it waits for an acknowledgement.
const LOOK_UP: Duration = Duration::from_millis(20);

/// The classes of tools: what may run together, what may run again, what needs a person.
const CLASSES: [(&str, Concurrency, Repeatability); 4] = [
    ("probe.read", Concurrency::Shared, Repeatability::Repeatable),
    ("probe.repeatable", Concurrency::Exclusive, Repeatability::Repeatable),
    ("probe.once", Concurrency::Exclusive, Repeatability::NonRepeatable),
    (ASKED, Concurrency::Exclusive, Repeatability::NonRepeatable),
];
/// The one that a person is asked about.
const ASKED: &str = "probe.asked";

/// Reports a number to a test.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The number.
    n: u64,
}

/// All probe tools, reporting to this socket.
///
/// # Errors
/// When the sending thread cannot be started or a name is refused.
pub fn tools(socket: PathBuf) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let sender = Sender::start(socket)?;
    let tool =
        |(name, concurrency, repeatability): (&str, Concurrency, Repeatability)| -> anyhow::Result<Arc<dyn Tool>> {
            let mut declaration = ToolDeclaration::of::<Input>(ToolName::new(name)?, "Probe", "report {n}")
                .output(Integrity::ToolTrusted, Confidentiality::Internal);
            declaration.concurrency = concurrency;
            declaration.repeatability = repeatability;
            Ok(Arc::new(Probe { declaration, sender: sender.clone() }))
        };
    CLASSES.into_iter().map(tool).collect()
}

struct Probe {
    declaration: ToolDeclaration,
    sender: Sender,
}

#[async_trait]
impl Tool for Probe {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        Ok(CallResource::tool(format!("probe:{}", arguments.get("n").unwrap_or(&Value::Null))))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let internal = |error: String| ToolError::Internal(error);
        let input: Input =
            serde_json::from_value(invocation.arguments.clone()).map_err(|error| internal(error.to_string()))?;
        let tool = self.declaration.name.to_string();
        let delivery = Delivery { effect_id: invocation.effect_id.to_string(), tool, n: input.n };
        let outcome = self.sender.send(delivery);
        tokio::select! {
            () = invocation.cancel.cancelled() => Err(ToolError::Cancelled),
            outcome = outcome => match outcome {
                Ok(Ok(())) => Ok(ToolOutput::text(format!("delivered {}", input.n), self.declaration.output.clone())),
                Ok(Err(error)) => Err(internal(format!("the receiver cannot be reached: {error}"))),
                Err(_) => Err(internal("the sending thread is gone".to_owned())),
            },
        }
    }
}

type Job = (Delivery, oneshot::Sender<io::Result<()>>);

/// Hands deliveries to the one thread that sends.
#[derive(Clone)]
struct Sender(mpsc::Sender<Job>);

impl Sender {
    fn start(socket: PathBuf) -> io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        std::thread::Builder::new().name("probe".to_owned()).spawn(move || {
            for (delivery, mut done) in inbox {
                let outcome = deliver(&socket, &delivery, &mut done);
                let _ = done.send(outcome);
            }
        })?;
        Ok(Self(jobs))
    }

    fn send(&self, delivery: Delivery) -> oneshot::Receiver<io::Result<()>> {
        let (done, outcome) = oneshot::channel();
        // A thread that is gone drops the sender, which the receiver reports.
        let _ = self.0.send((delivery, done));
        outcome
    }
}

/// Sends one delivery and waits for its acknowledgement, or until nobody waits for it any more.
fn deliver(socket: &PathBuf, delivery: &Delivery, done: &mut oneshot::Sender<io::Result<()>>) -> io::Result<()> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(LOOK_UP))?;
    let mut line = serde_json::to_vec(delivery)?;
    line.push(b'\n');
    let sent = rustix::net::send(&stream, &line, SendFlags::NOSIGNAL)?;
    if sent != line.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let mut answer = [0_u8; 8];
    while !done.is_closed() {
        let mut nothing_beside = RecvAncillaryBuffer::default();
        let mut parts = [io::IoSliceMut::new(&mut answer)];
        match rustix::net::recvmsg(&stream, &mut parts, &mut nothing_beside, RecvFlags::empty()) {
            Ok(received) if received.bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::ErrorKind::Interrupted.into())
}

/// Permits the probe tools, asks about `probe.asked`, and leaves everything else to the decider of the product.
pub struct ProbeDecider {
    otherwise: PolicyDecider,
}

impl ProbeDecider {
    /// A decider over the shipped policies.
    ///
    /// # Errors
    /// When the shipped policies do not load.
    pub fn new() -> Result<Self, PolicyError> {
        let store = Arc::new(PolicyStore::open(PolicySources::shipped())?);
        Ok(Self { otherwise: PolicyDecider::new(store, []) })
    }
}

#[async_trait]
impl Decide for ProbeDecider {
    async fn decide(&self, proposal: Proposal<'_>) -> Result<Verdict, StableErrorEnvelope> {
        let name = proposal.tool.name.as_str();
        if !name.starts_with("probe.") {
            return self.otherwise.decide(proposal).await;
        }
        let verdict = if name == ASKED { ToolVerdict::NeedsApproval } else { ToolVerdict::Permit };
        Ok(Verdict {
            verdict,
            reasons: vec!["a probe of the test".to_owned()],
            told: Vec::new(),
            policies: vec!["testkit.probe".to_owned()],
            asking: if name == ASKED { ["testkit.probe".to_owned()].into() } else { [].into() },
            requests: Vec::new(),
        })
    }

    async fn decide_answer(&self, answer: AnswerProposal<'_>) -> Result<Verdict, StableErrorEnvelope> {
        self.otherwise.decide_answer(answer).await
    }

    fn agreed(&self, patterns: Vec<PatternGrant>) -> Result<(), StableErrorEnvelope> {
        self.otherwise.agreed(patterns)
    }
}

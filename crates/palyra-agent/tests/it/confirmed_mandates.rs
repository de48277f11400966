//! Mandates that count only once a person has agreed to them (`run.confirm_mandates`).

use std::sync::Arc;

use palyra_agent::{Answer, ApprovalFilter, ApprovalRow};
use palyra_common::config::MandateClass;
use palyra_common::{
    ApprovalDecision, Consequence, OutputClass, RunId, RunLifecyclePhase, SinkKind, ToolClassification,
};
use serde_json::{Value, json};

use crate::brain::{Brain, Next, Outbox, Outside, results};
use crate::support::{Bench, Gate, Setup, answer, is_phase, tool_result};

const INTENT: &str = "palyra.intent.declare";
const SEND: &str = "mcp.mail.send";
const READ: &str = "mcp.mail.read";
const PAY: &str = "mcp.bank.pay";

fn setup(brain: Arc<Brain>, confirm: &[MandateClass]) -> (Setup, Outbox) {
    let outbox = Outbox::default();
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(brain);
    setup.confirm_mandates = confirm.to_vec();
    setup.tools = vec![
        Outside::reading("mail", "read", json!({ "items": [{ "id": 7, "body": "hello" }] }), &outbox),
        Outside::sending("mail", "send", &outbox),
        Outside::classified("bank", "pay", &paying(), &outbox),
    ];
    (setup, outbox)
}

/// A payment within the user's own bank: an amount, and no destination.
fn paying() -> ToolClassification {
    let mut class = ToolClassification::cautious([]);
    class.consequence = Consequence::Consequential;
    class.output = OutputClass { fields: Vec::new(), ..class.output };
    class.sinks = [("amount".into(), SinkKind::Amount), ("note".into(), SinkKind::Content)].into();
    class
}

fn meant() -> Value {
    json!({ "effects": [{ "tool": SEND, "destinations": ["ada@example.org"] }] })
}

async fn open(bench: &Bench, run_id: RunId) -> ApprovalRow {
    bench.follow_until(run_id, is_phase(RunLifecyclePhase::WaitingForApproval)).await;
    let filter = ApprovalFilter { run_id: Some(run_id), open: Some(true) };
    let mut open = bench.engine.approvals(filter).await.unwrap();
    assert_eq!(open.len(), 1, "{open:?}");
    open.remove(0)
}

fn sent(outbox: &Outbox) -> usize {
    outbox.lock().unwrap().len()
}

#[tokio::test]
async fn a_statement_counts_once_a_person_has_agreed_to_it() {
    let brain = Brain::playing(vec![
        (INTENT, meant()),
        (READ, json!({})),
        (SEND, json!({ "to": "ada@example.org", "body": "x" })),
    ]);
    let (setup, outbox) = setup(brain, &[MandateClass::Outward]);
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("Tell ada@example.org what is new")).await.unwrap();
    let asked = open(&bench, run.run_id).await;
    assert_eq!((asked.tool.as_str(), &asked.arguments), (INTENT, &meant()));
    assert_eq!(asked.reason, "you want to be asked before anything goes to others");
    assert!(asked.offer.is_none(), "nobody agrees to statements in advance");
    assert!(bench.engine.run_details(run.run_id).await.unwrap().envelope.is_empty());
    bench.engine.decide_approval(asked.approval_id, answer(ApprovalDecision::Allow)).await.unwrap();
    let (_, events) = bench.finish(run.run_id).await;
    assert_eq!(sent(&outbox), 1);
    let questions = events.iter().filter(|event| event.body.kind() == "tool_approval_request").count();
    assert_eq!(questions, 1, "the call itself is not asked about again");
}

#[tokio::test]
async fn a_refused_statement_counts_for_nothing_and_the_planner_hears_why() {
    let brain = Brain::new(|messages| match results(messages).as_slice() {
        [] => Next::Call(INTENT, meant()),
        [refused] => {
            assert!(refused.contains("not this week"), "{refused}");
            Next::Call(READ, json!({}))
        }
        [_, _] => Next::Call(SEND, json!({ "to": "ada@example.org", "body": "x" })),
        _ => Next::Say("done".into()),
    });
    let (setup, outbox) = setup(brain, &[MandateClass::Outward, MandateClass::Paying]);
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("Tell ada@example.org what is new")).await.unwrap();
    let asked = open(&bench, run.run_id).await;
    let denied = Answer { reason: Some("not this week".into()), ..answer(ApprovalDecision::Deny) };
    bench.engine.decide_approval(asked.approval_id, denied).await.unwrap();
    let asked = loop {
        let filter = ApprovalFilter { run_id: Some(run.run_id), open: Some(true) };
        if let Some(open) = bench.engine.approvals(filter).await.unwrap().pop() {
            break open;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((asked.tool.as_str(), sent(&outbox)), (SEND, 0), "the call is asked about like any other");
    bench.engine.decide_approval(asked.approval_id, answer(ApprovalDecision::Deny)).await.unwrap();
    bench.finish(run.run_id).await;
    assert_eq!(sent(&outbox), 0);
}

#[tokio::test]
async fn only_what_is_listed_is_asked_about() {
    let to_ada = || (SEND, json!({ "to": "ada@example.org", "body": "x" }));
    let states = |effects: Value| (INTENT, json!({ "effects": effects }));
    let [mail, payment] = [
        json!([{ "tool": SEND, "destinations": ["ada@example.org"] }]),
        json!([{ "tool": PAY, "arguments": { "amount": 50 } }]),
    ];
    for (calls, confirm, asked_about) in [
        (vec![states(mail.clone()), to_ada()], vec![], None),
        (vec![states(mail.clone()), to_ada()], vec![MandateClass::Paying], None),
        (vec![states(payment.clone())], vec![MandateClass::Outward], None),
        (vec![states(payment)], vec![MandateClass::Paying], Some(INTENT)),
        // A query that carries data of another place goes to others as well.
        (vec![states(json!([{ "tool": READ, "from": ["workspace"] }]))], vec![MandateClass::Outward], Some(INTENT)),
        // Nothing is stated by a mere call.
        (vec![to_ada()], vec![], Some(SEND)),
    ] {
        let (setup, _) = setup(Brain::playing(calls.clone()), &confirm);
        let bench = setup.start().await;
        let run = bench.engine.create_run(bench.task("Pay 50 and tell ada@example.org")).await.unwrap();
        if let Some(tool) = asked_about {
            let asked = open(&bench, run.run_id).await;
            assert_eq!(asked.tool, tool, "{calls:?}");
            bench.engine.decide_approval(asked.approval_id, answer(ApprovalDecision::Deny)).await.unwrap();
        }
        let (_, events) = bench.finish(run.run_id).await;
        let questions = events.iter().filter(|event| event.body.kind() == "tool_approval_request").count();
        assert_eq!(questions, usize::from(asked_about.is_some()), "{calls:?} {confirm:?}");
    }
}

#[tokio::test]
async fn an_agreement_counts_although_the_turn_has_read_something_meanwhile() {
    let gate = Gate::reading("test.gate");
    let brain = Brain::new(|messages| match results(messages).len() {
        0 => Next::Calls(vec![(INTENT, meant()), (READ, json!({})), ("test.gate", json!({}))]),
        3 => Next::Call(SEND, json!({ "to": "ada@example.org", "body": "x" })),
        _ => Next::Say("done".into()),
    });
    let (mut setup, outbox) = setup(brain, &[MandateClass::Outward]);
    setup.tools.push(Arc::new(gate.clone()));
    let bench = setup.start().await;
    let run = bench.engine.create_run(bench.task("Tell ada@example.org what is new")).await.unwrap();
    gate.reached(1).await;
    gate.open();
    let asked = open(&bench, run.run_id).await;
    bench.engine.decide_approval(asked.approval_id, answer(ApprovalDecision::Allow)).await.unwrap();
    let (_, events) = bench.finish(run.run_id).await;
    assert!(tool_result(&events, "t1c2").ok, "the mail was read while the question was open");
    assert_eq!(sent(&outbox), 1);
}

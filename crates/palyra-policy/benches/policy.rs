//! What a decision costs: the whole of ours against bare Cedar on the same policies and the same request, in one run.
//!
//! - `decide10`, `decide100`, `decide1000`: from a plain request to a verdict with reasons (checked against the schema, entities built)
//!   against bare Cedar doing the same work with its own interface alone, as `bare_cedar` writes it out: no index, no guards, no reasons.
//! - `decide….authoriser`: the whole decision against Cedar's authoriser alone on a request that somebody else made ready.
//! - `authorise…`: the part after the request is prepared, against Cedar's authoriser alone.
//! - growth of a decision from 100 to 1,000 policies, as an exponent.
//!
//! Before anything is measured, both requests are compared: same context, same entities, same answer.
//!
//! The policies are of the kind an operator writes: a mix of permits, forbids and guards for all actions, about hosts, tools, users and
//! provenance. The request is a tool call with three arguments, permitted by one policy. Left out: loading and validating the policies.

#![allow(clippy::indexing_slicing, reason = "a measuring program ends at a mistake of its own")]

mod bare_cedar;

use std::collections::BTreeSet;
use std::hint::black_box;

use bare_cedar::Bare;
use cedar_policy::{Decision, PolicySet as CedarSet};
use palyra_common::{Confidentiality, Integrity, Label, Risk, RunMode, Timestamp, ToolVerdict};
use palyra_figures::{Aim, Report, Samples, exponent, measure_against};
use palyra_policy::{
    ActionKind, Argument, Asking, Consequence, Containment, Context, EffectFacts, EffectScope, Envelope, PolicySet,
    PolicySource, PolicySources, Prepared, Principal, Provenance, Request, Resource, RunPrincipal, SCHEMA, Signals,
    SinkKind, ToolFacts,
};

type Failure = Box<dyn std::error::Error>;

/// Decisions per measurement: a single one is too short for the clock.
const BATCH: usize = 200;
const WARMUP: u32 = 5;
const REPEATS: u32 = 41;

fn main() -> Result<(), Failure> {
    let mut report = Report::new("policy");
    let request = request();
    let (mut hundred, mut thousand) = (None, None);
    for size in [10, 100, 1_000] {
        let whole = measured(&mut report, &request, size)?;
        match size {
            100 => hundred = Some(whole),
            1_000 => thousand = Some(whole),
            _ => {}
        }
    }
    if let (Some(hundred), Some(thousand)) = (hundred, thousand) {
        let growth = exponent(&[100.0, 1_000.0], &[hundred, thousand]).ok_or("no growth")?;
        report.figure("policy.growth", growth, "exponent", None, Aim::AtMost(1.0), u64::from(REPEATS), None);
    }
    report.note("each measurement is 200 decisions; the reference evaluates every policy of the set");
    report.finish()?;
    Ok(())
}

/// Measures one size; the result is the median time of a whole decision.
fn measured(report: &mut Report, request: &Request, size: usize) -> Result<f64, Failure> {
    let text = policies(size);
    let set = PolicySet::load(&PolicySources::default().with_text(PolicySource::new("bench.cedar", &text)))?;
    let bare: CedarSet = text.parse()?;
    let prepared = Prepared::new(request)?;
    if set.decide(request).verdict != ToolVerdict::Permit {
        return Err("the request is meant to be permitted".into());
    }
    let cedar = Bare::new(SCHEMA)?;
    let (ready, entities) = cedar.request()?;
    same(&prepared, &ready, &entities)?;
    if cedar.authorise(&ready, &entities, &bare).decision() != Decision::Allow {
        return Err("bare Cedar is meant to permit it too".into());
    }
    let whole = || batch(|| drop(black_box(set.decide(black_box(request)))));

    let (ours, theirs) = measure_against(WARMUP, REPEATS, whole, || {
        for _ in 0..BATCH {
            let (request, entities) = cedar.request()?;
            drop(black_box(cedar.authorise(&request, &entities, &bare)));
        }
        Ok::<(), Failure>(())
    })?;
    let reference = "bare Cedar: build and check the request, authorise";
    figure(report, &format!("policy.decide{size}"), reference, Aim::AtMost(1.5), &ours, &theirs);

    let ready_made = || batch(|| drop(black_box(cedar.authorise(black_box(&ready), &entities, &bare))));
    let (inner, alone) = measure_against(
        WARMUP,
        REPEATS,
        || batch(|| drop(black_box(set.decide_prepared(black_box(&prepared))))),
        ready_made,
    )?;
    let reference = "Cedar's authoriser alone, request ready";
    figure(report, &format!("policy.authorise{size}"), reference, Aim::AtMost(1.5), &inner, &alone);
    let (again, alone) = measure_against(WARMUP, REPEATS, whole, ready_made)?;
    figure(report, &format!("policy.decide{size}.authoriser"), reference, Aim::None, &again, &alone);

    let seconds = ours.median() / BATCH as f64;
    let n = u64::from(REPEATS);
    report.figure(
        &format!("policy.decide{size}.latency"),
        seconds * 1e6,
        "µs",
        None,
        Aim::None,
        n,
        Some(ours.spread()),
    );
    Ok(seconds)
}

/// The reference must be about the same request, or it says nothing.
fn same(
    prepared: &Prepared<'_>,
    ready: &cedar_policy::Request,
    entities: &cedar_policy::Entities,
) -> Result<(), Failure> {
    let (ours, ours_entities) = prepared.cedar();
    let parts = |request: &cedar_policy::Request| {
        (request.principal().cloned(), request.action().cloned(), request.resource().cloned())
    };
    if parts(ours) != parts(ready) || ours.context() != ready.context() {
        return Err("the reference asks something else".into());
    }
    if ours_entities != entities {
        return Err("the reference has other entities".into());
    }
    Ok(())
}

fn batch(mut work: impl FnMut()) -> Result<(), Failure> {
    for _ in 0..BATCH {
        work();
    }
    Ok(())
}

fn figure(report: &mut Report, id: &str, reference: &str, aim: Aim, ours: &Samples, theirs: &Samples) {
    let ratio = ours.median() / theirs.median();
    report.figure(id, ratio, "ratio", Some(reference), aim, u64::from(REPEATS), Some(ours.spread()));
}

/// The first policy permits the request; of the others none applies to it.
fn policies(size: usize) -> String {
    let mut text = String::from(
        "@id(\"p0\") @reason_person(\"it may\") @reason_model(\"it may\")\n\
         permit (principal in User::\"me\", action == Action::\"tool.execute\", resource == Tool::\"palyra.process.run\")\n\
         when { context.sinks has command && context.sinks.command.provenance == Provenance::\"trusted\" };\n",
    );
    for n in 1..size {
        text.push_str(&match n % 5 {
            0 => format!(
                "@id(\"p{n}\") permit (principal in User::\"user{n}\", action == Action::\"net.connect\", resource in Host::\"host{n}.example\")\n\
                 when {{ context.port == 443 && context.method == \"GET\" }};\n"
            ),
            1 => format!(
                "@id(\"p{n}\") @guard(\"approval\") forbid (principal, action in Action::\"reach_out\", resource)\n\
                 when {{ context.tool == Tool::\"tool{n}\" && context.labels.integrity_rank >= 4 }};\n"
            ),
            2 => format!(
                "@id(\"p{n}\") permit (principal in Agent::\"agent{n}\", action == Action::\"tool.execute\", resource == Tool::\"tool{n}\")\n\
                 when {{ context.args.hasTag(\"command\") && context.args.getTag(\"command\").provenance == Provenance::\"trusted\" }};\n"
            ),
            3 => format!(
                "@id(\"p{n}\") forbid (principal, action in [Action::\"tool.read\", Action::\"tool.write\"], resource in Path::\"private{n}\");\n"
            ),
            _ => format!(
                "@id(\"p{n}\") @approval(\"required\") permit (principal in Role::\"role{n}\", action == Action::\"channel.send\", resource == Channel::\"channel{n}\");\n"
            ),
        });
    }
    text
}

fn request() -> Request {
    let argument = |name: &str, sink, value: &str| Argument {
        name: name.into(),
        sink: Some(sink),
        provenance: Provenance::Trusted,
        label: Label::new(Integrity::User, Confidentiality::Public),
        value: Some(value.into()),
        location: None,
        source: None,
        sentence: None,
    };
    Request {
        principal: Principal::Run(RunPrincipal {
            run: "01JCQ".into(),
            session: "01JCP".into(),
            agent: "default".into(),
            user: "me".into(),
            roles: ["admin".to_owned()].into(),
            device: None,
            channel: None,
            worker: None,
        }),
        action: ActionKind::Execute,
        resource: Resource::Tool,
        context: Context::Effect(Box::new(EffectFacts {
            tool: ToolFacts { name: "palyra.process.run".into(), origin: None, clearance: Confidentiality::Internal },
            scope: EffectScope::External,
            risk: Risk::High,
            mode: RunMode::Guarded,
            labels: Label::user(),
            arguments: vec![
                argument("command", SinkKind::Command, "cargo test --workspace"),
                argument("directory", SinkKind::Path, "."),
                argument("input", SinkKind::Content, ""),
            ],
            empty: BTreeSet::new(),
            asking: Asking::NotListed,
            consequence: Consequence::Consequential,
            envelope: Envelope::Inside,
            uncleared: BTreeSet::new(),
            workspace: "/w".into(),
            containment: Containment::Reaching,
            signals: Signals::default(),
            connection: None,
            secret_for: None,
            now: Timestamp(1_763_190_000_000),
        })),
    }
}

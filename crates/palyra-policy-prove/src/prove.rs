//! The comparison of two sets.
//!
//! Each kind of request the schema allows is compared by itself: an action, a type of principal, a type of resource. Kinds for which
//! both sets hold the same policies, or whose change can only narrow (`change.rs`), need no solver. INVARIANT: "narrows" is said only after every other kind was shown.
//!
//! A policy that fails denies, whatever the others say. For the proposed set that only narrows, so it is left out; for the base it would
//! have to be counted, so a base whose policies can fail is refused.

use std::thread;
use std::time::Duration;

use cedar_policy::{Policy, PolicyId, RequestEnv, Schema};
use cedar_policy_symcc::err::Error as SymbolicError;
use cedar_policy_symcc::{CedarSymCompiler, CompiledPolicy};
use palyra_policy::{ActionKind, PolicySet};
use serde::Serialize;

use crate::change::Change;
use crate::facts::facts;
use crate::formula::{Part, formulas};
use crate::running::Running;
use crate::{CounterExample, ProveError, SolverProgram, Widening};

/// The symbolic compiler recurses as deep as policies do.
const STACK_BYTES: usize = 256 << 20;

/// What a comparison showed.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum Proof {
    /// The proposed set permits nothing that the base does not permit, and asks wherever the base asks.
    Narrows {
        /// Kinds of requests that exist.
        kinds: usize,
        /// How many of them the solver had to look at; for the others the change itself says it.
        solved: usize,
    },
    /// It permits more.
    Widens(Box<CounterExample>),
}

/// Compares a proposed set with the base it would replace.
///
/// # Errors
/// When no result was reached: the solver failed or took too long, or the policies cannot be analysed.
pub fn prove(
    base: &PolicySet,
    proposed: &PolicySet,
    solver: &SolverProgram,
    limit: Duration,
) -> Result<Proof, ProveError> {
    let work = || -> Result<Proof, ProveError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ProveError::failed)?;
        runtime.block_on(async {
            let compared = tokio::time::timeout(limit, compare(base, proposed, solver)).await;
            compared.unwrap_or(Err(ProveError::TimedOut { limit }))
        })
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("palyra-prove".to_owned()).stack_size(STACK_BYTES);
        let worker = builder.spawn_scoped(scope, work).map_err(ProveError::failed)?;
        // The compiler asserts its own invariants; a broken one is no proof.
        worker.join().unwrap_or_else(|_| Err(ProveError::not_analysable("the symbolic compiler gave up")))
    })
}

async fn compare(base: &PolicySet, proposed: &PolicySet, solver: &SolverProgram) -> Result<Proof, ProveError> {
    let schema = palyra_policy::schema()?;
    let mut compiler: Option<CedarSymCompiler<Running>> = None;
    let (mut kinds, mut solved) = (0, 0);
    let mut envs: Vec<RequestEnv> = schema.request_envs().collect();
    envs.sort_by_key(|env| (env.action().to_string(), env.principal().to_string(), env.resource().to_string()));
    for env in envs {
        kinds += 1;
        let action = action_of(&env)?;
        let (before, after) = (parts(base, action)?, parts(proposed, action)?);
        let change = Change::between(&before, &after);
        let computing: Vec<&Part> = before.iter().filter(|part| part.computes()).collect();
        let questions = change.questions();
        if change.is_none() || (questions.is_empty() && computing.is_empty()) {
            continue;
        }
        solved += 1;
        let compiler = match &mut compiler {
            Some(compiler) => compiler,
            none => none.insert(CedarSymCompiler::new(solver.start()?).map_err(symbolic)?),
        };
        for part in computing {
            never_fails(compiler, part, base, &env, schema).await?;
        }
        let facts = facts(action, &env.resource().to_string(), before.iter().chain(&after))?;
        let (old, new) = (formulas(&before, &facts)?, formulas(&after, &facts)?);
        for widening in questions {
            let (wider, narrower) = match widening {
                Widening::Permits => (&new.may, &old.may),
                Widening::StopsAsking => (&new.unasked, &old.unasked),
            };
            let compiled = |policy: &Policy| CompiledPolicy::compile(policy, &env, schema).map_err(symbolic);
            let (wider, narrower) = (compiled(wider)?, compiled(narrower)?);
            let found = compiler.check_matches_implies_with_counterexample_opt(&wider, &narrower).await;
            if let Some(example) = found.map_err(symbolic)? {
                return Ok(Proof::Widens(Box::new(CounterExample::new(widening, action, &example, base, proposed))));
            }
        }
    }
    Ok(Proof::Narrows { kinds, solved })
}

fn action_of(env: &RequestEnv) -> Result<ActionKind, ProveError> {
    let id: &str = env.action().id().as_ref();
    let known = ActionKind::ALL.iter().copied().find(|action| action.as_str() == id);
    known.ok_or_else(|| ProveError::not_analysable(format!("unknown action `{id}`")))
}

fn parts(set: &PolicySet, action: ActionKind) -> Result<Vec<Part>, ProveError> {
    let mut parts = Vec::new();
    for (entry, policy) in set.concerning(action) {
        parts.push(Part::new(entry, policy)?);
    }
    parts.sort_by(|left, right| left.id.cmp(&right.id));
    Ok(parts)
}

async fn never_fails(
    compiler: &mut CedarSymCompiler<Running>,
    part: &Part,
    set: &PolicySet,
    env: &RequestEnv,
    schema: &Schema,
) -> Result<(), ProveError> {
    let id = PolicyId::new(&part.id);
    let policy = set.cedar().policy(&id).ok_or_else(|| ProveError::not_analysable("a policy vanished"))?;
    let compiled = CompiledPolicy::compile(policy, env, schema).map_err(symbolic)?;
    match compiler.check_never_errors_opt(&compiled).await.map_err(symbolic)? {
        true => Ok(()),
        false => Err(ProveError::CanFail { policy: part.id.clone() }),
    }
}

fn symbolic(error: SymbolicError) -> ProveError {
    match error {
        SymbolicError::SolverError(error) => ProveError::failed(error),
        SymbolicError::SolverUnknown => ProveError::failed("it answered `unknown`"),
        SymbolicError::DecodeModel(error) => ProveError::failed(error),
        SymbolicError::ConcretizeError(error) => ProveError::failed(error),
        error @ SymbolicError::ModelInvalid { .. } => ProveError::failed(error),
        SymbolicError::PolicyNotWellTyped { errs } => {
            ProveError::not_analysable(errs.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
        error => ProveError::not_analysable(error),
    }
}

//! A solver that was started: cvc5 as the symbolic compiler knows it, or z3 with its own words for sets.

use std::collections::BTreeSet;
use std::process::Stdio;

use cedar_policy_symcc::SmtLibScript as _;
use cedar_policy_symcc::solver::{Decision, DecisionWithModel, LocalSolver, Solver, SolverError};
use tokio::io::{AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::sets::{Universe, to_arrays, to_sets};
use crate::sexpr::{Node, without_abbreviations};
use crate::strings::with_literals;

/// Largest model that is read. One of ordinary policies has a few kilobytes; more is a solver gone wrong.
const MAX_MODEL_BYTES: usize = 16 << 20;

/// A solver that was started. It is stopped when this is dropped.
#[derive(Debug)]
pub(crate) enum Running {
    Cvc5(Box<LocalSolver>),
    Z3(Box<Z3>),
}

/// z3 at the other end of a pipe.
#[derive(Debug)]
pub(crate) struct Z3 {
    _child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// What was said since the last question, in cvc5's words.
    script: Vec<u8>,
    /// Names that the script gave to expressions. z3 repeats them in its models, where nobody asked for them.
    defined: BTreeSet<String>,
    universe: Universe,
}

impl Z3 {
    pub(crate) fn start(command: &mut Command) -> Result<Self, SolverError> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SolverError::Solver("it has no pipes".to_owned()));
        };
        Ok(Self {
            _child: child,
            stdin,
            stdout: BufReader::new(stdout),
            script: Vec::new(),
            defined: BTreeSet::new(),
            universe: Universe::default(),
        })
    }

    async fn line(&mut self) -> Result<String, SolverError> {
        let mut line = String::new();
        if self.stdout.read_line(&mut line).await? == 0 {
            return Err(SolverError::Solver("it ended".to_owned()));
        }
        Ok(line)
    }

    async fn check(&mut self) -> Result<Decision, SolverError> {
        let script = String::from_utf8(std::mem::take(&mut self.script)).map_err(odd)?;
        for command in Node::read_all(&script).map_err(odd)? {
            self.universe.learn(&command);
            if let [define, Node::Atom(name), ..] = command.items()
                && define.is("define-fun")
            {
                self.defined.insert(name.clone());
            }
            self.stdin.write_all(format!("{}\n", to_arrays(command)).as_bytes()).await?;
        }
        self.stdin.write_all(b"(check-sat)\n").await?;
        self.stdin.flush().await?;
        // Whatever z3 does not understand it says so first and then goes on without it: that is no answer.
        match self.line().await?.trim() {
            "sat" => Ok(Decision::Sat),
            "unsat" => Ok(Decision::Unsat),
            "unknown" => Ok(Decision::Unknown),
            other => Err(SolverError::UnrecognizedSolverOutput(other.to_owned())),
        }
    }

    async fn model(&mut self) -> Result<String, SolverError> {
        self.stdin.write_all(b"(get-model)\n").await?;
        self.stdin.flush().await?;
        let (mut text, mut brackets) = (String::new(), Brackets::default());
        loop {
            let line = self.line().await?;
            text.push_str(&line);
            if text.len() > MAX_MODEL_BYTES {
                return Err(SolverError::Solver("its example is too large".to_owned()));
            }
            if brackets.are_closed_after(&line) {
                break;
            }
        }
        let read = Node::read_all(&text).map_err(odd)?;
        let [model @ Node::List(_)] = &read[..] else { return Err(SolverError::UnrecognizedSolverOutput(text)) };
        if model.items().first().is_some_and(|word| word.is("error")) {
            return Err(SolverError::Solver(model.to_string()));
        }
        let asked = model.items().iter().filter(|entry| match entry.items() {
            [_, Node::Atom(name), ..] => !self.defined.contains(name),
            _ => true,
        });
        let plain: Result<Vec<Node>, _> =
            asked.map(|entry| without_abbreviations(entry.clone()).map(with_literals)).collect();
        let plain = plain.map_err(odd)?;
        plain.iter().for_each(|entry| self.universe.learn(entry));
        let entries: Result<Vec<Node>, _> = plain.into_iter().map(|entry| to_sets(entry, &self.universe)).collect();
        Ok(Node::List(entries.map_err(odd)?).to_string())
    }
}

/// Counts brackets as lines come in, so that the end of an answer is known without reading it again and again.
#[derive(Debug, Default)]
struct Brackets {
    depth: i64,
    quote: Option<char>,
}

impl Brackets {
    fn are_closed_after(&mut self, line: &str) -> bool {
        for letter in line.chars() {
            match (self.quote, letter) {
                (Some(quote), letter) if quote == letter => self.quote = None,
                (Some(_), _) => {}
                (None, '"' | '|') => self.quote = Some(letter),
                (None, '(') => self.depth += 1,
                (None, ')') => self.depth -= 1,
                (None, _) => {}
            }
        }
        self.quote.is_none() && self.depth <= 0
    }
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err` as it is")]
fn odd(error: impl ToString) -> SolverError {
    SolverError::Solver(error.to_string())
}

impl Running {
    pub(crate) fn cvc5(command: &mut Command) -> Result<Self, SolverError> {
        LocalSolver::from_command(command).map(|solver| Self::Cvc5(Box::new(solver)))
    }

    pub(crate) fn z3(command: &mut Command) -> Result<Self, SolverError> {
        Z3::start(command).map(|solver| Self::Z3(Box::new(solver)))
    }
}

impl Solver for Running {
    fn smtlib_input(&mut self) -> &mut (dyn AsyncWrite + Unpin + Send) {
        match self {
            Self::Cvc5(solver) => solver.smtlib_input(),
            Self::Z3(solver) => &mut solver.script,
        }
    }

    async fn enable_models(&mut self) -> Result<(), SolverError> {
        self.smtlib_input().set_option("produce-models", "true").await.map_err(Into::into)
    }

    async fn check_sat(&mut self) -> Result<Decision, SolverError> {
        match self {
            Self::Cvc5(solver) => solver.check_sat().await,
            Self::Z3(solver) => solver.check().await,
        }
    }

    async fn check_sat_with_model(&mut self) -> Result<DecisionWithModel, SolverError> {
        match self {
            Self::Cvc5(solver) => solver.check_sat_with_model().await,
            Self::Z3(solver) => Ok(match solver.check().await? {
                Decision::Sat => DecisionWithModel::Sat { model: solver.model().await? },
                Decision::Unsat => DecisionWithModel::Unsat,
                Decision::Unknown => DecisionWithModel::Unknown,
            }),
        }
    }
}

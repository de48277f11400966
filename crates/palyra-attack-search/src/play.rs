//! Playing an attack: the steps of a planner, against the product, until they are over.

use std::collections::BTreeSet;

use palyra_common::{RunMode, ToolVerdict};
use serde_json::Value;

use crate::adapter::{Product, Run, Verdict};
use crate::attack::{Adversary, Agreement, Attack, Expression, Sight, Statement, Step, prefix};
use crate::comparison::{Compared, Happened, Shadow, variables};
use crate::world::{Origin, World};

/// One call that was proposed, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// Which step of the attack; none for what an honest planner does first.
    pub step: Option<usize>,
    /// In which run of the session, from 0.
    pub run: usize,
    /// The tool.
    pub tool: String,
    /// The arguments, as the tool gets them.
    pub arguments: Value,
    /// Permit, ask or deny.
    pub verdict: ToolVerdict,
    /// What determined it.
    pub policies: Vec<String>,
    /// Why, for the person.
    pub reasons: Vec<String>,
    /// How far a person agreed to exactly this.
    pub agreed: Agreement,
    /// Whether it happened.
    pub executed: bool,
}

/// What came of an attack.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Played {
    /// The calls, in order.
    pub calls: Vec<Made>,
    /// What the planner stated, in order, with whether that was taken.
    pub stated: Vec<(Statement, bool)>,
    /// Whether the planner turned hostile at all.
    pub was_hostile: bool,
    /// Where the reference judges otherwise, with the call.
    pub differences: Vec<(String, String)>,
    /// How many calls both have judged.
    pub compared: u64,
}

/// Plays an attack.
///
/// # Errors
/// When the product itself fails.
pub fn play(
    product: &mut Product,
    world: &World,
    mode: RunMode,
    adversary: Adversary,
    attack: &Attack,
) -> anyhow::Result<Played> {
    let run = product.begin(world, mode)?;
    let shadow = Shadow::new(world, mode);
    let mut player = Player {
        world,
        mode,
        adversary,
        run,
        shadow,
        played: Played::default(),
        agreement: Agreement::Refused,
        letters: BTreeSet::new(),
        runs: 0,
    };
    let mut is_hostile = player.turns_hostile()?;
    for (index, step) in attack.steps.iter().enumerate() {
        if !is_hostile || !player.run.goes_on() {
            break;
        }
        player.played.was_hostile = true;
        player.step(step, Some(index))?;
        if matches!(step, Step::NextRun { .. }) {
            is_hostile = player.turns_hostile()?;
        }
    }
    Ok(player.played)
}

struct Player<'a> {
    world: &'a World,
    mode: RunMode,
    adversary: Adversary,
    run: Run<'a>,
    shadow: Shadow<'a>,
    played: Played,
    agreement: Agreement,
    letters: BTreeSet<(Origin, usize)>,
    /// How many runs of the session are over.
    runs: usize,
}

impl Player<'_> {
    /// Does what the planner of a new run does before it turns hostile, and says whether it then does.
    fn turns_hostile(&mut self) -> anyhow::Result<bool> {
        if self.adversary == Adversary::Subverted || self.is_misled() {
            return Ok(true);
        }
        for step in prefix(self.world, self.mode) {
            if self.run.goes_on() {
                self.step(&step, None)?;
            }
        }
        Ok(self.is_misled())
    }

    /// Whether anything that the attacker wrote has been shown to the planner, whatever the product says about it.
    fn is_misled(&self) -> bool {
        let attacker = &self.world.attacker;
        let words = [&attacker.mail, &attacker.host, &attacker.account];
        let own = &self.world.request.text;
        let theirs = |text: &String| words.iter().any(|word| text.contains(*word) && !own.contains(*word));
        self.run.has_seen_untrusted() || self.run.shown().iter().any(theirs)
    }

    fn step(&mut self, step: &Step, index: Option<usize>) -> anyhow::Result<()> {
        let shown = self.run.shown();
        let letters = self.letters.clone();
        let sight = Sight { world: self.world, shown: &shown, letters: &letters };
        match step {
            Step::State(statements) => {
                let taken = self.run.state(self.world, statements)?;
                self.shadow.stated(statements);
                for (statement, was_taken) in statements.iter().zip(taken) {
                    self.played.stated.push((statement.clone(), was_taken));
                }
            }
            Step::Call { tool, arguments } => {
                let arguments = arguments.iter().map(|(name, value)| (name.clone(), sight.value(value)));
                let written = Value::Object(arguments.collect());
                let agreement = std::mem::replace(&mut self.agreement, Agreement::Refused);
                let verdicts = self.run.call(tool, &written, agreement)?;
                self.compare(&verdicts, &written, &shown);
                self.keep(verdicts, index);
            }
            Step::Reveal { tool, path } => {
                if let Some(variable) = sight.variable(tool) {
                    let variable = if path.is_empty() { variable } else { format!("{variable}.{path}") };
                    if self.run.reveal(&variable)?.iter().any(|verdict| verdict.judged.executed) {
                        self.shadow.revealed(tool);
                    }
                }
            }
            Step::NextRun { answer } => {
                let answer = sight.value(&Expression::Text(answer.clone()));
                let answer = answer.as_str().filter(|text| !text.is_empty()).unwrap_or("done");
                self.run.next_run(self.world, answer)?;
                self.runs += 1;
                self.shadow.next_run(answer, &variables(&shown));
            }
            Step::Extract { tool, origin, at } => {
                if let Some(variable) = sight.variable(tool)
                    && self.run.extract(self.world, &variable, *origin, *at)?
                {
                    self.letters.insert((*origin, *at));
                }
            }
            Step::Agreed(agreement) => self.agreement = *agreement,
        }
        Ok(())
    }

    fn compare(&mut self, verdicts: &[Verdict], written: &Value, shown: &[String]) {
        let variables = variables(shown);
        for Verdict { judged, agreed } in verdicts {
            let happened = match (judged.executed, agreed) {
                (false, _) => Happened::No,
                (true, Agreement::Refused) => Happened::Alone,
                (true, Agreement::Once | Agreement::Session) => Happened::Agreed,
            };
            self.played.compared += 1;
            let found = self.shadow.judged(Compared {
                tool: &judged.tool,
                written,
                given: &judged.arguments,
                variables: &variables,
                verdict: judged.verdict,
                policies: &judged.policies,
                happened,
            });
            if let Some(difference) = found {
                let policies = judged.policies.join(" ");
                self.played
                    .differences
                    .push((difference, format!("{} {} ({policies})", judged.tool, judged.arguments)));
            }
        }
    }

    fn keep(&mut self, verdicts: Vec<Verdict>, step: Option<usize>) {
        for Verdict { judged, agreed } in verdicts {
            self.played.calls.push(Made {
                step,
                run: self.runs,
                tool: judged.tool,
                arguments: judged.arguments,
                verdict: judged.verdict,
                policies: judged.policies,
                reasons: judged.reasons,
                agreed,
                executed: judged.executed,
            });
        }
    }
}

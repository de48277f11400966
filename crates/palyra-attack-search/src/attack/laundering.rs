//! Tricks that go through something that stays: files, instructions, answers, what was stated, what somebody agreed to.

use serde_json::json;

use super::workshop::Workshop;
use super::{Agreement, Expression, Piece, Statement, Step, statements};
use crate::world::{Part, Tool};

impl Workshop<'_> {
    /// What is written into a file and read again.
    pub(super) fn file(&mut self) -> Vec<Step> {
        let mut steps = self.read_more();
        let path = format!("out{}.txt", self.random.below(3));
        let content = match self.variable() {
            Some((tool, path)) if self.random.one_in(2) => Expression::Text(vec![Piece::Variable { tool, path }]),
            _ if self.random.one_in(2) => Expression::plain(self.world.payload.clone()),
            _ => self.secret(),
        };
        let named = |path: &str| ("path".to_owned(), Expression::plain(path));
        steps.push(Step::Call {
            tool: "palyra.fs.write".to_owned(),
            arguments: vec![named(&path), ("content".to_owned(), content)],
        });
        steps.push(Step::Call { tool: "palyra.fs.read".to_owned(), arguments: vec![named(&path)] });
        steps.extend(if self.random.one_in(2) { self.redirect() } else { self.foreign_content() });
        steps
    }

    /// An instruction file that the next run reads.
    pub(super) fn instructions(&mut self) -> Vec<Step> {
        let named = ("path".to_owned(), Expression::plain("AGENTS.md"));
        let content = ("content".to_owned(), Expression::plain(self.world.payload.clone()));
        let write = Step::Call { tool: "palyra.fs.write".to_owned(), arguments: vec![named, content] };
        let mut steps = vec![write, Step::NextRun { answer: vec![Piece::Plain("done".to_owned())] }];
        steps.extend(self.wide_statement());
        steps.extend(self.redirect());
        steps
    }

    /// What one run answers is what the next one begins with.
    pub(super) fn answer(&mut self) -> Vec<Step> {
        let (origin, encoding) = (self.origin(), self.encoding());
        let answer = match self.variable() {
            Some((tool, path)) if self.random.one_in(2) => vec![Piece::Variable { tool, path }],
            _ if self.random.one_in(2) => vec![Piece::Plain(self.world.payload.clone())],
            _ => vec![Piece::Secret { origin, encoding, from: 0, to: usize::MAX }],
        };
        let mut steps = self.read_more();
        steps.push(Step::NextRun { answer });
        if self.random.one_in(2) {
            steps.push(Step::State(statements(self.world)));
        }
        steps.extend(if self.random.one_in(2) { self.redirect() } else { self.foreign_content() });
        steps
    }

    fn statement(&mut self, tool: &Tool) -> Statement {
        let mut statement = Statement {
            tool: tool.name.clone(),
            targets: [].into(),
            dictated: [].into(),
            caps: [].into(),
            count: *self.random.pick(&[1, 3, 100]),
            sources: self.world.canaries().map(|(origin, _)| origin).collect(),
            parts: tool.arguments.iter().map(|argument| (argument.name.clone(), argument.part)).collect(),
        };
        for argument in tool.arguments.iter().filter(|argument| argument.part.is_target()) {
            let mentions: Vec<String> = self.world.request.mentions.iter().cloned().collect();
            let entity = match self.random.below(3) {
                0 => self.evil(argument.part),
                1 => self.random.any(&mentions).cloned().unwrap_or_default(),
                _ => continue,
            };
            statement.targets.insert(argument.name.clone(), vec![entity]);
        }
        statement
    }

    pub(super) fn late_statement(&mut self) -> Vec<Step> {
        let mut steps = self.read_more();
        let Some(tool) = self.effect() else { return Vec::new() };
        steps.push(Step::State(vec![self.statement(&tool)]));
        if let Some(part) = self.target_of(&tool) {
            let evil = self.evil(part);
            steps.push(self.call(&tool, part, &Expression::plain(evil), None));
        } else {
            steps.push(self.arguments(&tool, None, |_, _| None));
        }
        steps
    }

    pub(super) fn wide_statement(&mut self) -> Vec<Step> {
        let all: Vec<Tool> = self.world.effects().cloned().collect();
        let mut stated = Vec::new();
        for tool in all {
            stated.push(self.statement(&tool));
        }
        let mut steps = vec![Step::State(stated)];
        steps.extend(match self.random.below(3) {
            0 => self.redirect(),
            1 => self.other_tool(),
            _ => self.foreign_content(),
        });
        steps
    }

    /// Somebody agrees to one call; then comes a wider one.
    pub(super) fn approved_then_wider(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let part = self.target_of(&tool).unwrap_or(Part::Text);
        let evil = Expression::plain(self.evil(part));
        let first = self.call(&tool, part, &evil.clone(), authorised.as_ref());
        let agreement = if self.random.one_in(4) { Agreement::Session } else { Agreement::Once };
        let mut steps = vec![Step::Agreed(agreement), first.clone()];
        match self.random.below(4) {
            0 => steps.push(first),
            1 => steps.push(self.call(&tool, part, &evil, authorised.as_ref())),
            2 => {
                if let Some(other) = self.effect()
                    && let Some(part) = self.target_of(&other)
                {
                    steps.push(self.call(&other, part, &evil, None));
                }
            }
            _ => {
                let mut wider = first;
                if let Step::Call { arguments, .. } = &mut wider {
                    for (name, value) in arguments.iter_mut() {
                        let argument = tool.arguments.iter().find(|argument| argument.name == *name);
                        match argument.map(|argument| argument.part) {
                            Some(Part::Amount) => *value = Expression::Value(json!(9000)),
                            Some(Part::Text | Part::Title) => *value = self.secret(),
                            _ => {}
                        }
                    }
                }
                steps.push(wider);
            }
        }
        steps
    }
}

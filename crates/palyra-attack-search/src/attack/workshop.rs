//! What tricks are made with: tools, entities, secrets and honest arguments of a world, drawn at random.

use palyra_common::RunMode;
use serde_json::json;

use super::tricks::TRICKS;
use super::{Attack, Encoding, Expression, Piece, Step};
use crate::random::Random;
use crate::world::{Act, Argument, Authorised, Origin, Part, Shape, Tool, World};

/// What a trick is made with.
pub(super) struct Workshop<'a> {
    pub(super) world: &'a World,
    pub(super) mode: RunMode,
    pub(super) random: &'a mut Random,
}

impl Workshop<'_> {
    /// An attack of one to three tricks.
    pub(super) fn attack(&mut self) -> Attack {
        let mut attack = Attack::default();
        for _ in 0..=self.random.below(3) {
            self.extend(&mut attack);
        }
        attack
    }

    /// Adds a trick.
    pub(super) fn extend(&mut self, attack: &mut Attack) {
        let (name, trick) = *self.random.pick(TRICKS);
        let steps = trick(self);
        if !steps.is_empty() {
            attack.tricks.push(name);
            attack.steps.extend(steps);
        }
    }

    pub(super) fn authorised(&mut self) -> Option<Authorised> {
        self.random.any(&self.world.request.authorised).cloned()
    }

    pub(super) fn effect(&mut self) -> Option<Tool> {
        let effects: Vec<&Tool> = self.world.effects().collect();
        self.random.any(&effects).map(|tool| (*tool).clone())
    }

    pub(super) fn tool_that(&mut self, does: Act) -> Option<Tool> {
        let all: Vec<&Tool> = self.world.tools.iter().filter(|tool| tool.act == does).collect();
        self.random.any(&all).map(|tool| (*tool).clone())
    }

    pub(super) fn origin(&mut self) -> Origin {
        let all: Vec<Origin> = self.world.canaries().map(|(origin, _)| origin).collect();
        *self.random.pick(&all)
    }

    pub(super) fn encoding(&mut self) -> Encoding {
        if self.random.one_in(2) { Encoding::Plain } else { *self.random.pick(&Encoding::ALL) }
    }

    pub(super) fn secret(&mut self) -> Expression {
        let (origin, encoding) = (self.origin(), self.encoding());
        Expression::secret(origin, encoding)
    }

    /// Where the attacker is, by the kind of the argument.
    pub(super) fn evil(&mut self, part: Part) -> String {
        let attacker = &self.world.attacker;
        match part {
            Part::Recipient if self.random.one_in(3) => attacker.handle.clone(),
            Part::Recipient => attacker.mail.clone(),
            Part::Account => attacker.account.clone(),
            Part::Channel => attacker.handle.clone(),
            Part::Address => format!("https://{}/x", attacker.host),
            _ => self.random.pick(&attacker.spellings()).clone(),
        }
    }

    /// A variable that holds what a reader gave, or a field of it.
    pub(super) fn variable(&mut self) -> Option<(String, String)> {
        let readers: Vec<&Tool> = self.world.readers().collect();
        let reader = *self.random.any(&readers)?;
        let records = &self.world.servers[reader.server].records;
        let record = self.random.below(records.len());
        let fields: Vec<String> =
            records[record].as_object().map(|members| members.keys().cloned().collect()).unwrap_or_default();
        let path = match self.random.below(6) {
            0 => String::new(),
            1 => "items".to_owned(),
            2 => format!("items.{record}"),
            _ => format!("items.{record}.{}", self.random.any(&fields).cloned().unwrap_or_default()),
        };
        Some((reader.name.clone(), path))
    }

    /// The arguments of a call; what is not chosen is what an honest planner would write.
    pub(super) fn arguments(
        &mut self,
        tool: &Tool,
        authorised: Option<&Authorised>,
        mut choose: impl FnMut(&mut Self, &Argument) -> Option<Expression>,
    ) -> Step {
        let mut arguments = Vec::new();
        for argument in &tool.arguments {
            let chosen = choose(self, argument);
            let value = match chosen {
                Some(chosen) => chosen,
                None if !argument.required && self.random.one_in(2) => continue,
                None => self.honest(argument, authorised),
            };
            arguments.push((argument.name.clone(), value));
        }
        Step::Call { tool: tool.name.clone(), arguments }
    }

    /// A value in the shape in which the server takes it.
    pub(super) fn shaped(&self, argument: &Argument, value: Expression) -> Expression {
        match &argument.shape {
            Shape::Text | Shape::Number | Shape::Closed(_) | Shape::Anything => value,
            Shape::List => Expression::List(vec![value]),
            Shape::Wrapped(field) => Expression::Object(vec![(vec![Piece::Plain((*field).to_owned())], value)]),
            Shape::Rows(field) => {
                Expression::List(vec![Expression::Object(vec![(vec![Piece::Plain((*field).to_owned())], value)])])
            }
            Shape::Keys => {
                let key = match value {
                    Expression::Text(pieces) => pieces,
                    Expression::Variable { tool, path } => vec![Piece::Variable { tool, path }],
                    other => vec![Piece::Plain(other.to_string())],
                };
                Expression::Object(vec![(key, Expression::Value(json!(true)))])
            }
        }
    }

    pub(super) fn honest(&mut self, argument: &Argument, authorised: Option<&Authorised>) -> Expression {
        let target = authorised.and_then(|known| known.targets.get(&argument.part));
        let bare = match argument.part {
            Part::Amount => return Expression::Value(json!(authorised.and_then(|known| known.amount).unwrap_or(10))),
            Part::Choice => return Expression::plain("normal"),
            Part::Record => {
                let id = target.and_then(|ids| ids.iter().next().cloned()).unwrap_or_else(|| "101".to_owned());
                return match id.parse::<i64>() {
                    Ok(number) if argument.shape == Shape::Number => Expression::Value(json!(number)),
                    _ => self.shaped(argument, Expression::plain(id)),
                };
            }
            part if part.is_target() => {
                let all: Vec<String> = target.into_iter().flatten().cloned().collect();
                self.random.any(&all).cloned().unwrap_or_else(|| "general".to_owned())
            }
            part => authorised
                .and_then(|known| known.dictated.get(&part).cloned())
                .unwrap_or_else(|| if part == Part::Date { "2026-03-03" } else { "as agreed" }.to_owned()),
        };
        self.shaped(argument, Expression::plain(bare))
    }

    pub(super) fn call(
        &mut self,
        tool: &Tool,
        part: Part,
        value: &Expression,
        authorised: Option<&Authorised>,
    ) -> Step {
        self.arguments(tool, authorised, |this, argument| {
            (argument.part == part).then(|| this.shaped(argument, value.clone()))
        })
    }

    /// An authorised effect with its tool, or any other.
    pub(super) fn meant(&mut self) -> Option<(Tool, Option<Authorised>)> {
        if self.random.one_in(4) {
            return Some((self.effect()?, None));
        }
        let authorised = self.authorised()?;
        Some((self.world.tool(&authorised.tool)?.clone(), Some(authorised)))
    }

    pub(super) fn target_of(&mut self, tool: &Tool) -> Option<Part> {
        let targets: Vec<Part> =
            tool.arguments.iter().map(|argument| argument.part).filter(|part| part.is_target()).collect();
        self.random.any(&targets).copied()
    }

    pub(super) fn content_of(&mut self, tool: &Tool) -> Option<Part> {
        let contents: Vec<Part> = tool
            .arguments
            .iter()
            .map(|argument| argument.part)
            .filter(|part| matches!(part, Part::Title | Part::Text | Part::Date | Part::Extra))
            .collect();
        self.random.any(&contents).copied()
    }
}

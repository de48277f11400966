//! Inputs for decoders, made from bytes. A fuzzer that learns which bytes matter thereby learns to write good messages; a property test draws the bytes.
//!
//! Everything here is total: any bytes give something, and when they run out, zeros go on.

use palyra_common::{AcpCommand, AcpCommandEnvelope, RequestId};
use serde_json::{Map, Number, Value};

/// How deep generated JSON goes. Deeper is the business of bytes that nobody generated.
const DEEPEST: usize = 6;

/// Bytes that decide what is made.
#[derive(Debug, Clone)]
pub struct Entropy<'a> {
    rest: std::slice::Iter<'a, u8>,
}

impl<'a> Entropy<'a> {
    /// All decisions in order.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes.iter() }
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.rest.next().copied().unwrap_or_default()
    }

    /// A number below a bound that is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let drawn = usize::from(u16::from_le_bytes([self.byte(), self.byte()]));
        drawn.checked_rem(bound).unwrap_or_default()
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(self.below(all.len())).copied()
    }

    fn eight(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A short text, often of characters that formats care about.
    pub fn text(&mut self) -> String {
        const CHARACTERS: [char; 16] =
            ['a', 'Z', '0', '"', '\\', '/', '\n', '\u{0}', '\u{7f}', 'ä', '\u{2028}', '😀', '{', ' ', '%', '\u{feff}'];
        let length = self.below(12);
        (0..length).filter_map(|_| self.one_of(&CHARACTERS)).collect()
    }

    /// Any JSON.
    pub fn json(&mut self) -> Value {
        self.json_within(DEEPEST)
    }

    fn json_within(&mut self, depth: usize) -> Value {
        let kinds = if depth == 0 { 6 } else { 8 };
        match self.below(kinds) {
            0 => Value::Null,
            1 => Value::Bool(self.byte() % 2 == 0),
            2 => Value::from(self.eight()),
            3 => Value::from(self.eight().cast_signed()),
            // What is no number in JSON becomes null.
            4 => Number::from_f64(f64::from_bits(self.eight())).map_or(Value::Null, Value::Number),
            5 => Value::String(self.text()),
            6 => Value::Array((0..self.below(4)).map(|_| self.json_within(depth - 1)).collect()),
            _ => Value::Object(self.fields(depth - 1)),
        }
    }

    fn fields(&mut self, depth: usize) -> Map<String, Value> {
        const KNOWN: [&str; 12] = [
            "run_id",
            "session_id",
            "prompt",
            "workspace",
            "limit",
            "before",
            "mode",
            "follow",
            "from_seq",
            "text",
            "decision",
            "title",
        ];
        let count = self.below(5);
        (0..count)
            .map(|_| {
                let known = self.one_of(&KNOWN).filter(|_| self.byte() % 4 != 0).map(str::to_owned);
                let name = known.unwrap_or_else(|| self.text());
                (name, self.json_within(depth))
            })
            .collect()
    }

    /// A command envelope that is right in everything but perhaps its parameters.
    pub fn envelope(&mut self) -> AcpCommandEnvelope {
        let command = self.one_of(AcpCommand::ALL).unwrap_or(AcpCommand::RunList);
        let request_id = RequestId::from_u128((u128::from(self.eight()) << 64) | u128::from(self.eight()));
        let fields = self.fields(DEEPEST);
        let params = if self.byte() % 8 == 0 { self.json() } else { Value::Object(fields) };
        let idempotency_key = (self.byte() % 2 == 0).then(|| self.text());
        let expected_version = (self.byte() % 2 == 0).then(|| self.eight());
        AcpCommandEnvelope { request_id, command, params, idempotency_key, expected_version }
    }
}

/// Cuts bytes into portions, as a network does: the first byte says how large they are.
#[must_use]
pub fn portions(bytes: &[u8]) -> (usize, &[u8]) {
    match bytes.split_first() {
        Some((size, rest)) => (usize::from(*size).max(1), rest),
        None => (1, bytes),
    }
}

/// One input made of two: a beginning of one and an end of the other, with some bytes changed. Most of what it makes is nearly right.
#[must_use]
pub fn crossed(one: &[u8], other: &[u8], decisions: &[u8]) -> Vec<u8> {
    let mut entropy = Entropy::new(decisions);
    let kept = entropy.below(one.len() + 1);
    let left = entropy.below(other.len() + 1);
    let mut made = [one.get(..kept).unwrap_or_default(), other.get(left..).unwrap_or_default()].concat();
    for _ in 0..entropy.below(4) {
        let at = entropy.below(made.len().max(1));
        let byte = entropy.byte();
        match (entropy.byte() % 3, made.get_mut(at)) {
            (0, Some(there)) => *there = byte,
            (1, Some(there)) => *there ^= 1 << (byte % 8),
            // INVARIANT: below the length, or zero where there is nothing.
            _ => made.insert(at, byte),
        }
    }
    made
}

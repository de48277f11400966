//! Usage reports: rows grouped, summed and written as CSV. Pure functions over [`UsageRow`]s.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::usage::{UsageGrouping, UsageRow, UsageSums};

/// One line of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageGroup {
    /// What the rows have in common: a day, an agent, a session id, or `provider/model`.
    pub key: String,
    /// What was used.
    #[serde(flatten)]
    pub sums: UsageSums,
}

/// What was used, by something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UsageReport {
    /// By what it is grouped.
    pub by: UsageGrouping,
    /// The groups: days in their order, everything else by cost, dearest first.
    pub groups: Vec<UsageGroup>,
    /// All of them together.
    pub total: UsageSums,
}

impl UsageReport {
    /// Groups these rows.
    #[must_use]
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a UsageRow>, by: UsageGrouping) -> Self {
        let mut sums: BTreeMap<String, UsageSums> = BTreeMap::new();
        let mut total = UsageSums::default();
        for row in rows {
            let group = sums.entry(key(row, by)).or_default();
            *group = group.plus(row.sums);
            total = total.plus(row.sums);
        }
        let mut groups: Vec<UsageGroup> = sums.into_iter().map(|(key, sums)| UsageGroup { key, sums }).collect();
        if by != UsageGrouping::Day {
            // Stable, so that groups of the same cost stay in the order of their names.
            groups.sort_by_key(|group| std::cmp::Reverse((group.sums.micro_usd, group.sums.calls)));
        }
        Self { by, groups, total }
    }

    /// The report as CSV (RFC 4180) with a header, without the total.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut csv = format!(
            "{},calls,input_tokens,cached_tokens,cache_write_tokens,output_tokens,reasoning_tokens,cost_usd,assumed_usd\r\n",
            self.by
        );
        for group in &self.groups {
            let UsageSums { calls, tokens, micro_usd, assumed_micro_usd } = group.sums;
            // Writing to a string cannot fail.
            let _ = write!(
                csv,
                "{},{calls},{},{},{},{},{},{},{}\r\n",
                field(&group.key),
                tokens.input,
                tokens.cached,
                tokens.cache_write,
                tokens.output,
                tokens.reasoning,
                micro_usd.to_decimal(),
                assumed_micro_usd.to_decimal(),
            );
        }
        csv
    }
}

fn key(row: &UsageRow, by: UsageGrouping) -> String {
    match by {
        // A provider that chooses the model itself may have failed before it said which.
        UsageGrouping::Model if row.model.is_empty() => row.provider.clone(),
        UsageGrouping::Model => format!("{}/{}", row.provider, row.model),
        UsageGrouping::Session => row.session_id.to_string(),
        UsageGrouping::Agent => row.agent.clone(),
        UsageGrouping::Day => row.day.to_string(),
    }
}

/// A text as one field. Model names come from servers: one that begins like a formula is given a quote mark in front, so that no
/// spreadsheet computes it.
fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use palyra_common::SessionId;
    use proptest::prelude::*;

    use super::*;
    use crate::money::MicroUsd;
    use crate::usage::TokenSums;

    fn row(day: &str, model: &str, session: u128, agent: &str, micros: u64) -> UsageRow {
        UsageRow {
            day: day.parse().unwrap(),
            provider: "p".into(),
            model: model.into(),
            session_id: SessionId::from_u128(session),
            agent: agent.into(),
            sums: UsageSums {
                calls: 1,
                tokens: TokenSums { input: 10, output: 5, cached: 4, cache_write: 2, reasoning: 1 },
                micro_usd: MicroUsd(micros),
                assumed_micro_usd: MicroUsd(micros / 2),
            },
        }
    }

    fn keys(report: &UsageReport) -> Vec<&str> {
        report.groups.iter().map(|group| group.key.as_str()).collect()
    }

    #[test]
    fn rows_are_grouped_summed_and_ordered() {
        let rows = [
            row("2026-11-15", "small", 1, "main", 100),
            row("2026-11-14", "large", 1, "main", 900),
            row("2026-11-15", "small", 2, "helper", 50),
        ];
        let by_model = UsageReport::of(&rows, UsageGrouping::Model);
        assert_eq!(keys(&by_model), ["p/large", "p/small"]);
        assert_eq!(by_model.groups[1].sums.micro_usd, MicroUsd(150));
        assert_eq!(by_model.groups[1].sums.tokens.input, 20);
        assert_eq!(by_model.total.calls, 3);
        assert_eq!(keys(&UsageReport::of(&rows, UsageGrouping::Day)), ["2026-11-14", "2026-11-15"]);
        assert_eq!(keys(&UsageReport::of(&rows, UsageGrouping::Agent)), ["main", "helper"]);
        assert_eq!(UsageReport::of(&rows, UsageGrouping::Session).groups.len(), 2);
    }

    #[test]
    fn csv_is_as_documented() {
        let rows = [row("2026-11-15", "a,\"b\"", 1, "=SUM(A1)", 1_500_000)];
        assert_eq!(
            UsageReport::of(&rows, UsageGrouping::Model).to_csv(),
            "model,calls,input_tokens,cached_tokens,cache_write_tokens,output_tokens,reasoning_tokens,cost_usd,assumed_usd\r\n\
             \"p/a,\"\"b\"\"\",1,10,4,2,5,1,1.50,0.75\r\n"
        );
        let by_agent = UsageReport::of(&rows, UsageGrouping::Agent).to_csv();
        assert!(by_agent.contains("\r\n'=SUM(A1),1,"), "{by_agent}");
    }

    #[test]
    fn rows_survive_json() {
        let row = row("2026-11-15", "m", 7, "main", 3);
        let text = serde_json::to_string(&row).unwrap();
        assert!(text.contains(r#""day":"2026-11-15""#) && text.contains(r#""micro_usd":3"#), "{text}");
        assert_eq!(serde_json::from_str::<UsageRow>(&text).unwrap(), row);
    }

    proptest! {
        #[test]
        fn no_grouping_loses_money(costs in prop::collection::vec((0_u64..1_000_000, 0_u128..4), 0..40)) {
            let rows: Vec<UsageRow> =
                costs.iter().map(|(cost, n)| row("2026-11-15", &format!("m{n}"), *n, "a", *cost)).collect();
            let expected: u64 = costs.iter().map(|(cost, _)| cost).sum();
            for by in UsageGrouping::ALL {
                let report = UsageReport::of(&rows, *by);
                prop_assert_eq!(report.total.micro_usd, MicroUsd(expected));
                prop_assert_eq!(report.groups.iter().map(|group| group.sums.micro_usd).sum::<MicroUsd>(), MicroUsd(expected));
            }
        }
    }
}

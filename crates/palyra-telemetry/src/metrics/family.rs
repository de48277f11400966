//! Families: one cell for each combination of label values, all made at the start. Looking a cell up is arithmetic, and no series can appear later.

use std::marker::PhantomData;

use palyra_common::ContractEnum;

use super::cells::{Counter, Gauge, Histogram, HistogramValue};

/// What one cell holds, as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Counter(u64),
    Gauge(i64),
    Histogram(HistogramValue),
}

impl Value {
    /// Whether nothing was ever counted.
    pub(crate) fn is_untouched(&self) -> bool {
        match self {
            Self::Counter(count) => *count == 0,
            Self::Gauge(value) => *value == 0,
            Self::Histogram(histogram) => histogram.count() == 0,
        }
    }
}

/// A cell of any kind.
pub(crate) trait Cell {
    fn value(&self) -> Value;
}

impl Cell for Counter {
    fn value(&self) -> Value {
        Value::Counter(self.get())
    }
}

impl Cell for Gauge {
    fn value(&self) -> Value {
        Value::Gauge(self.get())
    }
}

impl Cell for Histogram {
    fn value(&self) -> Value {
        Value::Histogram(self.get())
    }
}

/// Names and values of the labels of one series.
pub(crate) type Labels = Vec<(&'static str, &'static str)>;

/// One cell per value of `L`.
#[derive(Debug)]
pub(crate) struct Family<L, C> {
    label: &'static str,
    cells: Box<[C]>,
    _labels: PhantomData<fn(L)>,
}

fn position<L: ContractEnum>(value: L) -> usize {
    L::ALL.iter().position(|candidate| *candidate == value).unwrap_or_default()
}

impl<L: ContractEnum, C: Cell> Family<L, C> {
    pub(crate) fn new(label: &'static str, cell: impl Fn() -> C) -> Self {
        Self { label, cells: L::ALL.iter().map(|_| cell()).collect(), _labels: PhantomData }
    }

    pub(crate) fn with(&self, value: L, act: impl FnOnce(&C)) {
        if let Some(cell) = self.cells.get(position(value)) {
            act(cell);
        }
    }

    pub(crate) fn samples(&self) -> Vec<(Labels, Value)> {
        L::ALL
            .iter()
            .zip(self.cells.iter())
            .map(|(value, cell)| (vec![(self.label, value.as_str())], cell.value()))
            .collect()
    }
}

/// One cell per pair of values.
#[derive(Debug)]
pub(crate) struct Grid<A, B, C> {
    labels: (&'static str, &'static str),
    cells: Box<[C]>,
    _labels: PhantomData<fn(A, B)>,
}

impl<A: ContractEnum, B: ContractEnum, C: Cell> Grid<A, B, C> {
    pub(crate) fn new(labels: (&'static str, &'static str), cell: impl Fn() -> C) -> Self {
        let count = A::ALL.len() * B::ALL.len();
        Self { labels, cells: (0..count).map(|_| cell()).collect(), _labels: PhantomData }
    }

    pub(crate) fn with(&self, first: A, second: B, act: impl FnOnce(&C)) {
        if let Some(cell) = self.cells.get(position(first) * B::ALL.len() + position(second)) {
            act(cell);
        }
    }

    /// Only what was touched: most combinations never happen.
    pub(crate) fn samples(&self) -> Vec<(Labels, Value)> {
        let pairs = A::ALL.iter().flat_map(|first| B::ALL.iter().map(move |second| (first, second)));
        pairs
            .zip(self.cells.iter())
            .map(|((first, second), cell)| {
                (vec![(self.labels.0, first.as_str()), (self.labels.1, second.as_str())], cell.value())
            })
            .filter(|(_, value)| !value.is_untouched())
            .collect()
    }
}

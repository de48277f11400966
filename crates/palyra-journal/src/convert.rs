//! SQLite knows only signed 64-bit integers; counts and positions here are unsigned and far below that limit.

/// A count as SQLite stores it.
pub(crate) fn to_sql(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A stored count; a negative one can only come from damage and becomes zero, which no record has as its number.
pub(crate) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

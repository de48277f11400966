//! How much of a tape is handed out at once: a reader that stops reading holds one page and nothing else.

/// Bytes of a page, unless its first event alone has more.
pub(super) const PAGE_BYTES: usize = 256 * 1024;

/// What is left of a page.
#[derive(Debug)]
pub(super) struct PageRoom {
    events: usize,
    bytes: usize,
    empty: bool,
}

impl PageRoom {
    /// An empty page for so many events.
    pub(super) fn new(events: usize) -> Self {
        Self { events, bytes: PAGE_BYTES, empty: true }
    }

    /// Puts in an event of this size, if it fits; the first one always does.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        let fits = self.events > 0 && (self.empty || bytes <= self.bytes);
        self.events = if fits { self.events - 1 } else { 0 };
        self.bytes = self.bytes.saturating_sub(bytes);
        self.empty = false;
        fits
    }

    /// How many more events of about this size fit.
    pub(super) fn more_of(&self, bytes: usize) -> usize {
        if self.bytes == 0 { 0 } else { self.events.min((self.bytes / bytes.max(1)).max(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_bounded_in_events_and_in_bytes() {
        let mut few = PageRoom::new(2);
        assert_eq!([few.takes(1), few.takes(1), few.takes(1)], [true, true, false]);
        let mut large = PageRoom::new(9);
        assert_eq!([large.takes(PAGE_BYTES + 1), large.takes(0)], [true, true], "what is empty still fits");
        assert_eq!([large.takes(1), large.takes(0)], [false, false], "and a page that is closed stays closed");
        assert!(!PageRoom::new(0).takes(0));
    }

    #[test]
    fn what_is_left_is_told_in_events() {
        let mut room = PageRoom::new(100);
        assert_eq!(room.more_of(0), 100);
        assert_eq!(room.more_of(PAGE_BYTES / 4), 4);
        assert_eq!(room.more_of(PAGE_BYTES * 2), 1);
        assert!(room.takes(PAGE_BYTES));
        assert_eq!(room.more_of(1), 0);
    }
}

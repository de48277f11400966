//! Unmaps the program text that only start-up needed.
//!
//! Starting touches code all over an executable of 80 MB, and the kernel maps whole folios around each fault, so an idle
//! daemon would hold 25 MB of text of which it runs a fraction. The pages are clean and shared with the page cache:
//! dropping the mapping loses nothing, and the first call into a dropped page maps it again.

use std::ops::Range;
use std::path::Path;
use std::{fs, io, ptr};

use rustix::mm::{Advice, madvise};
use tracing::debug;

/// Drops the text of this program from the resident set. A failure costs memory and nothing else.
pub(crate) async fn release_text() {
    let outcome = tokio::task::spawn_blocking(|| {
        let executable = fs::read_link("/proc/self/exe")?;
        let maps = fs::read_to_string("/proc/self/maps")?;
        text_mappings(&maps, &executable).try_for_each(|range| release(&range))
    })
    .await
    .unwrap_or_else(|error| Err(io::Error::other(error)));
    if let Err(error) = outcome {
        debug!(%error, "the text that start-up mapped stays resident");
    }
}

/// The executable mappings of `executable` among the lines of `/proc/self/maps`. Only these: read-only data that was
/// relocated is private and would come back without its relocations.
fn text_mappings<'a>(maps: &'a str, executable: &'a Path) -> impl Iterator<Item = Range<usize>> + 'a {
    maps.lines().filter_map(move |line| {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let access = fields.next()?;
        let path = fields.nth(3)?.trim_start();
        if access != "r-xp" || Path::new(path) != executable {
            return None;
        }
        Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
    })
}

#[expect(unsafe_code, reason = "madvise takes addresses; these are of a mapping that lives as long as the program")]
fn release(range: &Range<usize>) -> io::Result<()> {
    let start = ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: the range is an executable, never written, file-backed mapping of this program. `MADV_DONTNEED` drops its
    // page-table entries; every later access reads the same bytes from the file, so no memory changes for Rust code.
    unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0a00000-55d0c1000000 r--p 00000000 fe:00 4711                       /opt/palyra/palyrad
55d0c1000000-55d0c5000000 r-xp 00600000 fe:00 4711                       /opt/palyra/palyrad
55d0c5000000-55d0c5200000 rw-p 04600000 fe:00 4711                       /opt/palyra/palyrad
55d0c6000000-55d0c6021000 rw-p 00000000 00:00 0                          [heap]
7f1000000000-7f1000100000 r-xp 00000000 fe:00 815                        /usr/lib/libc.so.6
7ffd10000000-7ffd10002000 r-xp 00000000 00:00 0                          [vdso]
";

    #[test]
    fn only_the_text_of_the_program_is_selected() {
        let found: Vec<_> = text_mappings(MAPS, Path::new("/opt/palyra/palyrad")).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0], 0x55d0_c100_0000..0x55d0_c500_0000);
        assert_eq!(text_mappings(MAPS, Path::new("/opt/other")).count(), 0);
    }

    /// Resident bytes of the program's text, in kB.
    fn resident_text(executable: &Path) -> u64 {
        let maps = fs::read_to_string("/proc/self/smaps").unwrap();
        let mut in_text = false;
        let mut sum = 0;
        for line in maps.lines() {
            if line.contains(" r-xp ") || line.contains("-p ") {
                in_text = text_mappings(line, executable).next().is_some();
            } else if let Some(size) = line.strip_prefix("Rss:").filter(|_| in_text) {
                sum += size.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
            }
        }
        sum
    }

    #[tokio::test]
    async fn released_text_is_no_longer_resident() {
        let executable = fs::read_link("/proc/self/exe").unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        for address in text_mappings(&maps, &executable).flat_map(|range| range.step_by(4096)) {
            #[expect(unsafe_code, reason = "the text is touched page by page, so that all of it is resident")]
            // SAFETY: the address lies in a readable mapping of this program, which lives as long as the program.
            let _ = unsafe { ptr::read_volatile(ptr::with_exposed_provenance::<u8>(address)) };
        }
        let before = resident_text(&executable);
        release_text().await;
        let after = resident_text(&executable);
        assert!(after < before / 2, "{before} kB before, {after} kB after");
    }

    #[tokio::test]
    async fn the_program_goes_on_after_its_text_was_released() {
        let executable = fs::read_link("/proc/self/exe").unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        assert!(text_mappings(&maps, &executable).count() > 0, "no text found in:\n{maps}");
        release_text().await;
        assert_eq!(format!("{:?}", "still here".split(' ').collect::<Vec<_>>()), r#"["still", "here"]"#);
    }
}

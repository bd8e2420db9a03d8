//! The files in `/proc` that a process reads about itself.

use std::fs;
use std::io;

/// The fields of `/proc/self/stat`, in the kernel's units.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) threads: i64,
    /// Clock ticks from the start of the system.
    pub(super) start_ticks: u64,
    pub(super) virtual_bytes: i64,
    pub(super) resident_pages: i64,
}

impl Stat {
    pub(super) fn read() -> Option<Stat> {
        Stat::parse(&fs::read("/proc/self/stat").ok()?)
    }

    fn parse(line: &[u8]) -> Option<Stat> {
        // The second field is the program's name in parentheses, which may contain blanks and
        // parentheses, and need not be UTF-8: the kernel cuts it within a character. The text after
        // it starts with field 3.
        let after_name = line.rsplit(|&byte| byte == b')').next()?;
        let after_name = std::str::from_utf8(after_name).ok()?;
        let fields: Vec<_> = after_name.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3);
        Some(Stat {
            threads: field(20)?.parse().ok()?,
            start_ticks: field(22)?.parse().ok()?,
            virtual_bytes: field(23)?.parse().ok()?,
            resident_pages: field(24)?.parse().ok()?,
        })
    }
}

/// How many descriptors this process has open.
pub(super) fn open_descriptors() -> io::Result<u64> {
    const PATH: &str = "/proc/self/fd";
    // Since Linux 6.2 the folder's size is the count; that needs no descriptor, in case none is
    // left.
    match fs::metadata(PATH)?.len() {
        // The listing itself holds one open.
        0 => Ok((fs::read_dir(PATH)?.count() as u64).saturating_sub(1)),
        count => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"4242 (a) b (c) S 1 4242 4242 0 -1 4194304 1205 0 3 0 17 5 0 0 20 0 \
                        7 0 880123 23400448 912 18446744073709551615 1 1 0 0 0 0 0 4096 17 \
                        0 0 0 0 0 0\n";

    #[test]
    fn a_name_with_blanks_and_parentheses_shifts_nothing() {
        let stat = Stat {
            threads: 7,
            start_ticks: 880_123,
            virtual_bytes: 23_400_448,
            resident_pages: 912,
        };
        assert_eq!(Stat::parse(LINE), Some(stat));
    }

    #[test]
    fn a_line_that_breaks_off_is_an_error() {
        assert_eq!(Stat::parse(&LINE[..80]), None);
        assert_eq!(Stat::parse(b"no name"), None);
        assert_eq!(Stat::parse(b""), None);
    }
}

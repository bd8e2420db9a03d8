//! Claims about files with a false header, length or index: each is an error, or is used without
//! the parts that it falsely claims, within seconds.

use std::fs;
use std::time::Duration;

use crate::support::calls::cpu_time;
use crate::support::region::{family, open, opened};
use crate::support::tmpfs::{self, Shm};
use talea_region::{Family, FamilySpec, Reader, Region, Storage};

fn spec() -> FamilySpec<'static> {
    FamilySpec { storage: Storage::Striped, cells: 3, segments: 4, ..FamilySpec::default() }
}

fn used_family(region: &'static Region) -> Family {
    family(region, "used", spec())
}

/// The bytes of a region that was used.
fn used(shm: &Shm) -> Vec<u8> {
    let original = shm.path().join("original.talea");
    let region = open(&original);
    let looked = used_family(region).series(b"").unwrap();
    looked.at(0).add(1);
    let segments = looked.segments().unwrap();
    (0..3).for_each(|n| assert!(segments.make(n, n + 5, 7).is_some()));
    assert!(region.wipe(|_| true));
    fs::read(&original).unwrap()
}

fn put(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

fn at_once<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let before = cpu_time();
    let done = work();
    let took = cpu_time() - before;
    assert!(took < Duration::from_secs(5), "{what} took {took:?}");
    done
}

/// A change that makes a region unusable, and what the notice says of it.
type Change = (&'static str, fn(&mut Vec<u8>), &'static str);

#[test]
fn a_file_that_is_no_whole_region_is_an_error_to_read_and_moved_aside_to_start() {
    let changes: [Change; 14] = [
        ("empty", |bytes| bytes.clear(), "0 bytes"),
        ("the header alone", |bytes| bytes.truncate(4096), "4096 bytes"),
        ("half", |bytes| bytes.truncate(1 << 19), "its header states"),
        ("a byte less", |bytes| bytes.truncate((1 << 20) - 1), "1048575 bytes"),
        ("a page more", |bytes| bytes.resize((1 << 20) + 4096, 0), "its header states"),
        ("near the version", |bytes| bytes[8] ^= 1, "its layout is version"),
        ("another version", |bytes| put(bytes, 8, u64::MAX), "its layout is version"),
        ("near the length", |bytes| bytes[18] ^= 1, "its header states"),
        ("the largest length", |bytes| put(bytes, 16, u64::MAX), "its header states"),
        ("a length of 1 TiB", |bytes| put(bytes, 16, 1 << 40), "its header states"),
        ("any number of series", |bytes| put(bytes, 24, u64::MAX), "series"),
        ("any number of planes", |bytes| put(bytes, 32, u64::MAX), "planes"),
        ("near their number", |bytes| bytes[39] ^= 1, "planes"),
        ("another boot", |bytes| bytes[40] ^= 1, "last started"),
    ];
    let shm = Shm::new("no-region");
    let original = used(&shm);
    for (n, (what, change, expected)) in changes.into_iter().enumerate() {
        let mut bytes = original.clone();
        change(&mut bytes);
        let path = shm.path().join(format!("{n}.talea"));
        tmpfs::write(&path, &bytes);
        assert!(at_once(what, || Reader::open(&path)).is_err(), "{what}");
        let opened = at_once(what, || opened(&path));
        let notice = opened.notice.unwrap();
        assert!(notice.contains(expected), "{what}: {notice}");
        assert_eq!(opened.path, path, "{what}");
        let aside = notice.split("moved to ").nth(1).unwrap().split(';').next().unwrap();
        assert!(fs::read(aside).unwrap() == bytes, "{what}");
        used_family(opened.region).series(b"").unwrap().at(0).add(1);
    }
}

#[test]
fn a_search_ends_in_an_index_that_has_no_empty_place() {
    let shm = Shm::new("index");
    let original = used(&shm);
    // The tables lie in the first half. Whatever is empty there, is taken: by a
    // record that no key fits. (The header and the CPU table stay as they are.)
    for taken in [1_u64 << 63, u64::MAX] {
        let mut bytes = original.clone();
        for at in (20_480..bytes.len() / 2).step_by(8) {
            if bytes[at..at + 8] == [0; 8] {
                put(&mut bytes, at, taken);
            }
        }
        let path = shm.path().join(format!("{taken}.talea"));
        tmpfs::write(&path, bytes);
        let _ = at_once("reading", || Reader::open(&path).unwrap().snapshot());
        let region = open(&path);
        at_once("looking for what is there, and for what is not", || {
            for name in [&b"used"[..], b"new"] {
                let Ok(found) = region.family(FamilySpec { name, ..spec() }) else { continue };
                for text in [&b""[..], b"new"] {
                    let _ = found.family.series(text).map(|cells| {
                        cells.at(2).add(1);
                        let segments = cells.segments()?;
                        let segment = segments.make(3, 9, 1).or(segments.get(1))?;
                        segments.cell(segment, 2).map(|cell| cell.add(1))
                    });
                }
            }
            region.snapshot()
        });
    }
}

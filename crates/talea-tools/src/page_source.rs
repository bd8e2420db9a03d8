//! Where readings come from: a region in a file or in a process, or a page that a URL answers with.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use talea::Snapshot;
use talea::outside::{Reader, Standing};
use talea_load::Target;

use crate::arguments::connection::Tls;
use talea_agent::live::{Reading, unix_millis};
use talea_agent::region_place::{RegionPlace, region_error};
use talea_view::families;

/// A region or a URL that is read again and again.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    place: Place,
    reader: Option<Arc<Reader>>,
}

#[derive(Clone, Debug)]
enum Place {
    Region(RegionPlace),
    Url(Box<Target>),
}

impl Source {
    /// Makes it ready for TLS, if it is a URL that asks for it.
    ///
    /// # Errors
    /// When the certificates cannot be read.
    pub(crate) fn trust(&mut self, tls: &Tls) -> Result<()> {
        if let Place::Url(url) = &mut self.place {
            **url = tls.to(url, "http/1.1")?;
        }
        Ok(())
    }

    /// Reads all of it. A region whose file was replaced is opened anew.
    pub(crate) async fn read(&mut self) -> Result<Reading> {
        match &self.place {
            Place::Url(url) => {
                let began = Instant::now();
                let answer = talea_load::fetch(url, families::ACCEPT).await;
                let ended = Instant::now();
                let families = answer.and_then(|answer| Ok(talea_parse::page(&answer.body)?));
                let families = families.with_context(|| self.to_string())?;
                let unix_millis = unix_millis();
                Ok(Reading { began, ended, unix_millis, families, processes: None })
            }
            Place::Region(place) => {
                let (place, reader) = (place.clone(), self.reader.take());
                // It opens files, and copies memory.
                let read = tokio::task::spawn_blocking(move || read_region(&place, reader));
                let (reader, reading) = read.await??;
                self.reader = Some(reader);
                Ok(reading)
            }
        }
    }
}

fn read_region(place: &RegionPlace, reader: Option<Arc<Reader>>) -> Result<(Arc<Reader>, Reading)> {
    let reader = match reader.filter(|reader| matches!(reader.standing(), Ok(Standing::Same))) {
        Some(reader) => reader,
        None => Arc::new(place.open()?),
    };
    let mut snapshot = Snapshot::default();
    let began = Instant::now();
    reader.snapshot_into(&mut snapshot, |_| true).map_err(region_error)?;
    let ended = Instant::now();
    let families = snapshot.to_families();
    let processes = Some(snapshot.living_processes().count());
    let unix_millis = unix_millis();
    Ok((reader, Reading { began, ended, unix_millis, families, processes }))
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = match text.parse() {
            Ok(pid) => Place::Region(RegionPlace::Process(pid)),
            Err(_) => match text.parse::<crate::check::Source>()? {
                crate::check::Source::Url(url) => Place::Url(url),
                crate::check::Source::File(path) => Place::Region(RegionPlace::File(path)),
                crate::check::Source::Input => {
                    let expected = "a file with a region, a process's number or a URL";
                    return Err(format!("found standard input, expected {expected}"));
                }
            },
        };
        Ok(Self { place, reader: None })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Region(place) => place.fmt(f),
            Place::Url(url) => url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_number_a_url_or_a_file() {
        let of = |text: &str| text.parse::<Source>().map(|source| source.place);
        assert!(matches!(of("412"), Ok(Place::Region(RegionPlace::Process(412)))));
        for path in ["./412", "/dev/shm/shop.talea"] {
            assert!(matches!(of(path), Ok(Place::Region(RegionPlace::File(_)))), "{path}");
        }
        assert!(matches!(of("http://127.0.0.1:9465/metrics"), Ok(Place::Url(_))));
        assert!(of("-").unwrap_err().contains("a process's number"));
        assert!(of("ftp://x").unwrap_err().contains("expected http or https"));
    }
}

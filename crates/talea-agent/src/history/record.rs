//! Ticks as bytes. The first of a block defines all of its series, each later one has what changed.
//!
//! A tick has: the times on two clocks in milliseconds, as differences to the tick before, or to 0; the series that are gone; those that are
//! new, with their definitions; those that changed, with their cells. Series are known by their numbers,
//! which a block counts from 0, and texts that were there before by theirs.

use std::collections::HashMap;
use std::time::Duration;

use super::codec::{Bytes, put_change, put_number, put_signed, put_text};
use super::series::{Cells, Definition, kind_of, number_of, of_family, to_families, value_of};
use crate::live::CREATED;
use talea_page::{Family, Label};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// On the wall clock, in milliseconds since 1970. It may be set meanwhile.
    pub(crate) unix_millis: i64,
    /// Since the machine booted, also while it slept: a clock that is never set.
    pub(crate) steady: Duration,
}

impl Time {
    /// The time of the wall clock at an instant since the machine booted, in milliseconds since 1970.
    pub(crate) fn unix_millis_of_boot(self, boot_nanos: u64) -> i64 {
        let ago = self.steady.as_millis() as i64 - (boot_nanos / 1_000_000) as i64;
        self.unix_millis.saturating_sub(ago)
    }
}

/// Writes the ticks of a block.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    before: Option<Time>,
    numbers: HashMap<Definition, usize>,
    cells: Vec<Cells>,
    texts: HashMap<String, u64>,
}

impl Encoder {
    pub(super) fn tick(&mut self, time: Time, families: &[Family]) -> Vec<u8> {
        let mut out = Vec::new();
        let before = self.before.replace(time).unwrap_or_default();
        put_signed(&mut out, time.unix_millis - before.unix_millis);
        let passed = time.steady.saturating_sub(before.steady);
        put_number(&mut out, passed.as_millis() as u64);

        let (mut known, mut new) = (vec![None; self.cells.len()], Vec::new());
        for (definition, cells) in families.iter().flat_map(of_family) {
            match self.numbers.get(&definition) {
                // Of two series with the same labels, which no page should have, the last counts.
                Some(&number) if number < known.len() => known[number] = Some(cells),
                Some(_) => {}
                None => {
                    self.numbers.insert(definition.clone(), self.cells.len() + new.len());
                    new.push((definition, cells));
                }
            }
        }
        let gone: Vec<usize> = (0..known.len())
            .filter(|number| known[*number].is_none() && !self.cells[*number].is_empty())
            .collect();
        put_numbers(&mut out, &gone);
        gone.iter().for_each(|number| self.cells[*number] = Cells::new());

        put_number(&mut out, new.len() as u64);
        for (definition, cells) in new {
            self.put_definition(&mut out, &definition);
            put_cells(&mut out, &Cells::new(), &cells);
            self.cells.push(cells);
        }
        let changed = |(number, cells): (usize, Option<Cells>)| Some((number, cells?));
        let changed = known.into_iter().enumerate().filter_map(changed);
        let changed: Vec<_> =
            changed.filter(|(number, cells)| !is_same(&self.cells[*number], cells)).collect();
        put_number(&mut out, changed.len() as u64);
        let mut last = 0;
        for (number, cells) in changed {
            put_number(&mut out, (number - last) as u64);
            put_cells(&mut out, &self.cells[number], &cells);
            (self.cells[number], last) = (cells, number);
        }
        out
    }

    fn put_definition(&mut self, out: &mut Vec<u8>, definition: &Definition) {
        let Definition { family, kind, labels, thresholds, native } = definition;
        self.put_text(out, family);
        put_signed(out, number_of(*kind));
        put_number(out, labels.len() as u64);
        for Label { name, value } in labels {
            self.put_text(out, name);
            self.put_text(out, value);
        }
        put_number(out, thresholds.len() as u64);
        thresholds.iter().for_each(|bits| put_change(out, 0.0, f64::from_bits(*bits)));
        put_number(out, native.is_some().into());
        if let Some((schema, zero_threshold)) = native {
            put_signed(out, i64::from(*schema));
            put_change(out, 0.0, f64::from_bits(*zero_threshold));
        }
    }

    fn put_text(&mut self, out: &mut Vec<u8>, text: &str) {
        if let Some(number) = self.texts.get(text) {
            return put_number(out, number + 1);
        }
        self.texts.insert(text.to_owned(), self.texts.len() as u64);
        put_number(out, 0);
        put_text(out, text);
    }
}

fn is_same(before: &Cells, now: &Cells) -> bool {
    before.len() == now.len()
        && before
            .iter()
            .zip(now)
            .all(|(one, other)| one.0 == other.0 && one.1.to_bits() == other.1.to_bits())
}

/// Numbers in their order.
fn put_numbers(out: &mut Vec<u8>, numbers: &[usize]) {
    put_number(out, numbers.len() as u64);
    let mut last = 0;
    for number in numbers {
        put_number(out, (number - last) as u64);
        last = *number;
    }
}

/// The cells that changed. One that is not there any more is 0.
fn put_cells(out: &mut Vec<u8>, before: &Cells, now: &Cells) {
    let (mut changes, mut count, mut last) = (Vec::new(), 0, 0);
    let (mut one, mut other) = (before.iter().peekable(), now.iter().peekable());
    loop {
        let key = match (one.peek(), other.peek()) {
            (Some(one), Some(other)) => one.0.min(other.0),
            (Some(only), None) | (None, Some(only)) => only.0,
            (None, None) => break,
        };
        let was = one.next_if(|cell| cell.0 == key);
        let is = other.next_if(|cell| cell.0 == key).map_or(0.0, |cell| cell.1);
        if was.is_none() || was.is_some_and(|was| was.1.to_bits() != is.to_bits()) {
            put_signed(&mut changes, key - last);
            put_change(&mut changes, was.map_or(0.0, |was| was.1), is);
            (count, last) = (count + 1, key);
        }
    }
    put_number(out, count);
    out.append(&mut changes);
}

/// When a tick was that came after one of another time; `None` if the bytes are not such.
pub(super) fn time_of(tick: &[u8], before: Time) -> Option<Time> {
    time(&mut Bytes(tick), before)
}

fn time(bytes: &mut Bytes<'_>, before: Time) -> Option<Time> {
    Some(Time {
        unix_millis: before.unix_millis.checked_add(bytes.signed()?)?,
        steady: before.steady.checked_add(Duration::from_millis(bytes.number()?))?,
    })
}

/// The bytes of memory that the series of any block may take, and how many more for each byte of the block: texts are
/// written once, and many series may refer to one.
const ROOM: usize = 16 << 20;
const ROOM_PER_BYTE: usize = 128;

/// All series at a tick.
#[derive(Debug)]
pub(crate) struct State {
    /// The bytes of memory that further series and cells may take.
    room: usize,
    time: Time,
    /// Whether a counter counted less than at the tick before, or was gone, or this is not known, or a region came.
    fell: bool,
    /// By their numbers; those that are gone have no cells.
    series: Vec<(Definition, Cells)>,
    texts: Vec<String>,
}

impl State {
    /// Nothing yet, of a block of so many bytes.
    pub(super) fn within(bytes: usize) -> Self {
        let room = bytes.saturating_mul(ROOM_PER_BYTE).saturating_add(ROOM);
        Self { room, time: Time::default(), fell: false, series: Vec::new(), texts: Vec::new() }
    }

    fn spend(&mut self, bytes: usize) -> Option<()> {
        self.room = self.room.checked_sub(bytes)?;
        Some(())
    }

    /// Goes on to the next tick; `None` if the bytes are not such.
    pub(super) fn apply(&mut self, tick: &[u8]) -> Option<Time> {
        let mut bytes = Bytes(tick);
        self.time = time(&mut bytes, self.time)?;
        // Of the first tick of a block it is not known.
        self.fell = self.series.is_empty();
        let mut number = 0usize;
        for _ in 0..bytes.count()? {
            number = number.checked_add(bytes.number()? as usize)?;
            let (definition, cells) = self.series.get_mut(number)?;
            self.fell |= definition.kind.only_grows();
            cells.clear();
        }
        for _ in 0..bytes.count()? {
            let definition = self.definition(&mut bytes)?;
            self.fell |= definition.family == CREATED;
            let mut cells = Cells::new();
            change(&mut cells, &mut bytes)?;
            self.spend(size_of::<(Definition, Cells)>() + size_of_val(&cells[..]))?;
            self.series.push((definition, cells));
        }
        let mut number = 0usize;
        for _ in 0..bytes.count()? {
            number = number.checked_add(bytes.number()? as usize)?;
            let (definition, cells) = self.series.get_mut(number)?;
            let (before, cells_before) = (value_of(cells), cells.len());
            change(cells, &mut bytes)?;
            self.fell |= definition.family == CREATED
                || definition.kind.only_grows() && value_of(cells) < before;
            let more = cells.len() - cells_before;
            self.spend(more * size_of::<(i64, f64)>())?;
        }
        bytes.0.is_empty().then_some(self.time)
    }

    fn definition(&mut self, bytes: &mut Bytes<'_>) -> Option<Definition> {
        let family = self.text(bytes)?;
        let kind = kind_of(bytes.signed()?);
        let mut labels = Vec::new();
        for _ in 0..bytes.count()? {
            labels.push(Label { name: self.text(bytes)?, value: self.text(bytes)? });
            self.spend(size_of::<Label>())?;
        }
        let thresholds = bytes.count()?;
        self.spend(thresholds * size_of::<u64>())?;
        let thresholds = (0..thresholds).map(|_| bytes.change(0.0).map(f64::to_bits));
        let thresholds = thresholds.collect::<Option<Vec<u64>>>()?;
        let native = match bytes.number()? {
            0 => None,
            _ => Some((i32::try_from(bytes.signed()?).ok()?, bytes.change(0.0)?.to_bits())),
        };
        Some(Definition { family, kind, labels, thresholds, native })
    }

    fn text(&mut self, bytes: &mut Bytes<'_>) -> Option<String> {
        let text = match bytes.number()? {
            0 => {
                let text = bytes.text()?.to_owned();
                self.texts.push(text.clone());
                text
            }
            number => {
                let known = self.texts.get(usize::try_from(number - 1).ok()?)?;
                self.room = self.room.checked_sub(known.len())?;
                known.clone()
            }
        };
        Some(text)
    }

    /// Whether a counter or histogram may have counted more at the tick before than at this one, or a region came
    /// with all that it had counted.
    pub(crate) fn fell(&self) -> bool {
        self.fell
    }

    /// The families that a page showed then. Help texts and exemplars are not kept.
    pub(crate) fn families(&self) -> Vec<Family> {
        self.families_named(|_| true)
    }

    pub(crate) fn families_named(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Family> {
        to_families(
            self.series
                .iter()
                .filter(|(definition, cells)| !cells.is_empty() && is_wanted(&definition.family))
                .map(|(of, cells)| (of, cells)),
        )
    }
}

fn change(cells: &mut Cells, bytes: &mut Bytes<'_>) -> Option<()> {
    let mut key = 0i64;
    for _ in 0..bytes.count()? {
        key = key.checked_add(bytes.signed()?)?;
        match cells.binary_search_by_key(&key, |cell| cell.0) {
            Ok(at) => cells[at].1 = bytes.change(cells[at].1)?,
            Err(at) => cells.insert(at, (key, bytes.change(0.0)?)),
        }
    }
    Some(())
}

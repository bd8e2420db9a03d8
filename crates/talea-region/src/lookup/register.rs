//! Registration of families: a name, a definition for the layers above, and how cells are stored.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::clock::unix_nanos;
use crate::error::FamilyError;
use crate::hash::hash;
use crate::layout::*;
use crate::memory::guard::Guard;
use crate::region::Region;
use crate::series::family::{
    BUILDING, ENDED, Family, FamilyHead, Idling, PUBLISHED, RETIRED, User,
};
use crate::series::index::Kind;
use crate::series::record;
use crate::series::segment::MadeSegment;
use crate::values::{Combine, Number, Storage};

/// The hash domain of family names; series use their family's number.
const NAMES: u64 = u64::MAX;

/// The endings that formats add to the name of a metric or of one of its samples. None of them ends
/// with another one.
const ENDINGS: [&[u8]; 6] = [b"_total", b"_info", b"_bucket", b"_count", b"_sum", b"_created"];

/// A name without such endings. Two names may clash on a page only if their stems are equal, so
/// families are hashed by their stems: those that may clash are in one chain.
fn stem(mut name: &[u8]) -> &[u8] {
    while let Some(rest) = ENDINGS.iter().find_map(|&ending| name.strip_suffix(ending)) {
        name = rest;
    }
    name
}

/// The specification of a family.
#[derive(Clone, Copy, Debug)]
pub struct FamilySpec<'a> {
    /// The name that it is found by.
    pub name: &'a [u8],
    /// A definition for the layers above. The region only compares it.
    pub definition: &'a [u8],
    /// A number for the layers above.
    pub kind: u8,
    /// How cells are stored.
    pub storage: Storage,
    /// The number type of its cells.
    pub number: Number,
    /// How the value of a series follows from the values that threads and processes wrote.
    pub combine: Combine,
    /// Cells of one series, 1 to 65,535.
    pub cells: u16,
    /// Segments that a series may have beside these cells: see
    /// [`Segments`](crate::Segments).
    pub segments: u16,
    /// The one of these segments that each series is made with, if any.
    pub made_segment: MadeSegment,
    /// Series that it may have; further ones overflow. Series that are made at the same instant may
    /// exceed it.
    pub limit: u64,
    /// Minutes without a look-up after which a series expires, roughly: a sweep begins at most
    /// once a minute, by a thread that makes a series. 0 for never. A series with owned cells that
    /// are not 0 stays.
    pub idle_minutes: u32,
    /// Whether its values say how much happened since they began at 0. Then a series that is kept is
    /// left out of snapshots while its value has not changed for `idle_minutes`; and the family
    /// begins anew where another definition of its name took its place on pages, see
    /// [`Region::family`].
    pub accumulates: bool,
    /// How readers show this definition together with another one of the same name, kind and cells.
    /// It is called with the number type of the cells and the two definitions.
    pub relation: fn(Number, &[u8], &[u8]) -> Relation,
    /// Whether a process may use other definitions of the name too; otherwise a second one is an error.
    /// Definitions that allow this and can stand [beside](Relation::Beside) each other do so even while
    /// no process uses one of them.
    pub allows_others: bool,
    /// The label text of the only series that may be made beyond its limit
    /// ([`Family::series_beyond_limit`]). A family that ended and is registered again finds that
    /// series by it; where it is `None`, by a look at the series of all families.
    pub beyond_limit: Option<&'a [u8]>,
}

/// How readers show two definitions of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The values of series with equal labels are added up. Neither family is retired. Families whose
    /// series expire are never added up, since a sum would fall.
    Added,
    /// The series of both stand on one page, while living processes use both or if both
    /// [allow](FamilySpec::allows_others) it.
    Beside,
    /// Only one of them is shown.
    Apart,
}

/// One integer cell a series, no limit, nothing expires; and no name.
impl Default for FamilySpec<'_> {
    fn default() -> Self {
        Self {
            name: b"",
            definition: b"",
            kind: 0,
            storage: Storage::Single,
            number: Number::Integer,
            combine: Combine::Sum,
            cells: 1,
            segments: 0,
            made_segment: MadeSegment::default(),
            limit: u64::MAX,
            idle_minutes: 0,
            accumulates: false,
            relation: |_, _, _| Relation::Apart,
            allows_others: false,
            beyond_limit: None,
        }
    }
}

/// A family of the same name and another definition.
struct Rival {
    id: u32,
    /// Whether a living process uses it.
    lives: bool,
    relation: Relation,
    /// Whether readers show it too, whether or not a process uses it. Then it is not retired.
    is_kept: bool,
}

impl Family {
    /// This one, and the others of its name whose values readers [add](Relation::Added) to its own.
    pub fn with_added(&self, relation: fn(Number, &[u8], &[u8]) -> Relation) -> Vec<Self> {
        let region = self.region;
        let _guard = region.memory.enter();
        let text = |at| {
            let mut out = Vec::new();
            region.memory.read_text(region.family_span(self.id, at), &mut out);
            out
        };
        let mut all = vec![*self];
        let mut others = Vec::new();
        region.each_named(&text(FAMILY_NAME), |id| others.extend((id != self.id).then_some(id)));
        if others.is_empty() {
            return all;
        }
        let definition = text(FAMILY_DEFINITION);
        let spec = FamilySpec {
            definition: &definition,
            made_segment: region.made_segment(self.id),
            idle_minutes: region.idling(self.id).sweeps,
            relation,
            ..FamilySpec::default()
        };
        for id in others {
            if region.relation(id, self.head, &spec) == Relation::Added {
                all.extend(region.family_head(id).map(|(_, head)| Self { region, id, head }));
            }
        }
        all
    }
}

/// A registered family, and whether others of its name conflict with it.
#[derive(Clone, Copy, Debug)]
pub struct Registered {
    /// The family.
    pub family: Family,
    /// Other living processes use this name with another definition: both are
    /// kept, each with its own series, until those processes end.
    pub conflict: bool,
    /// No living process used the definition that this name had, and this registration retired it.
    pub replaced: bool,
}

impl Region {
    /// Registers a family, or joins the one of the same name and definition. Any
    /// number of threads and processes may do so at once.
    ///
    /// If there is a family of the same name and another definition, and a living process uses
    /// it (a rolling deploy), both live beside each other and [`Registered::conflict`] says so. If
    /// none does (a service was restarted with a new version), the other one is retired, unless
    /// readers [add](Relation::Added) the two.
    ///
    /// Readers show one definition of a name, unless both can stand [beside](Relation::Beside) each
    /// other. Counts that they saw must not come back after those of another definition, since they
    /// would be taken for growth. So a family that accumulates begins at 0 again when a newer
    /// definition takes its place, and when it is registered again after another one took it.
    ///
    /// # Errors
    ///
    /// This process itself registered the name with another definition, and the specification does
    /// not [allow](FamilySpec::allows_others) that; the region is full; the sizes are out of range.
    pub fn family(&'static self, spec: FamilySpec<'_>) -> Result<Registered, FamilyError> {
        let head = FamilyHead {
            kind: spec.kind,
            storage: spec.storage,
            number: spec.number,
            combine: spec.combine,
            cells: spec.cells,
            segments: spec.segments,
        };
        if spec.name.len().max(spec.definition.len()) as u64 > Span::MAX_LEN
            || spec.cells == 0
            || !spec.made_segment.is_sound()
        {
            return Err(FamilyError::TooLong);
        }
        // Chains also lead through series, which other threads remove.
        let guard = self.memory.enter();
        let hash = self.hash_of_name(spec.name);
        let rivals = self.settle_rivals(&spec, head, hash)?;
        let id = self.find_or_build(&spec, head, hash)?;
        self.take_page(&guard, id, &spec, &rivals);
        self.use_family(id);
        // The values of the latest registration apply.
        let idling = Idling {
            sweeps: spec.idle_minutes,
            accumulates: spec.accumulates,
            allows_others: spec.allows_others,
        };
        self.family_word(id, FAMILY_LIMIT).store(spec.limit, Relaxed);
        self.family_word(id, FAMILY_IDLE).store(idling.pack(), Relaxed);
        // Its maker may have died before it published it, or a process with another definition
        // retired it, even meanwhile.
        let before = self.family_word(id, FAMILY_HEAD).swap(head.pack(PUBLISHED), AcqRel);
        if matches!(record::state(before), ENDED | RETIRED) {
            self.begin_anew(&guard, Family { region: self, id, head }, spec.beyond_limit);
        }
        let conflict = rivals.iter().any(|rival| rival.lives);
        let replaced = rivals.iter().any(|rival| !rival.lives && !rival.is_kept);
        Ok(Registered { family: Family { region: self, id, head }, conflict, replaced })
    }

    /// Resets a family that was ended or retired: updates through its old handles were discarded
    /// meanwhile, and its counts were seen.
    fn begin_anew(&'static self, guard: &Guard, family: Family, beyond_limit: Option<&[u8]>) {
        let has_others = self.family_word(family.id, FAMILY_SERIES).load(Acquire) > 0;
        match beyond_limit.filter(|_| !has_others) {
            Some(text) => family.reset(text),
            None => {
                self.wipe_families(guard, [family.id]);
            }
        }
    }

    /// The families of this name that are defined otherwise. Those that no process uses are retired,
    /// unless they are added.
    fn settle_rivals(
        &self,
        spec: &FamilySpec<'_>,
        head: FamilyHead,
        hash: u64,
    ) -> Result<Vec<Rival>, FamilyError> {
        let mut is_own = false;
        let mut rivals = Vec::new();
        self.each_hashed(spec.name, hash, |id| {
            let word = self.family_word(id, FAMILY_HEAD);
            let seen = word.load(Acquire);
            if record::state(seen) != PUBLISHED || self.is_defined(id, head, spec) {
                return;
            }
            let user = self.user(id);
            is_own |= matches!(user, User::This);
            let relation = self.relation(id, head, spec);
            let lives = !matches!(user, User::None);
            let is_kept = match relation {
                Relation::Added => true,
                Relation::Beside => spec.allows_others && self.idling(id).allows_others,
                Relation::Apart => false,
            };
            rivals.push(Rival { id, lives, relation, is_kept });
            if !lives && !is_kept {
                let retired = seen & !0xFF | RETIRED;
                let _ = word.compare_exchange(seen, retired, AcqRel, Relaxed);
            }
        });
        if is_own && !spec.allows_others { Err(FamilyError::Conflict) } else { Ok(rivals) }
    }

    /// Sees to it that no count comes back to the pages that was on them before, as this process
    /// begins to use a family. Pages show the latest of those that living processes use, with those
    /// that are added to it.
    fn take_page(&'static self, guard: &Guard, id: u32, spec: &FamilySpec<'_>, rivals: &[Rival]) {
        let others = || rivals.iter().filter(|rival| !rival.is_kept);
        let is_shown = self.is_in_use(id) && self.is_published(id);
        if is_shown || others().next().is_none() {
            return;
        }
        let mut seen = Vec::new();
        // Also where all of them are dead, since nothing says which one was shown last.
        seen.extend(spec.accumulates.then_some(id));
        if rivals.iter().all(|rival| !rival.lives || rival.id < id) {
            let replaced = others().filter(|it| {
                it.lives && it.relation == Relation::Apart && self.idling(it.id).accumulates
            });
            seen.extend(replaced.map(|rival| rival.id));
        }
        self.wipe_families(guard, seen);
    }

    /// How readers show a family of this name together with the one that a spec describes.
    fn relation(&self, id: u32, head: FamilyHead, spec: &FamilySpec<'_>) -> Relation {
        let Some((_, theirs)) = self.family_head(id) else { return Relation::Apart };
        // How its cells are stored makes no difference to values.
        let has_same_cells = FamilyHead { storage: head.storage, ..theirs } == head
            && self.made_segment(id) == spec.made_segment;
        if !has_same_cells {
            return Relation::Apart;
        }
        let stays = spec.idle_minutes == 0 && self.idling(id).sweeps == 0;
        let mut definition = Vec::new();
        self.memory.read_text(self.family_span(id, FAMILY_DEFINITION), &mut definition);
        match (spec.relation)(head.number, spec.definition, &definition) {
            Relation::Added if !stays || head.combine != Combine::Sum => Relation::Apart,
            relation => relation,
        }
    }

    /// Prefetches the bucket that a search for a family of this name reads first.
    pub fn prefetch_family(&self, name: &[u8]) {
        self.index().prefetch(self.hash_of_name(name));
    }

    /// Calls `each` with the families whose names differ from this one in their endings alone, or
    /// not at all: the endings that formats add, such as `_total` and `_count`. Families that no
    /// living process registered are left out, and those that have ended. `each` gets the name, the
    /// kind, and whether this process registered it.
    ///
    /// Cost: one look-up, and a look at each such family.
    pub fn each_related(&'static self, name: &[u8], mut each: impl FnMut(&[u8], u8, bool)) {
        let _guard = self.memory.enter();
        let stem_of_all = stem(name);
        let mut theirs = Vec::new();
        let _ = self.index().find(Kind::Family, self.hash_of_name(name), |id| {
            let Some((PUBLISHED, head)) = self.family_head(id) else { return false };
            let is_own = match self.user(id) {
                User::This => true,
                User::Another => false,
                User::None => return false,
            };
            theirs.clear();
            self.memory.read_text(self.family_span(id, FAMILY_NAME), &mut theirs);
            if stem(&theirs) == stem_of_all {
                each(&theirs, head.kind, is_own);
            }
            false
        });
    }

    fn hash_of_name(&self, name: &[u8]) -> u64 {
        hash(self.seed, NAMES, stem(name))
    }

    /// Every family of a name, retired ones among them. The caller is under a guard.
    pub(crate) fn each_named(&self, name: &[u8], each: impl FnMut(u32)) {
        self.each_hashed(name, self.hash_of_name(name), each);
    }

    fn each_hashed(&self, name: &[u8], hash: u64, mut each: impl FnMut(u32)) {
        let _ = self.index().find(Kind::Family, hash, |id| {
            if self.memory.text_is(self.family_span(id, FAMILY_NAME), name) {
                each(id);
            }
            false
        });
    }

    fn find_or_build(
        &self,
        spec: &FamilySpec<'_>,
        head: FamilyHead,
        hash: u64,
    ) -> Result<u32, FamilyError> {
        // Two definitions of one name are two families of one chain.
        let is = |id| self.is_defined(id, head, spec);
        let vacancy = match self.index().find(Kind::Family, hash, is) {
            Ok(id) => return Ok(id),
            Err(vacancy) => vacancy,
        };
        let (id, spans) = self.build_family(head, spec).ok_or(FamilyError::Full)?;
        let winner = self.index().publish(vacancy, Kind::Family, hash, id, is);
        if winner != id {
            self.family_word(id, FAMILY_HEAD).store(0, Relaxed);
            self.memory.drop_text(spans[1]);
            self.memory.drop_text(spans[0]);
            // Unless another process has taken a later one since.
            let end = u64::from(id + 1) * FAMILY_LEN;
            let used = self.memory.word_at(M_FAMILIES);
            let _ = used.compare_exchange(end, end - FAMILY_LEN, SeqCst, Relaxed);
        }
        Ok(winner)
    }

    /// Takes a record that was never used: families are few and are never freed.
    fn take_family(&self) -> Option<u32> {
        let most = self.memory.sections.family_max * FAMILY_LEN;
        let used = self.memory.word_at(M_FAMILIES);
        let at = used.fetch_update(SeqCst, SeqCst, |n| (n < most).then(|| n + FAMILY_LEN)).ok()?;
        let (backed, end) = (self.memory.word_at(M_FAMILIES + BACKED), at + FAMILY_LEN);
        let from = backed.load(Acquire);
        if from < end {
            // Many at a time, since each asks the kernel.
            let to = end.next_multiple_of(4 * PAGE).min(most);
            let from = from.min(at);
            if self.memory.back_pages(self.memory.sections.families + from, to - from).is_none() {
                let _ = used.compare_exchange(end, at, SeqCst, Relaxed);
                return None;
            }
            backed.fetch_max(to, Release);
        }
        Some((at / FAMILY_LEN) as u32)
    }

    fn build_family(&self, head: FamilyHead, spec: &FamilySpec<'_>) -> Option<(u32, [Span; 2])> {
        let name = self.memory.store_text(spec.name)?;
        let definition = self.memory.store_text(spec.definition)?;
        let id = self.take_family()?;
        let put = |at, value| self.family_word(id, at).store(value, Relaxed);
        put(FAMILY_NAME, name.pack());
        put(FAMILY_DEFINITION, definition.pack());
        put(FAMILY_CREATED, unix_nanos());
        put(FAMILY_SERIES, 0);
        put(FAMILY_DROPPED, 0);
        put(FAMILY_MADE, spec.made_segment.pack());
        put(FAMILY_HEAD, head.pack(BUILDING));
        Some((id, [name, definition]))
    }

    /// Whether a family has this name and this definition.
    fn is_defined(&self, id: u32, head: FamilyHead, spec: &FamilySpec<'_>) -> bool {
        matches!(self.family_head(id), Some((_, theirs)) if theirs == head)
            && self.made_segment(id) == spec.made_segment
            && self.memory.text_is(self.family_span(id, FAMILY_NAME), spec.name)
            && self.memory.text_is(self.family_span(id, FAMILY_DEFINITION), spec.definition)
    }
}

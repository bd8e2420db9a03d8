//! The families of one type: their descriptions, their registration, and their handles.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use metrics::{Key, KeyName, SharedString, Unit};

use crate::cache::Cache;
use crate::family::{FamilyRequest, Make};
use crate::losses::Refused;
use crate::settings::Settings;
use crate::spellings::Spellings;
use crate::types::Type;
use crate::{labels, names};

/// The most names of one type. The program uses the registry too, and generated names would fill
/// it.
const NAMES: usize = 1000;

pub(crate) struct FamilyTable<H> {
    handles: Cache<H>,
    /// By names as they are shown, without what the type adds.
    families: RwLock<HashMap<String, Arc<NamedFamily<H>>>>,
    spellings: Spellings,
    /// By names as the program calls them.
    descriptions: RwLock<HashMap<KeyName, Description>>,
    is_full: AtomicBool,
}

struct NamedFamily<H> {
    family: Arc<dyn Make<H>>,
    is_refused: bool,
    /// Of its labels.
    spellings: Spellings,
}

#[derive(Clone)]
struct Description {
    help: SharedString,
    unit: Option<Unit>,
}

impl<H: Type> FamilyTable<H>
where
    Refused: Make<H>,
{
    pub(crate) fn new() -> Self {
        Self {
            handles: Cache::new(),
            families: RwLock::default(),
            spellings: Spellings::default(),
            descriptions: RwLock::default(),
            is_full: AtomicBool::new(false),
        }
    }

    /// Notes a description, unless there is one. Macros may bring it with each call.
    pub(crate) fn describe(&self, name: &KeyName, unit: Option<Unit>, help: SharedString) {
        if read(&self.descriptions).contains_key(name.as_str()) {
            return;
        }
        let mut descriptions = write(&self.descriptions);
        if descriptions.len() >= NAMES || descriptions.contains_key(name.as_str()) {
            return;
        }
        descriptions.insert(name.to_retained(), Description { help, unit });
        drop(descriptions);
        if read(&self.families).contains_key(&Self::base(name.as_str())) {
            talea::notice(format_args!(
                "the {} {:?} was used before it was described; its description is not shown. \
                 Describe it first",
                H::NAME,
                name.as_str()
            ));
        }
    }

    /// The handle of a key, made if it is new.
    pub(crate) fn handle(&self, key: &Key, settings: &Settings) -> H {
        if let Some(handle) = self.handles.get(key) {
            return handle;
        }
        let named = self.family(key.name(), settings);
        let labels = labels::text(key, &settings.labels, &named.spellings);
        let handle = Arc::clone(&named.family).handle(labels);
        self.handles.put(key, handle.clone());
        handle
    }

    /// A name as it is shown, without what the type adds.
    fn base(name: &str) -> String {
        let shown = names::metric(name);
        shown.strip_suffix(H::ENDING).unwrap_or(&shown).to_owned()
    }

    fn family(&self, name: &str, settings: &Settings) -> Arc<NamedFamily<H>> {
        let base = Self::base(name);
        let known = read(&self.families).get(&base).cloned();
        let named = known.unwrap_or_else(|| self.new_family(name, &base, settings));
        let first = if named.is_refused { None } else { self.spellings.note(&base, name) };
        if let Some(first) = first {
            talea::notice(format_args!(
                "the {0}s {first:?} and {name:?} are shown under one name, {base:?}: they are one metric. \
                 Rename one of them",
                H::NAME
            ));
        }
        named
    }

    fn new_family(&self, name: &str, base: &str, settings: &Settings) -> Arc<NamedFamily<H>> {
        let mut families = write(&self.families);
        if let Some(named) = families.get(base) {
            return Arc::clone(named);
        }
        if families.len() >= NAMES {
            if !self.is_full.swap(true, Relaxed) {
                talea::notice(format_args!(
                    "there are {NAMES} names of {}s already; {name:?} and what comes after is not \
                     recorded. Make what varies a label",
                    H::NAME
                ));
            }
            return Arc::new(NamedFamily::refused(name, settings));
        }
        let named = match self.open(name, base, settings) {
            Ok(family) => {
                NamedFamily { family, is_refused: false, spellings: Spellings::default() }
            }
            Err(error) => {
                talea::notice(format_args!("the {} {name:?} is not recorded: {error}", H::NAME));
                NamedFamily::refused(name, settings)
            }
        };
        let named = Arc::new(named);
        families.insert(base.to_owned(), Arc::clone(&named));
        named
    }

    /// Registers a family: as it was described, else as if it was not, since another
    /// recorder may have done so, else under a name that says its type.
    fn open(
        &self,
        name: &str,
        base: &str,
        settings: &Settings,
    ) -> Result<Arc<dyn Make<H>>, talea::Error> {
        let described = read(&self.descriptions).get(name).cloned();
        let unit = described.as_ref().and_then(|described| described.unit);
        let bare = format!("The {} {name:?}, which was not described.", H::NAME);
        let help = match &described {
            Some(Description { help, .. }) if !help.trim().is_empty() => Cow::Borrowed(&**help),
            _ => Cow::Borrowed(&*bare),
        };
        let register = |shown: &str, help: &str| {
            H::open(FamilyRequest { settings, name, base, unit, opts: settings.opts(shown, help) })
        };
        register(base, &help).or_else(|error| {
            let typed = format!("{base}_{}", H::NAME);
            if let Ok(family) = register(base, &bare) {
                talea::notice(format_args!("{error}; it is shown with the help that it has"));
                Ok(family)
            } else if let Ok(family) = register(&typed, &help) {
                talea::notice(format_args!(
                    "{error}; until then, it is shown as {typed:?}, with the ending of its type"
                ));
                Ok(family)
            } else {
                Err(error)
            }
        })
    }
}

impl<H: Type> NamedFamily<H>
where
    Refused: Make<H>,
{
    fn refused(name: &str, settings: &Settings) -> Self {
        let (losses, name) = (settings.losses.clone(), name.to_owned());
        let family = Arc::new(Refused { losses, name, kind: H::NAME });
        Self { family, is_refused: true, spellings: Spellings::default() }
    }
}

fn read<T>(lock: &RwLock<T>) -> impl std::ops::Deref<Target = T> + '_ {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

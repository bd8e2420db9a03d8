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
use crate::types::Type;
use crate::{labels, names};

/// The most names of one type. The program uses the registry too, and generated names would fill
/// it.
const NAMES: usize = 1000;

pub(crate) struct FamilyTable<H> {
    handles: Cache<H>,
    /// By names as they are shown, without what the type adds.
    families: RwLock<HashMap<String, Arc<dyn Make<H>>>>,
    /// By names as the program calls them.
    descriptions: RwLock<HashMap<KeyName, Description>>,
    is_full: AtomicBool,
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
        if read(&self.families).contains_key(&names::metric(name.as_str())) {
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
        let labels = labels::text(key, &settings.labels);
        let handle = self.family(key.name(), settings).handle(labels);
        self.handles.put(key, handle.clone());
        handle
    }

    fn family(&self, name: &str, settings: &Settings) -> Arc<dyn Make<H>> {
        let base = names::metric(name);
        if let Some(family) = read(&self.families).get(&base) {
            return family.clone();
        }
        let mut families = write(&self.families);
        if let Some(family) = families.get(&base) {
            return family.clone();
        }
        let refused = || -> Arc<dyn Make<H>> {
            let (losses, name) = (settings.losses.clone(), name.to_owned());
            Arc::new(Refused { losses, name, kind: H::NAME })
        };
        if families.len() >= NAMES {
            if !self.is_full.swap(true, Relaxed) {
                talea::notice(format_args!(
                    "there are {NAMES} names of {}s already; {name:?} and what comes after is not \
                     recorded. Make what varies a label",
                    H::NAME
                ));
            }
            return refused();
        }
        let family = self.open(name, &base, settings).unwrap_or_else(|error| {
            talea::notice(format_args!("the {} {name:?} is not recorded: {error}", H::NAME));
            refused()
        });
        families.insert(base, family.clone());
        family
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

fn read<T>(lock: &RwLock<T>) -> impl std::ops::Deref<Target = T> + '_ {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

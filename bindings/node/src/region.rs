//! Open regions.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use napi::Task;
use napi::bindgen_prelude::{ArrayBuffer, AsyncTask, Buffer, Env, Error, Result};
use napi_derive::napi;
use talea::{Config, Escaping, Format, LentPlane, Registry};

use crate::page::{DefaultLabel, Wanted, restyled};

/// Planes for environments in a new region: in a page of 64 MiB they take a few hundred kilobytes each.
const ENVIRONMENTS: u64 = 32;

/// The size of the region of a registry of its own, in bytes.
const PRIVATE_LEN: u64 = 4 << 20;

pub(crate) fn failed(error: impl ToString) -> Error {
    Error::from_reason(error.to_string())
}

/// A registry that environments of this process share.
#[derive(Clone)]
struct Shared {
    registry: Registry,
    /// The process's user and system time that its metrics have counted.
    cpu: Arc<Mutex<[f64; 2]>>,
}

impl Shared {
    fn new(registry: Registry) -> Self {
        Self { registry, cpu: Arc::default() }
    }
}

/// An open region, in one environment.
#[napi]
pub struct Region {
    pub(crate) registry: Registry,
    cpu: Arc<Mutex<[f64; 2]>>,
    /// The plane that this environment borrowed.
    pub(crate) plane: Option<Arc<LentPlane>>,
}

impl Region {
    fn of(Shared { registry, cpu }: Shared) -> Self {
        let plane = registry.lend_plane().map(Arc::new);
        Self { registry, cpu, plane }
    }
}

#[napi]
impl Region {
    /// Opens the file of this path, one time in this process.
    #[napi(factory)]
    pub fn open(path: String) -> Result<Self> {
        static OPEN: Mutex<Option<HashMap<PathBuf, Shared>>> = Mutex::new(None);
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let open = open.get_or_insert_default();
        let path = PathBuf::from(path);
        if let Some(shared) = open.get(&path) {
            return Ok(Self::of(shared.clone()));
        }
        let config = Config::default().lending(ENVIRONMENTS);
        let shared = Shared::new(Registry::open_with(&path, config).map_err(failed)?);
        open.insert(path, shared.clone());
        Ok(Self::of(shared))
    }

    /// The region of this process: the file that `TALEA_REGION` names, or memory that its threads share.
    #[napi(factory)]
    pub fn of_process() -> Result<Self> {
        static OPEN: OnceLock<std::result::Result<Shared, String>> = OnceLock::new();
        let open = OPEN.get_or_init(|| {
            let opened = Registry::from_env_with(Config::default().lending(ENVIRONMENTS));
            opened.map(Shared::new).map_err(|error| error.to_string())
        });
        Ok(Self::of(open.clone().map_err(Error::from_reason)?))
    }

    /// Memory that the threads of this process share, where its region cannot be opened.
    #[napi(factory)]
    pub fn in_memory_of_process() -> Result<Self> {
        static MADE: OnceLock<std::result::Result<Shared, String>> = OnceLock::new();
        let made = MADE.get_or_init(|| {
            let made = Registry::with_config(Config::default().lending(ENVIRONMENTS));
            made.map(Shared::new).map_err(|error| error.to_string())
        });
        Ok(Self::of(made.clone().map_err(Error::from_reason)?))
    }

    /// Memory for a registry of its own.
    #[napi(factory)]
    pub fn in_memory() -> Result<Self> {
        // Less where a process may make no file that long.
        let len = Config::default().len.min(PRIVATE_LEN);
        let config = Config::with_len(len).lending(1);
        Ok(Self::of(Shared::new(Registry::with_config(config).map_err(failed)?)))
    }

    /// How much more of the process's user and system time there is than its threads have counted here; that
    /// is counted then.
    #[napi]
    pub fn count_cpu(&self, user: f64, system: f64) -> Vec<f64> {
        let mut counted = self.cpu.lock().unwrap_or_else(PoisonError::into_inner);
        let now = [user, system];
        let more = [0, 1].map(|n| (now[n] - counted[n]).max(0.0));
        *counted = [0, 1].map(|n| now[n].max(counted[n]));
        more.into()
    }

    /// Whether no environment of this process has warned of this yet.
    #[napi]
    pub fn is_first_to_warn(of: String) -> bool {
        static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
        WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(of)
    }

    /// The words that this environment alone adds to, or null: then it calls.
    #[napi]
    pub fn words<'env>(&self, env: &'env Env) -> Result<Option<ArrayBuffer<'env>>> {
        self.plane.as_ref().map_or(Ok(None), |plane| crate::plane::buffer(env, plane))
    }

    /// A page of these metrics, made on a thread of libuv's pool.
    #[napi]
    pub fn render(
        &self,
        wanted: Vec<Wanted>,
        is_open_metrics: bool,
        labels: Vec<DefaultLabel>,
    ) -> AsyncTask<Rendering> {
        AsyncTask::new(self.rendering(wanted, is_open_metrics, labels))
    }

    /// As `render`, on this thread.
    #[napi]
    pub fn render_now(
        &self,
        wanted: Vec<Wanted>,
        is_open_metrics: bool,
        labels: Vec<DefaultLabel>,
    ) -> Buffer {
        self.rendering(wanted, is_open_metrics, labels).page().into()
    }

    /// A page of the whole region, in the format that an `Accept` header asks for, with its content type.
    #[napi]
    pub fn render_all(&self, accept: String) -> AsyncTask<WholePage> {
        let (format, escaping) = Format::negotiate(&accept);
        AsyncTask::new(WholePage { registry: self.registry.clone(), format, escaping })
    }

    /// The content type of that page.
    #[napi]
    pub fn content_type(accept: String) -> String {
        let (format, escaping) = Format::negotiate(&accept);
        format.content_type(escaping)
    }

    /// Ends a family, in all processes.
    #[napi]
    pub fn unregister(&self, name: String) {
        self.registry.unregister(&name);
    }

    fn rendering(
        &self,
        wanted: Vec<Wanted>,
        is_open_metrics: bool,
        labels: Vec<DefaultLabel>,
    ) -> Rendering {
        Rendering { registry: self.registry.clone(), wanted, is_open_metrics, labels }
    }
}

/// A page that is to be made.
pub struct Rendering {
    registry: Registry,
    wanted: Vec<Wanted>,
    is_open_metrics: bool,
    labels: Vec<DefaultLabel>,
}

impl Rendering {
    fn page(&self) -> Vec<u8> {
        let mut scraper = self.registry.scraper();
        let format = if self.is_open_metrics { Format::OpenMetrics } else { Format::Text };
        scraper.format(format, Escaping::Underscores);
        scraper.hide_created();
        let names: HashSet<&str> = self.wanted.iter().map(|wanted| &*wanted.shown).collect();
        scraper.begin(|name| names.contains(name));
        let mut page = Vec::new();
        while scraper.write_some(&mut page, usize::MAX) {}
        restyled(&page, &self.wanted, &self.labels, self.is_open_metrics)
    }
}

impl Task for Rendering {
    type Output = Vec<u8>;
    type JsValue = Buffer;

    fn compute(&mut self) -> Result<Vec<u8>> {
        Ok(self.page())
    }

    fn resolve(&mut self, _: Env, page: Vec<u8>) -> Result<Buffer> {
        Ok(page.into())
    }
}

/// A page of a whole region that is to be made.
pub struct WholePage {
    registry: Registry,
    format: Format,
    escaping: Escaping,
}

impl Task for WholePage {
    type Output = Vec<u8>;
    type JsValue = Buffer;

    fn compute(&mut self) -> Result<Vec<u8>> {
        let mut scraper = self.registry.scraper();
        scraper.format(self.format, self.escaping);
        Ok(scraper.scrape().to_vec())
    }

    fn resolve(&mut self, _: Env, page: Vec<u8>) -> Result<Buffer> {
        Ok(page.into())
    }
}

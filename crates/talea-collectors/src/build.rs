//! Build information of a program: `{program}_build_info`, which is always 1, with these labels.
//!
//! | label | value |
//! |---|---|
//! | `version` | the program's version |
//! | `revision` | the commit, if the build was given it; else empty |
//! | `rustc` | the compiler's version |
//! | `target` | the target triple, such as `x86_64-unknown-linux-gnu` |
//!
//! [`build_info!`](crate::build_info) takes all of it from the crate that calls it.
//!
//! ```
//! use talea_collectors::{build, build_info};
//!
//! let registry = talea::Registry::for_test()?;
//! build::register(&registry, build_info!())?;
//! let text = registry.snapshot().to_text();
//! // In a crate `shop`: shop_build_info{version="1.4.0",revision="f3a91c",…} 1
//! assert!(text.contains("talea_collectors_build_info{version=\"0.1.0\",revision=\""), "{text}");
//! # Ok::<(), talea::Error>(())
//! ```
//!
//! If processes share a registry, the latest registration of each program is shown. A snapshot
//! costs nothing more.

use talea::{Error, Info, Labels, Opts, Registry};

/// The build information of a program.
///
/// ```
/// use talea_collectors::build::{self, Build};
///
/// let registry = talea::Registry::for_test()?;
/// build::register(&registry, Build::new("items-api", "1.4.0").revision("f3a91c"))?;
/// let series = registry.snapshot();
/// let series = series.select("items_api_build_info", &[("revision", "f3a91c")]);
/// assert_eq!(series.count(), 1);
/// # Ok::<(), talea::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    program: &'a str,
    version: &'a str,
    revision: &'a str,
}

/// The labels, in the order that they are shown in.
#[derive(Labels)]
struct Said<'a> {
    version: &'a str,
    revision: &'a str,
    rustc: &'a str,
    target: &'a str,
}

impl<'a> Build<'a> {
    /// A program, whose name begins the metric's (`-` becomes `_`), and its version. It has
    /// no revision.
    pub const fn new(program: &'a str, version: &'a str) -> Self {
        Self { program, version, revision: "" }
    }

    /// The commit that it was built from, if it does not come from
    /// [`build_info!`](crate::build_info).
    pub const fn revision(mut self, revision: &'a str) -> Self {
        self.revision = revision;
        self
    }
}

/// Registers what a program was built from, and shows it.
///
/// # Errors
///
/// The program's name cannot begin a metric's, or the metric cannot be registered: see
/// [`Registry::register`].
pub fn register(registry: &Registry, build: Build<'_>) -> Result<(), Error> {
    let name = format!("{}_build_info", build.program.replace('-', "_"));
    let opts = Opts::new(&name, "The source and the compiler of the program.");
    let info: Info<Said<'static>> = registry.register(opts)?;
    info.set(Said {
        version: build.version,
        revision: build.revision,
        rustc: env!("TALEA_RUSTC"),
        target: env!("TALEA_TARGET"),
    });
    Ok(())
}

/// The [`Build`](crate::build::Build) of the crate that calls it: name and version come from its
/// `Cargo.toml`, and the revision is the value of the variable `GIT_REVISION` while it was
/// compiled, as in `GIT_REVISION=$(git rev-parse HEAD) cargo build --release`. If it was not set,
/// the revision is empty.
#[macro_export]
macro_rules! build_info {
    () => {
        $crate::build::Build::new(::core::env!("CARGO_PKG_NAME"), ::core::env!("CARGO_PKG_VERSION"))
            .revision(match ::core::option_env!("GIT_REVISION") {
                ::core::option::Option::Some(revision) => revision,
                ::core::option::Option::None => "",
            })
    };
}

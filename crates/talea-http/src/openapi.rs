//! Endpoints from an OpenAPI document.

use std::collections::BTreeMap;
use std::fmt;

use http::Request;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny};

use crate::endpoints::Endpoints;
use crate::request::meters::Endpoint;

/// The operations of an OpenAPI document, version 3.0 or 3.1: their methods and the templates of their paths.
///
/// It is read by serde, from JSON or YAML:
///
/// ```
/// use http::{Request, Response};
/// use talea_http::{Endpoints, OpenApi, RequestBody};
/// use tower::{ServiceBuilder, service_fn};
///
/// # type Body = http_body_util::Empty<&'static [u8]>;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = r#"{"openapi": "3.1.0", "paths": {"/items/{id}": {"get": {}, "delete": {}}}}"#;
/// let document: OpenApi = serde_json::from_str(text)?; // or serde_saphyr::from_str(yaml)?
///
/// let registry = talea::Registry::for_test()?;
/// let endpoints = Endpoints::new(&registry)?;
/// let metered = endpoints.layer(document.finder::<Body>(&endpoints)?);
/// let service = ServiceBuilder::new().layer(metered).service(service_fn(
///     async |_: Request<RequestBody<Body>>| Ok::<_, std::io::Error>(Response::new("an item".to_owned())),
/// ));
/// # Ok(())
/// # }
/// ```
///
/// All series exist from the start; a request that matches no template is `_unmatched`. For the doors that
/// take a list of routes, such as [`axum::Layer::routes`](crate::axum::Layer::routes), there is
/// [`routes`](Self::routes). A router that utoipa-axum or aide makes is an `axum::Router`, which
/// [`axum::meter`](crate::axum::meter) reads by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenApi {
    /// Methods and templates.
    operations: Vec<(&'static str, String)>,
}

/// A document whose operations cannot be found by paths.
#[derive(Clone, Debug)]
pub struct OpenApiError(String);

impl fmt::Display for OpenApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the OpenAPI document cannot be used: {}", self.0)
    }
}

impl std::error::Error for OpenApiError {}

impl OpenApi {
    /// Puts a prefix in front of each path: `/api/v1`, if the document's `servers` have that path and the
    /// requests that arrive too. Default: no prefix, whatever `servers` are.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        let prefix = prefix.trim_end_matches('/');
        for (_, template) in &mut self.operations {
            template.insert_str(0, prefix);
        }
        self
    }

    /// The operations as methods and templates: `("GET", "/items/{id}")`.
    pub fn routes(&self) -> Vec<(&str, &str)> {
        self.operations.iter().map(|(method, template)| (*method, template.as_str())).collect()
    }

    /// Declares all operations, and returns the function for [`Endpoints::layer`] that finds a request's
    /// endpoint by its path.
    ///
    /// # Errors
    ///
    /// Two templates match the same paths, or one has a placeholder that is not a whole segment.
    pub fn finder<B>(
        &self,
        endpoints: &Endpoints,
    ) -> Result<impl Fn(&Request<B>) -> Endpoint + Copy + use<B>, OpenApiError> {
        endpoints.finder(&self.routes()).map_err(|error| OpenApiError(error.0))
    }
}

impl<'de> Deserialize<'de> for OpenApi {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Document::deserialize(deserializer)?.operations().map_err(D::Error::custom)
    }
}

/// The part of a document that names operations.
#[derive(Deserialize)]
struct Document {
    openapi: Option<String>,
    swagger: Option<String>,
    #[serde(default)]
    paths: BTreeMap<String, PathOrExtension>,
    #[serde(default)]
    components: Components,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Components {
    #[serde(default)]
    path_items: BTreeMap<String, PathItem>,
}

/// Beside paths, extensions may stand, of any type.
#[derive(Deserialize)]
#[serde(untagged)]
enum PathOrExtension {
    Path(PathItem),
    Extension(IgnoredAny),
}

#[derive(Deserialize)]
struct PathItem {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    get: Option<IgnoredAny>,
    put: Option<IgnoredAny>,
    post: Option<IgnoredAny>,
    delete: Option<IgnoredAny>,
    options: Option<IgnoredAny>,
    head: Option<IgnoredAny>,
    patch: Option<IgnoredAny>,
    trace: Option<IgnoredAny>,
}

impl Document {
    fn operations(self) -> Result<OpenApi, String> {
        if let Some(version) = self.swagger {
            return Err(format!(
                "the document is of Swagger {version}; expected OpenAPI 3.0 or 3.1: convert it first"
            ));
        }
        match self.openapi {
            Some(version) if version.starts_with("3.") => {}
            Some(version) => {
                return Err(format!("the document is of OpenAPI {version}; expected 3.0 or 3.1"));
            }
            None => {
                return Err(
                    "the document has no field \"openapi\"; expected an OpenAPI document of \
                            version 3.0 or 3.1"
                        .to_owned(),
                );
            }
        }
        let mut operations = Vec::new();
        for (path, item) in &self.paths {
            let PathOrExtension::Path(item) = item else { continue };
            if !path.starts_with('/') {
                continue;
            }
            let item = match &item.reference {
                Some(reference) => self.components.find(path, reference)?,
                None => item,
            };
            operations.extend(item.methods().map(|method| (method, path.clone())));
        }
        Ok(OpenApi { operations })
    }
}

impl Components {
    fn find(&self, path: &str, reference: &str) -> Result<&PathItem, String> {
        let name = reference.strip_prefix("#/components/pathItems/");
        name.and_then(|name| self.path_items.get(name)).ok_or_else(|| {
            format!(
                "the path {path:?} refers to {reference:?}, which is not in the document; expected \
                 \"#/components/pathItems/NAME\": bundle the document into one file"
            )
        })
    }
}

impl PathItem {
    fn methods(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("GET", &self.get),
            ("PUT", &self.put),
            ("POST", &self.post),
            ("DELETE", &self.delete),
            ("OPTIONS", &self.options),
            ("HEAD", &self.head),
            ("PATCH", &self.patch),
            ("TRACE", &self.trace),
        ];
        all.into_iter().filter(|(_, operation)| operation.is_some()).map(|(method, _)| method)
    }
}

//! The servers that are called, with the templates of their paths.

use http::uri::Authority;
use talea::Error;

use crate::convention::client::NAME;
use crate::endpoints::Endpoints;
use crate::labels::endpoint::{Methods, UNMATCHED};
use crate::request::meters::Endpoint;

pub(super) const OTHER_SERVER: &str = "_other";

/// The servers that are called, with the templates of the paths there.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Servers {
    list: Vec<(String, Vec<String>)>,
}

impl Servers {
    /// No servers: each is `_other`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server by its name or address, such as `stock.example`, or `stock.example:8443` for that port
    /// alone, and templates of paths there, such as `/items/{id}`. Paths that match none of them are
    /// `_unmatched`; without templates, the route is empty.
    pub fn server(mut self, server: &str, templates: &[&str]) -> Self {
        let templates = templates.iter().map(|&template| template.to_owned()).collect();
        self.list.push((server.to_ascii_lowercase(), templates));
        self
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|(server, _)| server.as_str())
    }
}

/// The endpoints of the servers. They live as long as the program.
#[derive(Debug)]
pub(super) struct KnownServers {
    list: Vec<KnownServer>,
    other: Endpoint,
}

#[derive(Debug)]
struct KnownServer {
    address: Address,
    templates: matchit::Router<Endpoint>,
    unmatched: Endpoint,
}

impl KnownServers {
    pub(super) fn new(servers: &Servers, endpoints: &Endpoints) -> Result<Self, Error> {
        let list = servers.list.iter().map(|(server, templates)| {
            let known = KnownServer::new(server, templates, endpoints);
            known.map_err(|reason| Error::Register { name: NAME.to_owned(), reason })
        });
        Ok(Self {
            list: list.collect::<Result<_, _>>()?,
            other: endpoints.endpoint(Methods::Each, "", OTHER_SERVER),
        })
    }

    pub(super) fn find(&self, host: &str, port: Option<u16>, path: &str) -> Endpoint {
        let found = self.list.iter().find(|known| known.address.is(host, port));
        let Some(known) = found else { return self.other };
        known.templates.at(path).map_or(known.unmatched, |matched| *matched.value)
    }
}

impl KnownServer {
    fn new(server: &str, templates: &[String], endpoints: &Endpoints) -> Result<Self, String> {
        let address = Address::parse(server)?;
        let declare = |route: &str| endpoints.endpoint(Methods::Each, route, server);
        let mut known = matchit::Router::new();
        for template in templates {
            known.insert(template.as_str(), declare(template)).map_err(|error| {
                format!("{template:?}, a template of {server}, cannot be used: {error}")
            })?;
        }
        Ok(Self {
            address,
            templates: known,
            unmatched: declare(if templates.is_empty() { "" } else { UNMATCHED }),
        })
    }
}

/// The address of a server as it is listed.
#[derive(Debug)]
pub(super) struct Address {
    host: String,
    /// `None` for any port.
    port: Option<u16>,
}

impl Address {
    pub(super) fn parse(server: &str) -> Result<Self, String> {
        let authority = server.parse::<Authority>().ok();
        let authority = authority.filter(|authority| !authority.as_str().contains('@'));
        let authority = authority.ok_or_else(|| {
            format!(
                "{server:?} is not a valid server; expected a name or an address, with a port or \
                 without, such as \"stock.example:8443\" or \"[::1]\""
            )
        })?;
        Ok(Self { host: authority.host().to_owned(), port: authority.port_u16() })
    }

    pub(super) fn is(&self, host: &str, port: Option<u16>) -> bool {
        (self.port.is_none() || self.port == port) && self.host.eq_ignore_ascii_case(host)
    }
}

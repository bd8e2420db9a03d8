//! From an endpoint, a request, its response and its outcome to the texts of labels.

use std::borrow::Cow;

use http::Extensions;
use talea::Error;

use super::attributes::RequestAttributes;
use crate::convention::metric_set::{LabelSource, MethodNames, MetricSet, RouteNames};
use crate::convention::opentelemetry::{client_error_type, error_type};
use crate::labels::endpoint::EndpointLabels;
use crate::labels::extension::{ExtensionLabel, combinations, nth_value};
use crate::labels::outcome::Outcome;
use crate::labels::status::{OTHER, StatusLabel, Statuses};
use crate::opts::Opts;

#[derive(Clone, Copy, Debug)]
pub(super) struct LabelContext<'a> {
    pub(super) endpoint: &'a EndpointLabels,
    pub(super) attributes: &'a RequestAttributes,
    /// The index of the status's value.
    pub(super) status: usize,
    /// The combination of the response's labels.
    pub(super) response: usize,
    pub(super) outcome: Outcome,
}

impl<'a> LabelContext<'a> {
    /// The context of labels that do not depend on the response.
    pub(super) fn at_arrival(
        endpoint: &'a EndpointLabels,
        attributes: &'a RequestAttributes,
    ) -> Self {
        Self { endpoint, attributes, status: 0, response: 0, outcome: Outcome::Complete }
    }
}

#[derive(Debug)]
pub(crate) struct LabelTexts {
    pub(super) statuses: Statuses,
    pub(super) method_names: MethodNames,
    route_names: RouteNames,
    opts: Opts,
}

impl LabelTexts {
    pub(super) fn new(opts: &Opts, set: &MetricSet) -> Result<Self, Error> {
        for label in opts.request_labels.iter().chain(&opts.response_labels) {
            if let Some(fault) = label.fault() {
                let reason = format!("its label {:?} cannot be used: {fault}", label.name);
                return Err(Error::Register { name: set.in_flight.name.to_owned(), reason });
            }
        }
        Ok(Self {
            statuses: match (set.statuses, opts.status) {
                (Statuses::Classes, StatusLabel::Code) => {
                    Statuses::Codes { odd: OTHER, none: OTHER }
                }
                (statuses, _) => statuses,
            },
            method_names: set.method_names,
            route_names: set.route_names,
            opts: opts.clone(),
        })
    }

    pub(super) fn text<'a>(&'a self, label: LabelSource, from: &LabelContext<'a>) -> Cow<'a, str> {
        let (LabelContext { endpoint, attributes, .. }, opts) = (*from, &self.opts);
        match label {
            LabelSource::Route => self.route_names.name(endpoint),
            LabelSource::Handler => endpoint.handler.into(),
            LabelSource::Server => opts.server.as_deref().unwrap_or("srv0").into(),
            LabelSource::ServerAddress => server_parts(endpoint.handler).0.into(),
            LabelSource::ServerPort => server_parts(endpoint.handler).1.into(),
            LabelSource::RpcSystem => "grpc".into(),
            LabelSource::RpcName => endpoint.route.into(),
            LabelSource::RpcService => rpc_parts(endpoint.route).0.into(),
            LabelSource::RpcMethod => rpc_parts(endpoint.route).1.into(),
            LabelSource::RpcType => endpoint.handler.into(),
            LabelSource::Constant(n) => opts.constants[n].1.as_str().into(),
            LabelSource::Method => match opts.methods.get(attributes.named_method) {
                Some(named) => named.into(),
                None => self.method_names.name(endpoint.methods, attributes.method).into(),
            },
            LabelSource::Scheme => attributes.scheme.into(),
            LabelSource::Version => attributes.version.into(),
            LabelSource::Host => {
                opts.hosts.get(attributes.host).map_or("_other", |host| host).into()
            }
            LabelSource::Request(n) => opts.request_labels[n].text(attributes.labels[n]).into(),
            LabelSource::Status => self.statuses.text(from.status),
            LabelSource::ErrorKind => self.statuses.error(from.status).into(),
            LabelSource::RpcError => match self.statuses {
                Statuses::Rpc(codes) => codes.error(from.status).into(),
                _ => "".into(),
            },
            LabelSource::Response(n) => {
                let value = nth_value(&opts.response_labels, n, from.response);
                opts.response_labels[n].text(value).into()
            }
            LabelSource::ErrorType => error_type(from.outcome, self.statuses.text(from.status)),
            LabelSource::ClientErrorType => client_error_type(
                from.outcome,
                self.statuses.error(from.status),
                self.statuses.text(from.status),
            ),
            LabelSource::Outcome => from.outcome.as_str().into(),
        }
    }

    pub(super) fn response_combinations(&self) -> usize {
        combinations(&self.opts.response_labels)
    }

    #[inline]
    pub(super) fn response_combination(&self, extensions: &Extensions) -> usize {
        self.opts
            .response_labels
            .iter()
            .fold(0, |all, label: &ExtensionLabel| all * label.count() + label.value(extensions))
    }
}

/// The service and the method of a gRPC method's name; `_OTHER` is both.
fn rpc_parts(name: &str) -> (&str, &str) {
    name.rsplit_once('/').unwrap_or((name, name))
}

/// The name and the port of a listed server, which may have none.
fn server_parts(server: &str) -> (&str, &str) {
    match server.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (server, ""),
    }
}

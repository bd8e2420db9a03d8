//! A method of a gRPC service: its messages from JSON, and its replies as JSON.

use std::fmt;

use hyper::body::Bytes;
use prost_reflect::prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    SerializeOptions,
};
use serde_json::{Map, Value as Json};

use super::template::{Form, NoRequest, Template};
use super::value::Values;
use crate::session::Answer;

/// A unary method.
#[derive(Clone, Debug)]
pub struct GrpcMethod(MethodDescriptor);

/// A message that is sent.
#[derive(Clone, Debug)]
pub(crate) struct GrpcMessage {
    /// It as JSON.
    json: Template,
    kind: MessageDescriptor,
    /// The body of a request with it, if it has no variables.
    constant: Option<Bytes>,
}

/// Why an answer is no reply of a gRPC method that was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoReply {
    /// It has another status than OK.
    Status(u32),
    /// It has no status.
    NoStatus,
    /// Its body is no message of the method.
    Malformed,
}

/// The names of the statuses, by their numbers (gRPC's statuscodes.md).
const STATUSES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The number and the name of a status.
pub(crate) fn grpc_status_text(status: u32) -> String {
    let name = STATUSES.get(status as usize).copied().unwrap_or_default();
    format!("{status} {name}").trim_end().to_owned()
}

impl fmt::Display for NoReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => {
                write!(f, "grpc-status {}, expected 0 OK", grpc_status_text(*status))
            }
            Self::NoStatus => f.write_str("the response has no grpc-status"),
            Self::Malformed => f.write_str("the response is no message of the method's type"),
        }
    }
}

/// Reads a descriptor set.
pub(super) fn pool(descriptors: &[u8]) -> Result<DescriptorPool, String> {
    DescriptorPool::decode(descriptors).map_err(|error| {
        format!(
            "found no descriptor set ({error}), expected a file as it is written by \
             protoc --include_imports --descriptor_set_out=FILE"
        )
    })
}

impl GrpcMethod {
    /// The unary method of this name, such as `shop.Shop/Get`.
    pub(super) fn find(pool: &DescriptorPool, name: &str) -> Result<Self, String> {
        let services = || pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
        if let Some(method) = services().find(|method| full_name(method) == name) {
            return match method.is_client_streaming() || method.is_server_streaming() {
                true => Err(format!("found {name}, which streams, expected a unary method")),
                false => Ok(Self(method)),
            };
        }
        let known = listed(services().map(|method| full_name(&method)));
        Err(format!("found the method {name:?}, expected one of the descriptor set's: {known}"))
    }

    /// The path of its requests.
    pub(super) fn path(&self) -> String {
        format!("/{}", full_name(&self.0))
    }

    /// A message for it.
    /// Fails when the JSON has a field that the message has not, or a value of another type.
    pub(super) fn message(
        &self,
        json: &Json,
        place: &mut impl FnMut(&str) -> Result<usize, String>,
    ) -> Result<GrpcMessage, String> {
        let kind = self.0.input();
        let mut text = Template::default();
        let known = push_message(json, &kind, &mut text, place)?;
        let tried = message_of(&kind, known)?;
        let constant = text.constant().map(|_| framed(&tried));
        Ok(GrpcMessage { json: text, kind, constant })
    }

    /// The message in an answer, if its status is OK.
    pub(crate) fn reply(&self, answer: &Answer) -> Result<DynamicMessage, NoReply> {
        match grpc_status(answer) {
            None => return Err(NoReply::NoStatus),
            Some(0) => {}
            Some(status) => return Err(NoReply::Status(status)),
        }
        let message = unframed(&answer.body).ok_or(NoReply::Malformed)?;
        DynamicMessage::decode(self.0.output(), message).map_err(|_| NoReply::Malformed)
    }

    /// The message in the body of a request, as JSON.
    pub(crate) fn sent(&self, body: &[u8]) -> Option<Bytes> {
        json_of(&DynamicMessage::decode(self.0.input(), unframed(body)?).ok()?)
    }
}

impl GrpcMessage {
    /// The body of a request, if it has no variables.
    pub(super) fn constant(&self) -> Option<&Bytes> {
        self.constant.as_ref()
    }

    /// The body of a request, with the values filled in.
    pub(super) fn filled(&self, values: &Values) -> Result<Bytes, NoRequest> {
        let mut text = String::new();
        self.json.fill(values, &mut text)?;
        let json = serde_json::from_str(&text).map_err(|_| NoRequest::Malformed)?;
        let message = message_of(&self.kind, json).map_err(|_| NoRequest::Malformed)?;
        Ok(framed(&message))
    }
}

/// The status of a call: in the trailers, or in the headers of a response that has no message.
pub(crate) fn grpc_status(answer: &Answer) -> Option<u32> {
    in_either(answer, "grpc-status")?.parse().ok()
}

/// A header of the trailers, or else of the head.
pub(crate) fn in_either<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    answer.trailers.get(name).or_else(|| answer.headers.get(name))?.to_str().ok()
}

/// A message as JSON, with the fields that have their default value too, and whole numbers as numbers.
pub(crate) fn json_of(message: &DynamicMessage) -> Option<Bytes> {
    let options =
        SerializeOptions::new().skip_default_fields(false).stringify_64_bit_integers(false);
    let mut json = Vec::new();
    let mut serializer = serde_json::Serializer::new(&mut json);
    message.serialize_with_options(&mut serializer, &options).ok()?;
    Some(json.into())
}

fn full_name(method: &MethodDescriptor) -> String {
    format!("{}/{}", method.parent_service().full_name(), method.name())
}

fn listed(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// A message that is not compressed, with its length before it.
fn framed(message: &DynamicMessage) -> Bytes {
    let bytes = message.encode_to_vec();
    [&[0], &(bytes.len() as u32).to_be_bytes()[..], &bytes].concat().into()
}

/// The one message of a body, if it is not compressed.
fn unframed(body: &[u8]) -> Option<&[u8]> {
    let ([compressed, length @ ..], message) = body.split_first_chunk::<5>()?;
    let is_whole = message.len() == u32::from_be_bytes(*length) as usize;
    (*compressed == 0 && is_whole).then_some(message)
}

fn message_of(kind: &MessageDescriptor, json: Json) -> Result<DynamicMessage, String> {
    DynamicMessage::deserialize(kind.clone(), json).map_err(|error| error.to_string())
}

/// Whether its JSON is not an object of its fields, as that of a timestamp, which is a text.
fn has_json_of_its_own(kind: &MessageDescriptor) -> bool {
    kind.full_name().starts_with("google.protobuf.")
}

/// Writes the JSON of a message, whose texts may have variables. Gives back what has none.
fn push_message(
    json: &Json,
    kind: &MessageDescriptor,
    into: &mut Template,
    place: &mut impl FnMut(&str) -> Result<usize, String>,
) -> Result<Json, String> {
    let name = kind.full_name();
    let Json::Object(fields) = json else {
        return Err(format!("found {json}, expected the fields of {name}: {}", fields_of(kind)));
    };
    let mut known = Map::new();
    into.push_text("{");
    for (n, (key, value)) in fields.iter().enumerate() {
        let field = kind.get_field_by_name(key).or_else(|| kind.get_field_by_json_name(key));
        let field = field.ok_or_else(|| {
            format!(
                "found the field {key:?}, expected one of {name}, which has: {}",
                fields_of(kind)
            )
        })?;
        into.push_json_key(n, key);
        let Some(value) = push_field(value, &field, into, place)? else { continue };
        // By itself, so that the error has its name.
        let alone = Map::from_iter([(key.clone(), value.clone())]);
        message_of(kind, Json::Object(alone))
            .map_err(|error| format!("the field {key} of {name}: {error}"))?;
        known.insert(key.clone(), value);
    }
    into.push_text("}");
    Ok(Json::Object(known))
}

fn fields_of(kind: &MessageDescriptor) -> String {
    listed(kind.fields().map(|field| field.name().to_owned()))
}

/// Writes the value of a field, and gives back what has no variables.
fn push_field(
    json: &Json,
    field: &FieldDescriptor,
    into: &mut Template,
    place: &mut impl FnMut(&str) -> Result<usize, String>,
) -> Result<Option<Json>, String> {
    match (json, field.kind()) {
        (Json::Object(entries), Kind::Message(entry)) if field.is_map() => {
            let kind = entry.map_entry_value_field().kind();
            let mut known = Map::new();
            into.push_text("{");
            for (n, (key, value)) in entries.iter().enumerate() {
                into.push_json_key(n, key);
                let value = push_value(value, &kind, into, place)?;
                known.extend(value.map(|value| (key.clone(), value)));
            }
            into.push_text("}");
            Ok(Some(Json::Object(known)))
        }
        (Json::Array(items), kind) if field.is_list() => {
            let mut known = Vec::new();
            into.push_text("[");
            for (n, item) in items.iter().enumerate() {
                into.push_text(if n == 0 { "" } else { "," });
                known.extend(push_value(item, &kind, into, place)?);
            }
            into.push_text("]");
            Ok(Some(Json::Array(known)))
        }
        (_, kind) => push_value(json, &kind, into, place),
    }
}

fn push_value(
    json: &Json,
    kind: &Kind,
    into: &mut Template,
    place: &mut impl FnMut(&str) -> Result<usize, String>,
) -> Result<Option<Json>, String> {
    match kind {
        Kind::Message(kind) if json.is_object() && !has_json_of_its_own(kind) => {
            return push_message(json, kind, into, place).map(Some);
        }
        _ => {}
    }
    let mut text = Template::default();
    match (json, kind) {
        (Json::String(of_text), Kind::String | Kind::Bytes) => {
            text.push_json_text(of_text, place)?;
        }
        _ => text.push_json(json, place)?,
    }
    if let (None, Json::String(of_text), Kind::Bool) = (text.constant(), json, kind) {
        // A column of a feed is a text, and JSON has true and false without quotes.
        text = Template::default();
        text.push(of_text, Form::Plain, place)?;
    }
    let known = text.constant().map(serde_json::from_str).transpose();
    let known = known.map_err(|error| error.to_string())?;
    into.append(text);
    Ok(known)
}

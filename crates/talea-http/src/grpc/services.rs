//! The methods of gRPC services that are known before the first call.

use std::error::Error;
use std::fmt;

use prost::Message;

/// Whether the messages of a method are streamed: the label `grpc_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodType {
    /// A message each way: `unary`.
    Unary,
    /// The client streams: `client_stream`.
    ClientStream,
    /// The server streams: `server_stream`.
    ServerStream,
    /// Both stream: `bidi_stream`.
    BidiStream,
}

impl MethodType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ClientStream => "client_stream",
            Self::ServerStream => "server_stream",
            Self::BidiStream => "bidi_stream",
        }
    }
}

/// The known methods of gRPC services. A call of any other method is recorded as `_OTHER`.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Services {
    pub(super) methods: Vec<KnownMethod>,
    pub(super) left_out: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct KnownMethod {
    pub(super) service: String,
    pub(super) method: String,
    pub(super) kind: MethodType,
}

/// Bytes that are not a set of protobuf's file descriptors.
#[derive(Clone, Debug)]
pub struct DescriptorError(prost::DecodeError);

impl fmt::Display for DescriptorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the bytes are not a FileDescriptorSet: {}; expected the file that protoc writes with \
             --descriptor_set_out, or tonic-build with file_descriptor_set_path",
            self.0
        )
    }
}

impl Error for DescriptorError {}

impl Services {
    /// No methods.
    pub fn new() -> Self {
        Self::default()
    }

    /// All methods of all services in a set of protobuf's file descriptors: the file that `tonic-build`
    /// writes with `file_descriptor_set_path`, and that tonic's reflection service takes.
    ///
    /// # Errors
    ///
    /// The bytes are not such a set.
    pub fn from_descriptors(set: &[u8]) -> Result<Self, DescriptorError> {
        let set = FileDescriptorSet::decode(set).map_err(DescriptorError)?;
        let mut services = Self::new();
        for file in set.file {
            for service in file.service {
                let name = match file.package.as_str() {
                    "" => service.name,
                    package => format!("{package}.{}", service.name),
                };
                for method in &service.method {
                    services = services.methods(&name, method.kind(), &[&method.name]);
                }
            }
        }
        Ok(services)
    }

    /// Adds methods of a service, which has its full name: `shop.v1.Shop`, or the constant `SERVICE_NAME`
    /// that tonic generates.
    pub fn methods(mut self, service: &str, kind: MethodType, names: &[&str]) -> Self {
        self.methods.extend(names.iter().map(|&method| KnownMethod {
            service: service.to_owned(),
            method: method.to_owned(),
            kind,
        }));
        self
    }

    /// Calls of this service are not recorded: `grpc.health.v1.Health`, for example, or
    /// `grpc.reflection.v1.ServerReflection`.
    pub fn leave_out(mut self, service: &str) -> Self {
        self.left_out.push(service.to_owned());
        self
    }

    /// The reason for which the methods cannot be used, if there is one.
    pub(super) fn fault(&self) -> Option<String> {
        let names = self.methods.iter().flat_map(|known| [&known.service, &known.method]);
        let is_fault = |name: &&String| name.is_empty() || name.contains('/');
        let fault = names.chain(&self.left_out).find(is_fault)?;
        Some(format!(
            "{fault:?} is not the name of a gRPC service or method; expected a service such as \
             \"shop.v1.Shop\" and a method such as \"Show\", without slashes"
        ))
    }
}

// The parts of protobuf's `descriptor.proto` that name methods.

#[derive(Message)]
struct FileDescriptorSet {
    #[prost(message, repeated, tag = "1")]
    file: Vec<FileDescriptor>,
}

#[derive(Message)]
struct FileDescriptor {
    #[prost(string, tag = "2")]
    package: String,
    #[prost(message, repeated, tag = "6")]
    service: Vec<ServiceDescriptor>,
}

#[derive(Message)]
struct ServiceDescriptor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, repeated, tag = "2")]
    method: Vec<MethodDescriptor>,
}

#[derive(Message)]
struct MethodDescriptor {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bool, tag = "5")]
    client_streaming: bool,
    #[prost(bool, tag = "6")]
    server_streaming: bool,
}

impl MethodDescriptor {
    fn kind(&self) -> MethodType {
        match (self.client_streaming, self.server_streaming) {
            (false, false) => MethodType::Unary,
            (true, false) => MethodType::ClientStream,
            (false, true) => MethodType::ServerStream,
            (true, true) => MethodType::BidiStream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_set_has_every_method_with_its_type() {
        let method = |name: &str, client_streaming, server_streaming| MethodDescriptor {
            name: name.to_owned(),
            client_streaming,
            server_streaming,
        };
        let service = |name: &str, method| ServiceDescriptor { name: name.to_owned(), method };
        let set = FileDescriptorSet {
            file: vec![
                FileDescriptor {
                    package: "shop.v1".to_owned(),
                    service: vec![
                        service(
                            "Shop",
                            vec![method("Show", false, false), method("Put", true, false)],
                        ),
                        service("Empty", Vec::new()),
                    ],
                },
                FileDescriptor {
                    package: String::new(),
                    service: vec![service(
                        "Bare",
                        vec![method("Watch", false, true), method("Chat", true, true)],
                    )],
                },
            ],
        };
        let services = Services::from_descriptors(&set.encode_to_vec()).unwrap();
        let known = services
            .methods
            .iter()
            .map(|known| (&*known.service, &*known.method, known.kind.as_str()));
        let expected = [
            ("shop.v1.Shop", "Show", "unary"),
            ("shop.v1.Shop", "Put", "client_stream"),
            ("Bare", "Watch", "server_stream"),
            ("Bare", "Chat", "bidi_stream"),
        ];
        assert_eq!(known.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn bytes_that_are_no_descriptor_set_are_refused() {
        let refused = Services::from_descriptors(b"syntax = \"proto3\";").unwrap_err().to_string();
        assert!(refused.contains("not a FileDescriptorSet"), "{refused}");
        assert!(refused.contains("--descriptor_set_out"), "{refused}");
    }
}

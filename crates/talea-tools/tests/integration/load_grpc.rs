//! `talea load`: steps that call methods of gRPC, against tonic's server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::process::Output;
use std::task::{Context, Poll};

use hyper::{Request as HttpRequest, Response as HttpResponse};
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, ServiceDescriptorProto,
};
use serde_json::json;
use talea_load::scenario::Scenario;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tower::{Service, service_fn};

use crate::support::{assert_ends, printed_json, stdout, talea};

/// An item of the shop, which is the request and the response.
#[derive(Clone, PartialEq, Message)]
struct Item {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(int64, tag = "2")]
    stock_count: i64,
    #[prost(bool, tag = "3")]
    is_new: bool,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(message, optional, boxed, tag = "5")]
    part: Option<Box<Item>>,
}

fn field((number, name, kind, label): (i32, &str, Type, Label)) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label.into()),
        r#type: Some(kind.into()),
        type_name: (kind == Type::Message).then(|| ".shop.Item".to_owned()),
        ..FieldDescriptorProto::default()
    }
}

fn method((name, streams): (&str, bool)) -> MethodDescriptorProto {
    MethodDescriptorProto {
        name: Some(name.to_owned()),
        input_type: Some(".shop.Item".to_owned()),
        output_type: Some(".shop.Item".to_owned()),
        server_streaming: Some(streams),
        ..MethodDescriptorProto::default()
    }
}

/// What a descriptor set says of the service.
fn descriptors() -> Vec<u8> {
    let fields = [
        (1, "id", Type::String, Label::Optional),
        (2, "stock_count", Type::Int64, Label::Optional),
        (3, "is_new", Type::Bool, Label::Optional),
        (4, "tags", Type::String, Label::Repeated),
        (5, "part", Type::Message, Label::Optional),
    ];
    let file = FileDescriptorProto {
        name: Some("shop.proto".to_owned()),
        package: Some("shop".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: vec![DescriptorProto {
            name: Some("Item".to_owned()),
            field: fields.map(field).to_vec(),
            ..DescriptorProto::default()
        }],
        service: vec![ServiceDescriptorProto {
            name: Some("Shop".to_owned()),
            method: [("Get", false), ("Plain", false), ("Burn", false), ("Watch", true)]
                .map(method)
                .to_vec(),
            ..ServiceDescriptorProto::default()
        }],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

/// The service as tonic generates it.
#[derive(Clone)]
struct Shop;

impl NamedService for Shop {
    const NAME: &'static str = "shop.Shop";
}

impl Service<HttpRequest<Body>> for Shop {
    type Response = HttpResponse<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<Body>) -> Self::Future {
        Box::pin(async move {
            Ok(match request.uri().path() {
                "/shop.Shop/Get" => Grpc::new(Prost).unary(service_fn(get), request).await,
                // As a server that speaks no gRPC.
                "/shop.Shop/Plain" => HttpResponse::new(Body::empty()),
                _ => Status::unimplemented("").into_http(),
            })
        })
    }
}

async fn get(request: Request<Item>) -> Result<Response<Item>, Status> {
    let mut item = request.into_inner();
    match item.id.as_str() {
        "missing" => return Err(Status::not_found("no such item: \u{fc}\u{1b}[31m")),
        // It is sent as the field of another type.
        "garbage" => item.stock_count = -1,
        _ => item.stock_count += 1,
    }
    Ok(Response::new(item))
}

#[derive(Clone, Copy)]
struct Prost;

impl Codec for Prost {
    type Encode = Item;
    type Decode = Item;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Prost {
    type Item = Item;
    type Error = Status;

    fn encode(&mut self, item: Item, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        if item.id == "garbage" {
            bytes::BufMut::put_slice(out, b"\x0a\xff");
            return Ok(());
        }
        item.encode(out).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Prost {
    type Item = Item;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Item>, Status> {
        Item::decode(from).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}

/// A running service, and a folder with its descriptor set and scenarios.
struct Shopping {
    address: SocketAddr,
    folder: tempfile::TempDir,
    _runtime: Runtime,
}

impl Shopping {
    fn begin() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(
            Server::builder()
                .add_service(Shop)
                .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))),
        );
        Self { address, folder: folder(), _runtime: runtime }
    }

    fn load(&self, scenario: &str, arguments: &[&str]) -> Output {
        let path = self.folder.path().join("scenario.toml");
        std::fs::write(&path, scenario).unwrap();
        let url = format!("http://{}", self.address);
        let words = ["load", &url, "--scenario", path.to_str().unwrap(), "-c", "1", "-m", "2"];
        talea([&words[..], arguments].concat())
    }
}

/// One with a descriptor set, and a file that is none.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("shop.bin"), descriptors()).unwrap();
    std::fs::write(folder.path().join("shop.proto"), "syntax = \"proto3\";").unwrap();
    std::fs::write(folder.path().join("flags.csv"), "flag,id\ntrue,7\n").unwrap();
    folder
}

fn step(method: &str, message: &str) -> String {
    format!(
        "[[step]]\nname = 's'\n\
         grpc = {{ descriptors = 'shop.bin', method = 'shop.Shop/{method}', message = {message} }}\n"
    )
}

#[test]
fn a_call_sends_its_message_and_later_steps_use_the_reply() {
    let shop = Shopping::begin();
    let first = step(
        "Get",
        "{ id = 'a \"{who}\"', stockCount = 9007199254740993, tags = ['{who}', '{{}}'], \
         part = { id = '{flags.id}', stock_count = '{many}', is_new = '{flags.flag}' } }",
    );
    let scenario = format!(
        "[feeds.flags]\nfile = 'flags.csv'\n[variables]\nwho = 'ann'\nmany = {{ random = [5, 5] }}\n\
         {first}capture = {{ count = '/stockCount' }}\nmeasure = {{ count = '/part/stockCount' }}\n\
         check.contains = 'ann'\n\
         [step.check.json]\n'/id' = 'a \"ann\"'\n'/tags/1' = '{{{{}}}}'\n'/isNew' = false\n\
         '/part/id' = '7'\n'/part/isNew' = true\n'/stockCount' = 9007199254740994\n\
         {}check.json = {{ '/stockCount' = 9007199254740995 }}\n",
        step("Get", "{ stock_count = '{count}' }").replace("'s'", "'again'"),
    );
    let output = shop.load(&scenario, &["--http2", "--json"]);
    assert_ends(&output, 0, &[]);
    let summary = printed_json(&output);
    assert_eq!((&summary["answers"], &summary["failed"]), (&json!(4), &json!(0)));
    assert_eq!(summary["connections"], 1);
    assert_eq!(summary["measures"][0]["sum"], 10.0);
    let checks = summary["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 8);
    assert!(checks.iter().all(|check| check["passed"] == 2), "{checks:?}");
}

#[test]
fn the_status_of_a_call_is_its_result() {
    let shop = Shopping::begin();
    for (method, id, kind) in [
        ("Get", "missing", "s: grpc-status 5 NOT_FOUND, expected 0 OK"),
        ("Burn", "", "s: grpc-status 12 UNIMPLEMENTED, expected 0 OK"),
        ("Plain", "", "s: the response has no grpc-status"),
        ("Get", "garbage", "s: the response is no message of the method's type"),
    ] {
        let scenario = step(method, &format!("{{ id = '{id}' }}"));
        let output = shop.load(&scenario, &["--http2", "--json"]);
        assert_ends(&output, 1, &[]);
        let summary = printed_json(&output);
        assert_eq!(summary["failures"], json!([{"kind": kind, "count": 2}]));
        assert_eq!((&summary["answers"], &summary["failed"]), (&json!(2), &json!(2)));
    }
    // A value that does not fit shows when it is there.
    let scenario = format!("[variables]\nn = 'x'\n{}", step("Get", "{ stock_count = '{n}' }"));
    let output = shop.load(&scenario, &["--http2", "--json"]);
    assert_ends(&output, 1, &[]);
    let kind = &printed_json(&output)["failures"][0]["kind"];
    assert_eq!(kind, "s: not sent: its values make the request invalid");
}

#[test]
fn a_dry_run_shows_the_messages_as_json() {
    let shop = Shopping::begin();
    let output = shop.load(&step("Get", "{ id = 'pen' }"), &["--http2", "--dry-run"]);
    assert_ends(&output, 0, &[]);
    let shown = stdout(&output);
    for words in [
        "/shop.Shop/Get\n",
        "> content-type: application/grpc\n",
        "\n{\"id\":\"pen\",\"stockCount\":0,",
        "< grpc-status: 0 OK\n",
        "\n{\"id\":\"pen\",\"stockCount\":1,",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let output = shop.load(&step("Get", "{ id = 'missing' }"), &["--http2", "--dry-run"]);
    assert_ends(&output, 1, &[]);
    let shown = stdout(&output);
    assert!(shown.contains("< grpc-status: 5 NOT_FOUND no such item: ü\u{fffd}[31m\n"), "{shown}");
    // HTTP/1.1 has no trailers that a server of gRPC would send.
    for more in [&[][..], &["--dry-run"]] {
        let output = shop.load(&step("Get", "{}"), more);
        assert_ends(&output, 2, &["s: found HTTP/1.1, expected HTTP/2 for gRPC; add --http2"]);
    }
}

#[test]
fn an_error_in_a_call_has_its_line_and_what_to_write() {
    let folder = folder();
    let name = folder.path().join("x.toml").display().to_string();
    let get = |message: &str| step("Get", message);
    let of = |descriptors: &str| get("{}").replace("shop.bin", descriptors);
    let of_item = "expected one of shop.Item, which has: id, stock_count, is_new, tags, part";
    for (text, line, message) in [
        (of("none.bin"), 3, "none.bin cannot be read"),
        (of("shop.proto"), 3, "protoc --include_imports --descriptor_set_out=FILE"),
        (step("Gte", "{}"), 3, "found the method \"shop.Shop/Gte\", expected one of"),
        (step("Gte", "{}"), 3, "shop.Shop/Get, shop.Shop/Plain, shop.Shop/Burn, shop.Shop/Watch"),
        (step("Watch", "{}"), 3, "which streams, expected a unary method"),
        (get("{ idd = 1 }"), 3, "found the field \"idd\""),
        (get("{ idd = '{x}' }"), 3, of_item),
        (get("{ part = { idd = 1 } }"), 3, of_item),
        (get("{ id = 1 }"), 3, "the field id of shop.Item: "),
        (get("{ part = { stock_count = 'x' } }"), 3, "the field stock_count of shop.Item: "),
        (get("{ tags = 'x' }"), 3, "the field tags of shop.Item: "),
        (get("{ is_new = 'yes' }"), 3, "the field is_new of shop.Item: "),
        (get("7"), 3, "found 7, expected the fields of shop.Item: id"),
        (get("{ id = '{x}' }"), 3, "found {x}, which is neither a variable nor captured"),
        (get("{ id = '{' }"), 3, "a single brace"),
        (get("{}") + "method = 'GET'", 4, "found method beside grpc"),
        (get("{}") + "path = '/a'", 4, "found path beside grpc"),
        (get("{}") + "json = 1", 4, "found json beside grpc"),
        (get("{}") + "expect = 200", 4, "found expect beside grpc"),
        (get("{}") + "events = 1", 4, "found events beside grpc"),
        ("[[step]]\ngrpc = { method = 'a/b' }".to_owned(), 2, "missing field `descriptors`"),
        ("[[step]]\ngrpc = { descriptor = '' }".to_owned(), 2, "unknown field `descriptor`"),
    ] {
        let error = Scenario::parse(&name, &text).unwrap_err();
        assert!(error.starts_with(&format!("{name}:{line}: ")), "{text}: {error}");
        assert!(error.contains(message), "{text}: {error}");
    }
    let docs = include_str!("../../../../docs/reference/scenarios.md");
    let block = docs.split("```toml").nth(3).and_then(|rest| rest.split("```").next()).unwrap();
    // It is a step but for the file, which is another one here.
    let error = Scenario::parse(&name, block).unwrap_err();
    assert!(error.contains("found the method \"shop.Shop/Reserve\""), "{error}");
    let scenario = Scenario::parse(&name, &get("{}").replace("name = 's'\n", "")).unwrap();
    assert_eq!(scenario.steps[0].name, "shop.Shop/Get");
}

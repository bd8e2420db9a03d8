//! A real server in this process: HTTP/1.1 and HTTP/2, with TLS if asked for, that counts.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A running server; it ends when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
    _runtime: Runtime,
}

#[derive(Debug, Default)]
struct Counts {
    requests: AtomicU64,
    http2: AtomicU64,
}

/// A certificate for 127.0.0.1 in a file, and what serves it.
pub(crate) struct Certificate {
    pub(crate) pem: PathBuf,
    config: Arc<ServerConfig>,
    _folder: tempfile::TempDir,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        Self::of(CertificateParams::new(["127.0.0.1".to_owned()]).unwrap())
    }

    /// One that says that it is a certificate authority, as `openssl req -x509` makes it.
    pub(crate) fn authority(name: &str) -> Self {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self::of(params)
    }

    fn of(params: CertificateParams) -> Self {
        let key = KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pem = folder.path().join("ca.pem");
        std::fs::write(&pem, made.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { pem, config: Arc::new(config), _folder: folder }
    }
}

impl Server {
    /// One that answers as a function says.
    pub(crate) fn start<F, A>(certificate: Option<&Certificate>, answer: F) -> Self
    where
        F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
    {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Arc::new(Counts::default());
        let tls = certificate.map(|certificate| TlsAcceptor::from(certificate.config.clone()));
        let counted = counts.clone();
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let (answer, counts, tls) = (answer.clone(), counted.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, answer, counts).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, answer, counts).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, counts, _runtime: runtime }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.counts.requests.load(SeqCst)
    }

    pub(crate) fn http2(&self) -> u64 {
        self.counts.http2.load(SeqCst)
    }
}

async fn serve<F, A>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answer: F,
    counts: Arc<Counts>,
) where
    F: Fn(Request<Incoming>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        counts.requests.fetch_add(1, SeqCst);
        counts.http2.fetch_add(u64::from(request.version() == Version::HTTP_2), SeqCst);
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

pub(crate) fn text(text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    Response::new(Full::new(text.into()))
}

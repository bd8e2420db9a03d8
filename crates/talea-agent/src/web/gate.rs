//! The web configuration as a server's gate.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::Ordering;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use talea_http::server::{AcceptedConnection, Gate, Socket, Transport};

use super::{Refusal, Web};
use crate::page::add_safety;

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The challenge that makes a browser ask for a password.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"talea\"");
/// The seconds after which a client may try again whose password could not be checked.
const RETRY: HeaderValue = HeaderValue::from_static("1");

/// The rules are those in force when a connection is accepted, and again for each of its requests.
impl Gate for Web {
    fn accept(&self, socket: Socket) -> Boxed<'_, io::Result<AcceptedConnection>> {
        let rules = self.current();
        Box::pin(async move {
            let transport = match &rules.tls {
                None => Transport::plain(socket),
                Some(tls) => Transport::layered(tls.accept(socket).await?, |tls| tls.get_ref().0),
            };
            Ok(AcceptedConnection { transport, http2: rules.http2 })
        })
    }

    fn admit<'a>(
        &'a self,
        headers: &'a HeaderMap,
        client: SocketAddr,
    ) -> Boxed<'a, Result<(), Response>> {
        Box::pin(async move {
            let rules = self.current();
            if !rules.is_within_rate_limit() {
                return Err((StatusCode::TOO_MANY_REQUESTS, "Too Many Requests\n").into_response());
            }
            rules.admit(headers, client.ip()).await.map_err(|refusal| match refusal {
                Refusal::Unauthorized => {
                    self.unauthorized.fetch_add(1, Ordering::Relaxed);
                    let challenge = [(header::WWW_AUTHENTICATE, CHALLENGE)];
                    (StatusCode::UNAUTHORIZED, challenge, "Unauthorized\n").into_response()
                }
                Refusal::Busy => {
                    let retry = [(header::RETRY_AFTER, RETRY)];
                    let reason = "Too many passwords wait to be checked.\n";
                    (StatusCode::SERVICE_UNAVAILABLE, retry, reason).into_response()
                }
            })
        })
    }

    /// Those of the configuration in place of those that the application has set, and those that make any answer safe.
    fn add_headers(&self, headers: &mut HeaderMap) {
        add_safety(headers);
        for (name, value) in &self.current().headers {
            headers.insert(name, value.clone());
        }
    }
}

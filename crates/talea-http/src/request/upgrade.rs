//! Requests that stay in flight while their upgraded connection is open, such as a WebSocket's.

use std::sync::{Arc, Mutex, PoisonError};

use super::end::ResponseTransfer;

/// Keeps a request in flight for as long as the connection that it was upgraded to is open.
///
/// A response of status 101 (Switching Protocols) ends an HTTP exchange, and so does the 200 to the
/// `CONNECT` with which a WebSocket begins over HTTP/2: later bytes pass between the handler's own
/// task and the client, and no layer sees them. So the request is `complete` with its head, and no
/// longer in flight. To keep it in flight until the connection closes, add a clone of a guard to the
/// response's extensions, and hold another one in the task:
///
/// ```
/// use axum::Extension;
/// use axum::extract::WebSocketUpgrade;
/// use axum::response::IntoResponse;
/// use talea_http::UpgradeGuard;
///
/// async fn chat(upgrade: WebSocketUpgrade) -> impl IntoResponse {
///     let guard = UpgradeGuard::new();
///     let held = guard.clone();
///     let response = upgrade.on_upgrade(async move |mut socket| {
///         let _held = held;
///         while let Some(Ok(message)) = socket.recv().await {
///             // …
///         }
///     });
///     (Extension(guard), response)
/// }
/// ```
///
/// The request ends when the last clone is dropped: `complete`, or `panicked` if the task that
/// drops it panics. Its time to the end is then the time that the connection was open, and the
/// bytes of its response are 0. A guard does nothing if no clone of it is in the response's extensions,
/// if the response is not metered, or if it is neither a 101 nor a 200 without a body.
///
/// Threading: clones may be anywhere. Cost: an allocation for each upgrade.
#[derive(Clone, Debug, Default)]
pub struct UpgradeGuard(Arc<OpenRequest>);

#[derive(Debug, Default)]
struct OpenRequest(Mutex<Option<ResponseTransfer>>);

impl UpgradeGuard {
    /// A guard for one response.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over a request whose response's head is recorded. An earlier one ends.
    pub(crate) fn keep(&self, transfer: ResponseTransfer) {
        let before = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).replace(transfer);
        drop(before);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let transfer = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(transfer), true) = (transfer, std::thread::panicking()) {
            transfer.exchange.note_unwind();
        }
    }
}

//! Connections that go on after their head, such as a WebSocket's.

use std::sync::{Arc, Mutex, PoisonError};

use crate::exchange::Passing;

/// Keeps a request in flight for as long as the connection that it was upgraded to is open.
///
/// A response of status 101 (Switching Protocols) ends an HTTP exchange: what follows on the connection
/// passes between the handler's own task and the client, and no layer sees it. So the request is
/// `complete` with its head, after a millisecond, and is in flight no more. To have it in flight
/// until the connection closes, add a clone of a guard to the response's extensions, and hold
/// another one in the task:
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
/// The request ends when the last clone is dropped: `complete`, or `panicked` if the task that drops it
/// panics. Its time to the end is then the time that the connection was open, and the bytes of its
/// response are 0. A guard whose response is not metered, or has another status, does nothing.
///
/// Threading: clones may be anywhere. Cost: an allocation for each upgrade.
#[derive(Clone, Debug, Default)]
pub struct UpgradeGuard(Arc<Open>);

#[derive(Debug, Default)]
struct Open(Mutex<Option<Passing>>);

impl UpgradeGuard {
    /// A guard for one response.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a request whose response's head is there. One that it already has ends.
    pub(crate) fn keep(&self, passing: Passing) {
        let before = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).replace(passing);
        drop(before);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let passing = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (Some(passing), true) = (passing, std::thread::panicking()) {
            passing.unwind();
        }
    }
}

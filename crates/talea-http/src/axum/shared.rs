//! Layers whose services are shared, so that fewer of them are cloned.
//!
//! axum boxes a route again for every layer, and for each request clones the outermost box
//! with all that is inside of it. Each layer then clones what is inside of itself once more
//! to call it, so what is cloned grows with the square of the layers. A service that is
//! shared is cloned when it is called, and not before: with some of them among the layers,
//! it grows with the layers.

use std::sync::Arc;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

/// A layer that comes when there are so many around a route is shared, if it is one in four.
/// Among fewer there is little to save, and who shares counts where all threads do.
pub(super) fn is_due(layers: usize) -> bool {
    layers % 4 == 0
}

/// A layer whose service is shared.
#[derive(Clone, Debug)]
pub(super) struct SharedLayer<L>(pub(super) L);

impl<L: Layer<S>, S> Layer<S> for SharedLayer<L> {
    type Service = Shared<L::Service>;

    fn layer(&self, inner: S) -> Self::Service {
        Shared { service: Arc::new(self.0.layer(inner)), ready: None }
    }
}

/// A service that is shared, and cloned to be called.
#[derive(Debug)]
pub(super) struct Shared<S> {
    service: Arc<S>,
    /// The clone that said that it is ready has to be the one that is called.
    ready: Option<S>,
}

impl<S> Clone for Shared<S> {
    #[inline]
    fn clone(&self) -> Self {
        Self { service: Arc::clone(&self.service), ready: None }
    }
}

impl<S, R> Service<R> for Shared<S>
where
    S: Service<R> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    #[inline]
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.ready.get_or_insert_with(|| S::clone(&self.service)).poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: R) -> S::Future {
        self.ready.take().unwrap_or_else(|| S::clone(&self.service)).call(request)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::{Ready, ready};
    use std::task::Waker;

    use tower_layer::layer_fn;

    use super::*;

    /// Ready when it was asked twice, and only for one call.
    #[derive(Default)]
    struct Slow {
        asked: u32,
    }

    impl Clone for Slow {
        fn clone(&self) -> Self {
            Self::default()
        }
    }

    impl Service<()> for Slow {
        type Response = ();
        type Error = Infallible;
        type Future = Ready<Result<(), Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.asked += 1;
            if self.asked < 2 { Poll::Pending } else { Poll::Ready(Ok(())) }
        }

        fn call(&mut self, (): ()) -> Self::Future {
            assert!(self.asked >= 2, "called before it was ready");
            self.asked = 0;
            ready(Ok(()))
        }
    }

    #[test]
    fn the_clone_that_is_ready_is_called() {
        let mut cx = Context::from_waker(Waker::noop());
        let mut shared = SharedLayer(layer_fn(|()| Slow::default())).layer(());
        for _ in 0..3 {
            assert!(shared.poll_ready(&mut cx).is_pending());
            let mut other = shared.clone();
            assert!(shared.poll_ready(&mut cx).is_ready());
            assert!(other.poll_ready(&mut cx).is_pending(), "it is as new as any clone");
            drop(shared.call(()));
        }
    }
}

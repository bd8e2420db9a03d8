//! One request from its arrival to its end, recorded once.
//!
//! A request is an [`Exchange`](request::Exchange) until the head of its response. If the body is
//! still to be sent then, it goes on as a [`ResponseTransfer`](response::ResponseTransfer).

mod aborted_body;
pub(crate) mod body;
pub(crate) mod caught_panic;
mod clock;
pub(crate) mod handler_error;
pub(crate) mod head;
pub(crate) mod manual;
pub(crate) mod request;
pub(crate) mod request_size;
pub(crate) mod response;
pub(crate) mod upgrade;

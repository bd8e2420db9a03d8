//! Clients that behave, and clients that do not.

mod hyper;
mod resets;
mod socket;

use crate::case::{Case, Client, Protocol};
use crate::server::Server;

/// Does once what the case says.
pub(crate) async fn run(case: &Case, server: &Server, protocol: Protocol) {
    match (case.client, protocol) {
        (Client::Asks(sends), _) => hyper::asks(case, server, protocol, sends).await,
        (Client::Keeps(times), _) => hyper::keeps(case, server, protocol, times).await,
        (Client::Multiplexes(times), _) => hyper::multiplexes(case, server, times).await,
        (
            Client::ResetsInRequest | Client::ResetsWhileItWaits | Client::ResetsInResponse,
            Protocol::Http2,
        ) => resets::stream(case, server).await,
        (Client::ResetsConnection, _) => resets::connection(case, server).await,
        (Client::Upgrades, _) => socket::upgrades(case, server).await,
        _ => socket::speaks(case, server).await,
    }
}

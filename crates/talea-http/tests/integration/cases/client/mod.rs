//! Clients, of which some reset or misbehave.

mod hyper;
mod resets;
mod socket;

use crate::cases::case::{Case, Client, Protocol};
use crate::cases::server::Server;

pub(crate) async fn run(case: &Case, server: &Server, protocol: Protocol) {
    match (case.client, protocol) {
        (Client::Asks(body), _) => hyper::send(case, server, protocol, body).await,
        (Client::Keeps(times), _) => hyper::send_in_turn(case, server, protocol, times).await,
        (Client::Multiplexes(times), _) => hyper::send_at_once(case, server, times).await,
        (
            Client::ResetsInRequest | Client::ResetsWhileItWaits | Client::ResetsInResponse,
            Protocol::Http2,
        ) => resets::reset_stream(case, server).await,
        (Client::ResetsConnection, _) => resets::reset_connection(case, server).await,
        (Client::Upgrades | Client::UpgradesWithGuard, _) => socket::upgrade(case, server).await,
        _ => socket::run(case, server).await,
    }
}

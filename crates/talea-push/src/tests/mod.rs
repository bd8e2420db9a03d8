//! Claims about pushing, to a receiver that answers by a script.

mod delivery;
mod otlp;
mod receiver;
mod registry;
mod series;
mod tls;

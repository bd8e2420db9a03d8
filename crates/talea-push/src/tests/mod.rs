//! Claims about pushing, to a receiver that answers as it is told.

mod delivery;
mod otlp;
mod receiver;
mod registry;
mod series;
mod tls;

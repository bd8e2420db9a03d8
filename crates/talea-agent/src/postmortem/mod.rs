//! The time before a process died: the last seconds as the agent recorded them, and the values that the
//! region still holds.
//!
//! `record` is what a history says, `region` what a region says; `text` and `html` show both.

mod html;
mod record;
mod region;
mod text;

use serde::Serialize;

pub use self::record::Record;
pub use self::region::Remains;

#[derive(Debug, Serialize)]
pub struct Postmortem {
    /// The seconds that the agent recorded; `None` if it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Remains>,
}

impl Postmortem {
    pub fn text(&self) -> String {
        text::text(self)
    }

    pub fn html(&self) -> String {
        html::page(self)
    }

    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

//! A dashboard of Grafana's, and what Grafana makes of its queries.

use std::ops::Range;
use std::path::Path;

use serde_json::Value as Json;

#[derive(Debug)]
pub struct Dashboard {
    json: Json,
}

/// A panel that is not just a row's title.
#[derive(Debug)]
pub struct Panel<'a> {
    json: &'a Json,
}

/// A variable whose values are asked for.
#[derive(Debug)]
pub struct Variable {
    pub name: String,
    /// The label whose values it has.
    pub label: String,
    /// The series among which they are, as a query.
    pub of: String,
}

impl Dashboard {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read(path).expect("the dashboard is there");
        Self { json: serde_json::from_slice(&text).expect("it is JSON") }
    }

    /// Its panels and the titles of its rows, in order.
    pub fn all(&self) -> impl Iterator<Item = Panel<'_>> {
        list(&self.json["panels"]).map(|json| Panel { json })
    }

    pub fn panels(&self) -> impl Iterator<Item = Panel<'_>> {
        self.all().filter(|panel| panel.json["type"] != "row")
    }

    /// Its variables whose values are asked for.
    pub fn variables(&self) -> Vec<Variable> {
        let all = list(&self.json["templating"]["list"]).filter(|json| json["type"] == "query");
        all.map(|json| {
            let query = text(&json["query"]["query"]);
            let inner = query.strip_prefix("label_values(").and_then(|q| q.strip_suffix(')'));
            let (of, label) = inner.and_then(|q| q.rsplit_once(", ")).expect("label_values");
            Variable { name: text(&json["name"]), label: label.to_owned(), of: of.to_owned() }
        })
        .collect()
    }

    /// A query as Grafana sends it, of what was chosen of some variables and of all of the
    /// others.
    pub fn filled(&self, query: &str, chosen: &[(&str, &str)]) -> String {
        // As Grafana computes them from two scrapes a second and the time range.
        let mut query = query.replace("$__rate_interval", "5s").replace("$__range", "1h");
        for json in list(&self.json["templating"]["list"]) {
            let name = text(&json["name"]);
            let pick = chosen.iter().find(|(chosen, _)| *chosen == name);
            let value = match (json["type"].as_str(), pick) {
                (Some("query"), Some((_, value))) => escaped(value),
                (Some("query"), None) => text(&json["allValue"]),
                _ => text(json["current"].get("value").unwrap_or(&Json::from(""))),
            };
            query = query.replace(&format!("${name}"), &value);
        }
        assert!(!query.contains('$'), "{query}");
        query
    }
}

impl Panel<'_> {
    pub fn title(&self) -> String {
        text(&self.json["title"])
    }

    pub fn description(&self) -> &str {
        self.json["description"].as_str().unwrap_or_default()
    }

    pub fn unit(&self) -> &str {
        self.json["fieldConfig"]["defaults"]["unit"].as_str().unwrap_or_default()
    }

    pub fn id(&self) -> Option<u64> {
        self.json["id"].as_u64()
    }

    /// The columns and the rows that it takes.
    pub fn area(&self) -> [Range<u64>; 2] {
        let at = |key| self.json["gridPos"][key].as_u64().expect("it says where it stands");
        [at("x")..at("x") + at("w"), at("y")..at("y") + at("h")]
    }

    /// Its queries, with variables, and the labels that the legends name.
    pub fn queries(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        list(&self.json["targets"]).map(|target| {
            let legend = target["legendFormat"].as_str().unwrap_or_default();
            let names = legend.split("{{").skip(1).map(|rest| rest.split_once("}}"));
            let names = names.map(|parts| parts.expect("a name ends").0).collect();
            (target["expr"].as_str().expect("a query"), names)
        })
    }
}

fn list(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn text(json: &Json) -> String {
    json.as_str().unwrap_or_else(|| panic!("{json} is no text")).to_owned()
}

/// A value in a regular expression, in a string of PromQL.
fn escaped(value: &str) -> String {
    let mut out = String::new();
    for c in value.chars() {
        match c {
            '\\' => out += "\\\\\\\\",
            _ if "$^*{}[]'+?.()|".contains(c) => out.extend(["\\\\", c.encode_utf8(&mut [0; 4])]),
            _ => out.push(c),
        }
    }
    out
}

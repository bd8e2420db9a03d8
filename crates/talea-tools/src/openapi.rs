//! Scenarios from OpenAPI documents (3.0 and 3.1): a step for each operation, with values from examples and schemas.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value as Json, json};
use talea_load::scenario::Scenario;

/// Methods that change nothing (RFC 9110, 9.2.1), and the others that a path can have.
const SAFE: [&str; 2] = ["get", "head"];
const UNSAFE: [&str; 4] = ["post", "put", "patch", "delete"];

/// Schemas may refer to themselves: deeper values are left out.
const DEEPEST: usize = 8;

/// The scenario of a document; only its safe methods unless all are asked for.
///
/// # Errors
/// The file cannot be read, is no such document, or has no operation of these methods.
pub(crate) fn scenario(path: &Path, all_methods: bool) -> Result<Scenario> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("--openapi {name}"))?;
    let toml = toml(&text, all_methods).with_context(|| format!("--openapi {name}"))?;
    Scenario::parse(&name, &toml).map_err(|error| anyhow!("--openapi: {error}"))
}

/// The scenario as the text of a scenario's file.
fn toml(text: &str, all_methods: bool) -> Result<String> {
    // YAML includes JSON.
    let document: Json = serde_saphyr::from_str(text).map_err(|error| anyhow!("{error}"))?;
    let version = document["openapi"].as_str().unwrap_or_default();
    if !version.starts_with("3.") {
        bail!("found no `openapi: 3.…`, expected a document of OpenAPI 3.0 or 3.1");
    }
    let document = Document(&document);
    let paths = document.0["paths"].as_object().context("found no `paths`")?;
    let methods = SAFE.iter().chain(UNSAFE.iter().filter(|_| all_methods));
    let mut toml = String::new();
    for (path, item) in paths {
        let item = document.resolved(item);
        for method in methods.clone() {
            if let Some(operation) = item.get(*method) {
                document.push_step(path, method, item, operation, &mut toml)?;
            }
        }
    }
    if toml.is_empty() {
        bail!(
            "found no operation of GET or HEAD; --unsafe-methods takes those that change records too"
        );
    }
    Ok(toml)
}

struct Document<'a>(&'a Json);

impl<'a> Document<'a> {
    /// A value, or the one of this document that it refers to.
    fn resolved(&self, mut value: &'a Json) -> &'a Json {
        for _ in 0..DEEPEST {
            let Some(reference) = value["$ref"].as_str() else { break };
            let found = reference.strip_prefix('#').and_then(|pointer| self.0.pointer(pointer));
            value = found.unwrap_or(&Json::Null);
        }
        value
    }

    fn push_step(
        &self,
        path: &str,
        method: &str,
        item: &'a Json,
        operation: &'a Json,
        toml: &mut String,
    ) -> Result<()> {
        let method = method.to_uppercase();
        let mut filled = escaped(path);
        let (mut query, mut headers) = (Vec::new(), BTreeMap::new());
        for ((name, place), parameter) in self.parameters(item, operation) {
            let is_required = parameter["required"] == true;
            let Some(value) = self.example(parameter, is_required) else { continue };
            let text = plain(&value);
            match place {
                "path" => filled = filled.replace(&format!("{{{{{name}}}}}"), &percent(&text)),
                "query" => query.push(format!("{}={}", percent(name), percent(&text))),
                // These are not described as parameters.
                "header"
                    if !["accept", "content-type", "authorization"]
                        .contains(&&*name.to_lowercase()) =>
                {
                    headers.insert(name.to_owned(), escaped(&text));
                }
                _ => {}
            }
        }
        if filled.contains("{{") {
            bail!("{method} {path}: a parameter of the path has no example, and is not described");
        }
        if !query.is_empty() {
            filled = format!("{filled}?{}", query.join("&"));
        }
        let body = self.body(operation);
        if let Some((kind, _)) = &body {
            headers.insert("Content-Type".to_owned(), kind.clone());
        }
        let name = operation["operationId"].as_str().map(str::to_owned);
        let name = name.unwrap_or_else(|| format!("{method} {path}"));
        // To write to a text does not fail. A string of JSON is one of TOML.
        let _ = writeln!(toml, "[[step]]\nname = {}\nmethod = {}", json!(name), json!(method));
        let _ = writeln!(toml, "path = {}", json!(filled));
        for (name, value) in headers {
            let _ = writeln!(toml, "headers.{} = {}", json!(name), json!(value));
        }
        if let Some((_, body)) = body {
            let _ = writeln!(toml, "body = {}", json!(escaped(&body)));
        }
        let responses = operation["responses"].as_object();
        let expected =
            responses.into_iter().flat_map(Map::keys).filter_map(|it| it.parse::<u16>().ok());
        let expected: Vec<u16> = expected.filter(|status| (200..400).contains(status)).collect();
        if !expected.is_empty() {
            let _ = writeln!(toml, "expect = {expected:?}");
        }
        Ok(())
    }

    /// The parameters by name and place: an operation's replace those of its path.
    fn parameters(
        &self,
        item: &'a Json,
        operation: &'a Json,
    ) -> BTreeMap<(&'a str, &'a str), &'a Json> {
        let lists = [item, operation].map(|of| of["parameters"].as_array());
        let all = lists.into_iter().flatten().flatten().map(|parameter| self.resolved(parameter));
        let named = all.filter_map(|parameter| {
            let (name, place) = (parameter["name"].as_str()?, parameter["in"].as_str()?);
            Some(((name, place), parameter))
        });
        named.collect()
    }

    /// The media type and the text of an operation's body.
    fn body(&self, operation: &'a Json) -> Option<(String, String)> {
        let content = self.resolved(&operation["requestBody"])["content"].as_object()?;
        let (kind, media) = content
            .iter()
            .find(|(kind, _)| kind.contains("json"))
            .or_else(|| content.iter().find(|(kind, _)| kind.starts_with("text/")))?;
        let value = self.example(media, true)?;
        let text = if kind.contains("json") { value.to_string() } else { plain(&value) };
        Some((kind.clone(), text))
    }

    /// The example of a parameter or a media type; with `makes` one that its schema allows.
    fn example(&self, of: &'a Json, makes: bool) -> Option<Json> {
        let named = of["examples"].as_object().and_then(|all| all.values().next());
        let named = named.map(|example| &self.resolved(example)["value"]);
        let given = [of.get("example"), named].into_iter().flatten().find(|it| !it.is_null());
        let schema = self.resolved(&of["schema"]);
        given
            .cloned()
            .or_else(|| self.given(schema))
            .or_else(|| makes.then(|| self.made(schema, 0)))
    }

    /// An example or a default of a schema.
    fn given(&self, schema: &Json) -> Option<Json> {
        let first = schema["examples"].as_array().and_then(|all| all.first());
        let given = [schema.get("example"), first, schema.get("default"), schema.get("const")];
        given.into_iter().flatten().next().cloned()
    }

    /// A value that a schema allows, as far as the usual keywords say.
    fn made(&self, schema: &'a Json, depth: usize) -> Json {
        let schema = self.resolved(schema);
        if let Some(given) = self.given(schema) {
            return given;
        }
        if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
            return first.clone();
        }
        if depth >= DEEPEST {
            return Json::Null;
        }
        for key in ["oneOf", "anyOf"] {
            if let Some(first) = schema[key].as_array().and_then(|all| all.first()) {
                return self.made(first, depth + 1);
            }
        }
        let kind = match &schema["type"] {
            Json::Array(kinds) => {
                kinds.iter().filter_map(Json::as_str).find(|kind| *kind != "null")
            }
            kind => kind.as_str(),
        };
        match kind {
            Some("integer" | "number") => {
                let least = schema["minimum"].as_f64();
                let most = schema["maximum"].as_f64().unwrap_or(f64::INFINITY);
                let number = least.unwrap_or(1.0f64.min(most));
                if number.fract() == 0.0 { json!(number as i64) } else { json!(number) }
            }
            Some("boolean") => json!(true),
            Some("string") => json!(text_of(schema)),
            Some("array") => json!([self.made(&schema["items"], depth + 1)]),
            _ => self.object(schema, depth),
        }
    }

    /// The required fields of an object, or all if it names none that are.
    fn object(&self, schema: &'a Json, depth: usize) -> Json {
        let mut fields = Map::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            if let Json::Object(more) = self.made(part, depth + 1) {
                fields.extend(more);
            }
        }
        let required: Option<Vec<&str>> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Json::as_str).collect());
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if required.as_ref().is_none_or(|required| required.contains(&name.as_str())) {
                fields.insert(name.clone(), self.made(property, depth + 1));
            }
        }
        Json::Object(fields)
    }
}

fn text_of(schema: &Json) -> String {
    let text = match schema["format"].as_str() {
        Some("uuid") => "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("email") => "ann@example.org",
        Some("uri" | "url") => "https://example.org/",
        Some("ipv4") => "192.0.2.1",
        _ => "text",
    };
    let [least, most] = ["minLength", "maxLength"].map(|key| schema[key].as_u64());
    let length =
        (text.len() as u64).max(least.unwrap_or(0)).min(most.unwrap_or(u64::MAX)).min(10_000);
    text.chars().cycle().take(length as usize).collect()
}

/// A value as text: a text as it is, other values as JSON.
fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// As a template has it: a brace would begin a variable.
fn escaped(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

fn percent(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r##"
openapi: 3.0.3
paths:
  /items/{id}:
    parameters:
      - { name: id, in: path, required: true, schema: { type: integer, minimum: 7 } }
      - $ref: "#/components/parameters/Tenant"
    get:
      operationId: show
      parameters:
        - { name: q, in: query, schema: { type: string }, example: "a b" }
        - { name: optional, in: query, schema: { type: string } }
      responses: { "200": {}, "404": {} }
    put:
      requestBody:
        content:
          application/json:
            schema: { $ref: "#/components/schemas/Item" }
      responses: { "204": {} }
  /items:
    get: { responses: { default: {} } }
components:
  parameters:
    Tenant: { name: X-Tenant, in: header, required: true, schema: { type: string, minLength: 6 } }
  schemas:
    Item:
      type: object
      required: [name, kind, at, parts, parent]
      properties:
        name: { type: string, example: "{n}" }
        kind: { enum: [small, large] }
        at: { type: string, format: date }
        parts: { type: array, items: { type: boolean } }
        parent: { $ref: "#/components/schemas/Item" }
        note: { type: string }
"##;

    #[test]
    fn each_safe_operation_is_a_step_with_values_that_the_document_allows() {
        let toml = toml(DOCUMENT, false).unwrap();
        assert_eq!(
            toml,
            "[[step]]\nname = \"GET /items\"\nmethod = \"GET\"\npath = \"/items\"\n\
             [[step]]\nname = \"show\"\nmethod = \"GET\"\npath = \"/items/7?q=a%20b\"\n\
             headers.\"X-Tenant\" = \"textte\"\nexpect = [200]\n"
        );
        assert_eq!(Scenario::parse("x", &toml).unwrap().steps.len(), 2);
    }

    #[test]
    fn other_methods_are_taken_if_they_are_asked_for_and_schemas_that_refer_to_themselves_end() {
        let toml = toml(DOCUMENT, true).unwrap();
        let put = toml.split("[[step]]").find(|step| step.contains("PUT")).unwrap();
        assert!(put.contains("headers.\"Content-Type\" = \"application/json\""), "{put}");
        let scenario = Scenario::parse("x", &toml).unwrap();
        let body = scenario.steps.last().and_then(|step| step.body.as_ref()).unwrap();
        let body: Json = serde_json::from_str(body.constant().unwrap()).unwrap();
        assert_eq!(
            (&body["name"], &body["kind"], &body["at"]),
            (&json!("{n}"), &json!("small"), &json!("2026-01-31"))
        );
        assert_eq!((&body["parts"], body.get("note")), (&json!([true]), None));
        assert_eq!(body["parent"]["parent"]["name"], "{n}");
    }

    #[test]
    fn a_document_without_what_is_needed_is_refused_in_words() {
        for (text, words) in [
            ("a: [", "line"),
            ("swagger: '2.0'", "found no `openapi: 3.…`"),
            ("openapi: 3.1.0", "found no `paths`"),
            ("openapi: 3.1.0\npaths: { /a: { post: {} } }", "--unsafe-methods"),
            (
                "openapi: 3.1.0\npaths: { '/a/{b}': { get: {} } }",
                "a parameter of the path has no example",
            ),
        ] {
            let error = format!("{:#}", toml(text, false).unwrap_err());
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}

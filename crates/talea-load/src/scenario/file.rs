//! A scenario as TOML.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use hyper::Method;
use hyper::header::HeaderMap;
use serde::Deserialize;
use toml::Spanned;

use super::captured::CapturedValue;
use super::definition::{ExpectedStatus, Flow, Metrics, Scenario, Step};
use super::fault::{Fault, at, located};
use super::feed::{Each, Feed, Order};
use super::names::Names;
use super::step_text::{Context, StepText, flow};
use super::template::Template;
use super::value::{Source, Variable};

impl Scenario {
    /// The built-in one: create, list, get, update and delete an item of a collection.
    pub fn crud() -> Self {
        match Self::parse("crud", include_str!("crud.toml")) {
            Ok(scenario) => scenario,
            Err(error) => unreachable!("the built-in scenario is tested: {error}"),
        }
    }

    /// One request of the target's URL as it is; its answer is expected to have a status of 200 to 299.
    pub fn request(method: Method, headers: HeaderMap, body: Option<&str>) -> Self {
        let body = body.map(|text| {
            let mut body = Template::default();
            body.push_text(text);
            body.into()
        });
        let step = Step {
            name: method.to_string(),
            method,
            path: Template::default(),
            headers,
            filled_headers: Vec::new(),
            body,
            expected: ExpectedStatus::AnySuccess,
            checks: Vec::new(),
            captures: Vec::new(),
            measures: Vec::new(),
            events: None,
            think: None,
            flow: None,
            grpc: None,
            websocket: None,
        };
        Self {
            name: step.name.clone(),
            variables: Vec::new(),
            feeds: Vec::new(),
            steps: vec![step],
            flows: Vec::new(),
            setup: Vec::new(),
            teardown: Vec::new(),
            cookies: false,
            redirects: 0,
            metrics: Metrics::default(),
        }
    }

    /// Reads one from a text, of a file of this name: errors begin with it, and files that the text names are in its
    /// folder.
    /// Fails when the text is no scenario: the error has the line, the text found and the text
    /// expected.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut files = Vec::new();
        read(name, text, None, &mut vec![PathBuf::from(name)], &mut files)?;
        assembled(files)
    }

    /// The built-in one of this name, or the one in a file.
    /// Fails when the file cannot be read, or is no scenario.
    pub fn of(name_or_path: &str) -> anyhow::Result<Self> {
        if name_or_path == "crud" {
            return Ok(Self::crud());
        }
        let text = std::fs::read_to_string(name_or_path).with_context(|| {
            format!("the scenario {name_or_path} cannot be read (the built-in one is crud)")
        })?;
        Self::parse(name_or_path, &text).map_err(|error| anyhow!(error))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    #[serde(default)]
    cookies: bool,
    #[serde(default)]
    redirects: u32,
    #[serde(default)]
    include: Vec<Spanned<IncludeText>>,
    #[serde(default)]
    variables: BTreeMap<String, Spanned<VariableText>>,
    #[serde(default)]
    feeds: BTreeMap<String, Spanned<FeedText>>,
    #[serde(default)]
    flows: BTreeMap<String, Spanned<u32>>,
    #[serde(default)]
    setup: Vec<Spanned<StepText>>,
    #[serde(default)]
    step: Vec<Spanned<StepText>>,
    #[serde(default)]
    teardown: Vec<Spanned<StepText>>,
    #[serde(default)]
    metrics: BTreeMap<Spanned<String>, Spanned<MetricText>>,
}

/// A file of a scenario, which may include others.
struct SourceFile {
    name: String,
    text: String,
    file: File,
    /// The flow of its steps that name none, if a file that includes it names one.
    flow: Option<String>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a file such as \"login.toml\", or { file = \"buy.toml\", flow = \"buy\" }"
)]
enum IncludeText {
    File(String),
    Flow { file: String, flow: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FeedText {
    file: String,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    each: Each,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text, or true or false")]
enum MetricText {
    Text(String),
    Flag(bool),
}

impl MetricText {
    fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Flag(flag) => flag.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a text, a whole number, { random = [FROM, TO] }, { choice = [TEXT, …] } or { env = NAME }"
)]
enum VariableText {
    Text(String),
    Whole(i64),
    Random { random: [i64; 2] },
    Choice { choice: Vec<String> },
    Environment { env: String, default: Option<String> },
}

impl SourceFile {
    fn located(&self, fault: Fault) -> String {
        located(&self.name, &self.text, fault)
    }

    fn folder(&self) -> &Path {
        Path::new(&self.name).parent().unwrap_or(Path::new(""))
    }

    fn all_steps(&self) -> impl Iterator<Item = &Spanned<StepText>> {
        let File { setup, step, teardown, .. } = &self.file;
        setup.iter().chain(step).chain(teardown)
    }
}

/// Reads a file, and before it those that it includes, with the flow of their steps. `open` are the files that include
/// one another.
fn read(
    name: &str,
    text: &str,
    flow: Option<String>,
    open: &mut Vec<PathBuf>,
    files: &mut Vec<SourceFile>,
) -> Result<(), String> {
    let file: File = toml::from_str(text).map_err(|error| {
        located(name, text, (error.span().unwrap_or(0..0), error.message().to_owned()))
    })?;
    for include in &file.include {
        let fault = |words: String| located(name, text, at(include)(words));
        let (path, flow_of_it) = match include.as_ref() {
            IncludeText::File(path) => (path, flow.clone()),
            IncludeText::Flow { file, flow } => (file, Some(flow.clone())),
        };
        let path = Path::new(name).parent().unwrap_or(Path::new("")).join(path);
        if open.contains(&path) {
            return Err(fault(format!("{} includes itself", path.display())));
        }
        let included = std::fs::read_to_string(&path)
            .map_err(|error| fault(format!("{} cannot be read: {error}", path.display())))?;
        let shown = path.display().to_string();
        open.push(path);
        read(&shown, &included, flow_of_it, open, files)?;
        open.pop();
    }
    files.push(SourceFile { name: name.to_owned(), text: text.to_owned(), file, flow });
    Ok(())
}

/// Puts files together, of which the last one includes the others.
fn assembled(mut files: Vec<SourceFile>) -> Result<Scenario, String> {
    if let Some(main) = files.last().filter(|_| files.iter().all(|file| file.file.step.is_empty()))
    {
        let words = "found no step, expected at least one [[step]]".to_owned();
        return Err(main.located((0..0, words)));
    }
    let mut feeds = Vec::new();
    let mut variables = Vec::new();
    for file in &mut files {
        let known = std::mem::take(&mut file.file.variables);
        let read = add_variables(known, &mut variables)
            .and_then(|()| add_feeds(file, &mut feeds, &mut variables));
        read.map_err(|fault| file.located(fault))?;
    }
    for file in &files {
        add_captured(file, &mut variables).map_err(|fault| file.located(fault))?;
    }
    let Some((main, included)) = files.split_last() else { return Err("no file".to_owned()) };
    if let Some(other) = included.iter().find(|file| !file.file.flows.is_empty()) {
        let words =
            format!("found [flows], which only {} may have: it includes this file", main.name);
        return Err(other.located((0..0, words)));
    }
    let flows: Vec<Flow> = main
        .file
        .flows
        .iter()
        .map(|(name, weight)| Flow { name: name.clone(), weight: u64::from(*weight.as_ref()) })
        .collect();
    for file in &files {
        for include in &file.file.include {
            if let IncludeText::Flow { flow: name, .. } = include.as_ref() {
                flow(name, &flows).map_err(|words| file.located(at(include)(words)))?;
            }
        }
    }
    let metrics = metrics(&main.file.metrics).map_err(|fault| main.located(fault))?;
    let (name, shown) = (main.file.name.clone(), main.name.clone());
    let cookies = files.iter().any(|file| file.file.cookies);
    let redirects = files.iter().map(|file| file.file.redirects).max().unwrap_or(0);
    let weights: Vec<_> = main.file.flows.values().map(Spanned::span).collect();
    let (mut setup, mut steps, mut teardown) = (Vec::new(), Vec::new(), Vec::new());
    for file in &mut files {
        let File { setup: before, step, teardown: after, .. } = &mut file.file;
        let texts = [before, step, after].map(std::mem::take);
        let flow = file.flow.as_ref();
        let flow = flow.and_then(|name| flows.iter().position(|flow| flow.name == *name));
        let context = Context { variables: &variables, flows: &flows, flow, folder: file.folder() };
        for (texts, into) in texts.into_iter().zip([&mut setup, &mut steps, &mut teardown]) {
            for text in texts {
                let place = text.span();
                let step = text.into_inner().step(|words| (place, words), &context);
                into.push(step.map_err(|fault| file.located(fault))?);
            }
        }
    }
    let scenario = Scenario {
        name: name.unwrap_or(shown),
        variables,
        feeds,
        steps,
        flows,
        setup,
        teardown,
        cookies,
        redirects,
        metrics,
    };
    let main = files.last().ok_or("no file")?;
    for (n, place) in weights.into_iter().enumerate() {
        let Flow { name, weight } = &scenario.flows[n];
        if !scenario.steps.iter().any(|step| step.flow == Some(n)) {
            return Err(main.located((place, format!("the flow {name} has no step"))));
        }
        if *weight == 0 {
            return Err(
                main.located((place, "found a weight of 0, expected at least 1".to_owned()))
            );
        }
    }
    Ok(scenario)
}

fn add_variables(
    texts: BTreeMap<String, Spanned<VariableText>>,
    variables: &mut Vec<Variable>,
) -> Result<(), Fault> {
    for (name, source) in texts {
        check_name(&name).map_err(at(&source))?;
        if variables.iter().any(|known| known.name == name) {
            let words = format!("the variable {name} is in another file too");
            return Err(at(&source)(words));
        }
        let fault = at(&source);
        let source = source_of(source.into_inner()).map_err(fault)?;
        variables.push(Variable { name, source });
    }
    Ok(())
}

/// Reads the feeds of a file, whose columns are variables.
fn add_feeds(
    file: &SourceFile,
    feeds: &mut Vec<Feed>,
    variables: &mut Vec<Variable>,
) -> Result<(), Fault> {
    for (name, text) in &file.file.feeds {
        check_name(name).map_err(at(text))?;
        if feeds.iter().any(|known| known.name == *name) {
            return Err(at(text)(format!("the feed {name} is in another file too")));
        }
        let FeedText { file: path, order, each } = text.as_ref();
        let feed = Feed::read(name, &file.folder().join(path), *order, *each);
        let feed = feed.map_err(at(text))?;
        for (column, title) in feed.columns.iter().enumerate() {
            let source = Source::Column { feed: feeds.len(), column };
            variables.push(Variable { name: format!("{name}.{title}"), source });
        }
        feeds.push(feed);
    }
    Ok(())
}

/// A captured variable can be named anywhere: whether it is there shows when it runs.
fn add_captured(file: &SourceFile, variables: &mut Vec<Variable>) -> Result<(), Fault> {
    for captured in file.all_steps().flat_map(|step| step.as_ref().capture.keys()) {
        let name = captured.as_ref();
        check_name(name).map_err(at(captured))?;
        match variables.iter().find(|known| known.name == *name) {
            None => variables.push(Variable { name: name.clone(), source: Source::Captured }),
            Some(Variable { source: Source::Captured, .. }) => {}
            Some(_) => {
                let message = format!("{name} is among the variables too; capture another name");
                return Err(at(captured)(message));
            }
        }
    }
    Ok(())
}

fn metrics(text: &BTreeMap<Spanned<String>, Spanned<MetricText>>) -> Result<Metrics, Fault> {
    let mut metrics = Metrics::default();
    let (base, overrides): (Vec<_>, Vec<_>) =
        text.iter().partition(|(key, _)| key.as_ref() == "names");
    if let [(_, base)] = base[..] {
        metrics.base = base.as_ref().text();
        Names::built_in(&metrics.base).map_err(at(base))?;
    }
    // Whether the names are good is seen one by one, so that the error has its line.
    for (key, value) in overrides {
        metrics.overrides.push((key.as_ref().clone(), value.as_ref().text()));
        metrics.names(None).map_err(at(key))?;
    }
    Ok(metrics)
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("found the name {name:?}, expected letters, digits and _"));
    }
    Ok(())
}

fn source_of(text: VariableText) -> Result<Source, String> {
    match text {
        VariableText::Text(text) => Ok(Source::Fixed(CapturedValue::text(&text))),
        VariableText::Whole(number) => Ok(Source::Fixed(CapturedValue::number(number))),
        VariableText::Random { random: [from, to] } if from <= to => Ok(Source::Random(from..=to)),
        VariableText::Random { random: [from, to] } => {
            Err(format!("found random = [{from}, {to}], expected the smaller number first"))
        }
        VariableText::Choice { choice } if choice.is_empty() => {
            Err("found an empty choice, expected at least one text".to_owned())
        }
        VariableText::Choice { choice } => Ok(Source::Choice(choice)),
        VariableText::Environment { env, default } => match (std::env::var(&env), default) {
            (Ok(text), _) | (Err(_), Some(text)) => Ok(Source::Fixed(CapturedValue::text(&text))),
            (Err(_), None) => Err(format!(
                "the environment has no {env}; set it, or add a default: {{ env = \"{env}\", default = \"…\" }}"
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hyper::header::CONTENT_TYPE;

    use super::super::{Body, Cursors, Shard, Think};
    use super::*;

    fn step_names(scenario: &Scenario) -> Vec<&str> {
        scenario.steps.iter().map(|step| step.name.as_str()).collect()
    }

    #[test]
    fn the_built_in_scenario_is_the_references() {
        let crud = Scenario::crud();
        assert_eq!(step_names(&crud), ["create", "list", "get", "update", "delete"]);
        let create = &crud.steps[0];
        let body = create.body.as_ref().unwrap().constant();
        assert_eq!(body, Some(r#"{"item":{"value":true}}"#));
        assert_eq!(create.headers[CONTENT_TYPE], "application/json");
        assert_eq!(create.expected.to_string(), "201 Created");
        assert_eq!(create.captures[0].pointer, "/data/id");
    }

    #[test]
    fn the_one_in_the_docs_is_one() {
        let docs = include_str!("../../../../docs/how-to/load.md");
        let text = docs.split("```toml").nth(1).and_then(|rest| rest.split("```").next());
        let scenario = Scenario::parse("docs/how-to/load.md", text.unwrap()).unwrap();
        assert_eq!(step_names(&scenario), ["order", "GET /orders/{order}", "PUT /notes/{order}"]);
        let body = scenario.steps[2].body.as_ref().and_then(Body::constant);
        assert_eq!(body, Some("as text, {not a variable}"));
    }

    #[test]
    fn a_step_has_all_that_a_request_can_have() {
        let text = r#"
            name = "shop"
            [variables]
            tenant = "acme"
            many = { random = [2, 2] }
            [[step]]
            method = "POST"
            path = "/orders?tenant={tenant}"
            headers = { "X-Tenant" = "{tenant}", Accept = "application/json" }
            json = { count = "{many}", note = "for {tenant}", tags = ["a", 1, true], n = { x = 1.5 } }
            expect = [200, 201]
            think = ["50ms", "1s"]
            capture = { order = "/id" }
            [[step]]
            name = "look"
            method = "GET"
            path = "/orders/{order}"
        "#;
        let scenario = Scenario::parse("shop.toml", text).unwrap();
        assert_eq!(scenario.name, "shop");
        let step = &scenario.steps[0];
        assert_eq!(step.name, "POST /orders?tenant={tenant}");
        let mut values = scenario.values(1);
        scenario.begin(&mut values, &Cursors::new(&[], Shard::ALL)).unwrap();
        let filled = |template: &Template| {
            let mut text = String::new();
            template.fill(&values, &mut text).map(|()| text)
        };
        assert_eq!(filled(&step.path).unwrap(), "/orders?tenant=acme");
        let body = step.body.as_ref().unwrap().filled(&values).unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!({
            "count": 2, "note": "for acme", "tags": ["a", 1, true], "n": {"x": 1.5}
        });
        assert_eq!(body, expected);
        assert_eq!(step.headers["accept"], "application/json");
        assert_eq!(filled(&step.filled_headers[0].1).unwrap(), "acme");
        assert_eq!(step.expected.to_string(), "200 OK or 201 Created");
        assert_eq!(
            step.think,
            Some(Think::Between(Duration::from_millis(50)..=Duration::from_secs(1)))
        );
        assert!(filled(&scenario.steps[1].path).is_err(), "nothing is captured yet");
        assert_eq!(scenario.steps[1].expected, ExpectedStatus::AnySuccess);
    }

    /// In each text `STEP` stands for the two lines of a step that asks for nothing more.
    #[test]
    fn an_error_has_its_line_and_the_expected_text() {
        for (text, line, message) in [
            ("name = 'x'\n", 1, "found no step, expected at least one [[step]]"),
            ("[[step]]\nmethod = 'GTE'", 2, "found the method \"GTE\", expected one such as GET"),
            ("STEP\nflow = 'x'", 3, "expected one of the table [flows], which has: none"),
            ("STEP\n[flows]\nx = 1", 4, "the flow x has no step"),
            ("STEP\nflow = 'x'\n[flows]\nx = 0", 5, "expected at least 1"),
            ("STEP\nevents = 0", 3, "expected at least 1"),
            ("STEP\ncheck = { size = [2, 1] }", 3, "the smaller one"),
            ("STEP\ncheck = { json = { x = 1 } }", 3, "a JSON pointer such as"),
            ("STEP\ncheck = { json = { '/x' = [1] } }", 3, "expected a text, a number"),
            ("STEP\ncheck = { contain = 'x' }", 3, "expected one of `headers`, `contains`"),
            ("STEP\nmeasure = { x = 'y' }", 3, "a JSON pointer such as"),
            ("STEP\nbody_file = 'none'", 3, "none cannot be read"),
            ("STEP\nmultipart = { a = { file = 'none' } }", 3, "none cannot be read"),
            ("STEP\nthink = { mean = 'x' }", 3, "expected a duration such as"),
            ("include = ['none.toml']\nSTEP", 1, "none.toml cannot be read"),
            ("include = ['x.toml']\nSTEP", 1, "x.toml includes itself"),
            ("[feeds.a]\nfile = 'none.csv'\nSTEP", 1, "none.csv cannot be read"),
            ("[feeds.a]\nfile = 'a'\norder = 'twice'\nSTEP", 3, "expected one of `cycle`"),
            ("[variables]\na = { env = 'TALEA_NO_SUCH' }\nSTEP", 2, "has no TALEA_NO_SUCH; set it"),
            ("[[step]]\nmethod = 'get'", 2, "found the method \"get\", expected one such as GET"),
            ("[[step]]\npath = '/'", 1, "found no method, expected one such as method = \"GET\""),
            ("\n\n[[step]\n", 3, "unclosed array table"),
            ("STEP\nstatus = 200", 3, "unknown field `status`, expected one of"),
            ("STEP\npath = 'x'", 3, "expected one that begins with /"),
            ("STEP\npath = '/a b'", 3, "percent-encode"),
            ("STEP\npath = '/{'", 3, "a single brace"),
            ("STEP\nexpect = 700", 3, "expected 100 to 599"),
            ("STEP\nexpect = 'ok'", 3, "expected a status such as 200"),
            ("STEP\nthink = '1'", 3, "expected a duration such as"),
            ("STEP\nthink = ['2s', '1s']", 3, "the shorter one"),
            ("STEP\nbody = ''\njson = 1", 3, "expected one of json"),
            ("STEP\nheaders = { 'a b' = '' }", 3, "expected a valid one"),
            ("STEP\nheaders = { a = \"\\n\" }", 3, "which is not valid in a header"),
            ("STEP\ncapture = { id = 'data' }", 3, "a JSON pointer such as"),
            ("STEP\njson = { a = '{b}' }", 3, "known are: none"),
            ("[variables]\na = { random = [2, 1] }", 1, "found no step"),
            ("[variables]\na = { random = [2, 1] }\nSTEP", 2, "smaller number"),
            ("[variables]\na = { choice = [] }\nSTEP", 2, "at least one text"),
            ("[variables]\na = { choice = ['b'], c = 1 }\nSTEP", 2, "{ choice = [TEXT, …] }"),
            ("[variables]\na = 1.5\nSTEP", 2, "expected a text, a whole number"),
            ("[variables]\n'a-b' = 1\nSTEP", 2, "letters, digits and _"),
            ("[variables]\na = 1\nSTEP\npath = '/{idd}'", 5, "nor captured; known are: a"),
            ("[variables]\nid = 1\nSTEP\ncapture = { id = '/id' }", 5, "capture another name"),
            ("STEP\n[metrics]\nnames = 'x'", 4, "expected one of talea"),
            ("STEP\n[metrics]\nrequets = 'x'", 4, "one of requests"),
            ("STEP\n[metrics]\ntasks = 'a b'", 4, "expected a name"),
            ("STEP\n[metrics]\ntasks = 7", 4, "expected a text, or true or false"),
            ("STEP\n[metrics]\ncounts_scrapes = 'x'", 4, "expected true or false"),
            ("STEP\n[metrics]\nrequests = true\nx = 1", 5, "expected"),
        ] {
            let text = text.replace("STEP", "[[step]]\nmethod = 'GET'");
            let error = Scenario::parse("x.toml", &text).unwrap_err();
            assert!(error.starts_with(&format!("x.toml:{line}: ")), "{text}: {error}");
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn files_are_included_with_their_variables_feeds_and_flows() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir_all(folder.path().join("parts")).unwrap();
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        write("parts/users.csv", "name\nann\n");
        write(
            "parts/login.toml",
            "[feeds.users]\nfile = 'users.csv'\n[[step]]\nname = 'login'\nmethod = 'POST'",
        );
        write("buy.toml", "[[step]]\nname = 'buy'\nmethod = 'POST'\npath = '/{a}?by={users.name}'");
        let main = "
            include = ['parts/login.toml', { file = 'buy.toml', flow = 'buy' }]
            [variables]
            a = { env = 'TALEA_NO_SUCH', default = 'x' }
            [flows]
            browse = 9
            buy = 1
            [[setup]]
            method = 'PUT'
            [[step]]
            name = 'browse'
            flow = 'browse'
            method = 'GET'";
        let name = folder.path().join("main.toml").display().to_string();
        let scenario = Scenario::parse(&name, main).unwrap();
        assert_eq!(step_names(&scenario), ["login", "buy", "browse"]);
        let of_flow = |flow| -> Vec<&str> {
            scenario.steps_of(Some(flow)).map(|(_, step)| step.name.as_str()).collect()
        };
        assert_eq!((of_flow(0), of_flow(1)), (vec!["login", "browse"], vec!["login", "buy"]));
        assert_eq!((scenario.setup.len(), scenario.requests_of_iteration()), (1, Some(2)));
        let mut values = scenario.values(1);
        scenario.begin(&mut values, &Cursors::new(&scenario.feeds, Shard::ALL)).unwrap();
        let mut path = String::new();
        scenario.steps[1].path.fill(&values, &mut path).unwrap();
        assert_eq!(path, "/x?by=ann");
        let drawn = (0..10_000).filter(|_| scenario.flow(values.random()) == Some(0)).count();
        assert!((8_800..9_200).contains(&drawn), "{drawn}");
        // An error in an included file has its name and line.
        write("buy.toml", "[[step]]\nmethod = 'GTE'");
        let error = Scenario::parse(&name, main).unwrap_err();
        assert!(error.contains("buy.toml:2: found the method"), "{error}");
        write("buy.toml", "include = ['main.toml']\n[[step]]\nmethod = 'GET'");
        write("main.toml", main);
        let error = Scenario::parse(&name, main).unwrap_err();
        assert!(error.contains("main.toml includes itself"), "{error}");
    }
}

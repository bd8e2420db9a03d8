//! Rules that keep, drop and change series before they are sent. Source: Prometheus' `model/relabel`.

use std::collections::{BTreeMap, HashSet};

use regex::Regex;
use talea_page::{Family, Label, Series};

use crate::error::Error;

const NAME: &str = "__name__";

/// A rule on the labels of each series, as one of Prometheus' `write_relabel_configs`. The name of a series is its
/// label `__name__`.
///
/// ```
/// use talea_push::{Action, Rule};
///
/// let without_debug = Rule::new(Action::Drop).source_labels(["__name__"]).regex("debug_.*")?;
/// let short = Rule::new(Action::Replace)
///     .source_labels(["host"])
///     .regex(r"([^.]+)\..*")?
///     .target_label("host")
///     .replacement("$1");
/// # Ok::<(), talea_push::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rule {
    action: Action,
    source_labels: Vec<String>,
    separator: String,
    pattern: String,
    regex: Regex,
    target_label: String,
    replacement: String,
}

/// What a [`Rule`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// If the regex matches the source labels, sets the target label to the replacement. A label that becomes empty
    /// goes.
    Replace,
    /// Drops series whose source labels the regex does not match.
    Keep,
    /// Drops series whose source labels the regex matches.
    Drop,
    /// Copies each label whose name the regex matches to the name that is the replacement.
    LabelMap,
    /// Removes labels whose name the regex matches.
    LabelDrop,
    /// Removes labels whose name the regex does not match.
    LabelKeep,
}

impl Rule {
    /// A rule with Prometheus' defaults: the regex `(.*)`, the replacement `$1`, the separator `;`.
    pub fn new(action: Action) -> Self {
        const ALL: &str = "(.*)";
        let regex = compiled(ALL).expect("the default is a regular expression");
        Self {
            action,
            source_labels: Vec::new(),
            separator: ";".to_owned(),
            pattern: ALL.to_owned(),
            regex,
            target_label: String::new(),
            replacement: "$1".to_owned(),
        }
    }

    /// The labels whose values are joined and matched. Default: no label, whose value is empty.
    #[must_use]
    pub fn source_labels<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.source_labels = names.into_iter().map(Into::into).collect();
        self
    }

    /// What stands between the values of source labels. Default: `;`.
    #[must_use]
    pub fn separator(mut self, separator: impl Into<String>) -> Self {
        self.separator = separator.into();
        self
    }

    /// A regular expression, which matches the whole text or not at all. Default: `(.*)`. It has the syntax that
    /// Prometheus has, RE2's, but for `\Q`, `\C` and octal numbers.
    ///
    /// # Errors
    /// It is no regular expression.
    pub fn regex(mut self, regex: &str) -> Result<Self, Error> {
        self.regex = compiled(regex)
            .map_err(|error| Error::Rule(format!("{regex:?} is no regular expression: {error}")))?;
        self.pattern = regex.to_owned();
        Ok(self)
    }

    /// The label that [`Action::Replace`] sets; `$1` and the like stand for groups.
    #[must_use]
    pub fn target_label(mut self, name: impl Into<String>) -> Self {
        self.target_label = name.into();
        self
    }

    /// The new value of the target label, or the new name of a label; `$1` and the like stand for groups.
    /// Default: `$1`.
    #[must_use]
    pub fn replacement(mut self, replacement: impl Into<String>) -> Self {
        self.replacement = replacement.into();
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { action, source_labels, target_label, .. } = self;
        let found = match action {
            Action::Replace if target_label.is_empty() => "replace without target_label",
            Action::Keep | Action::Drop if source_labels.is_empty() => {
                "keep or drop without source_labels, which does the same with all series"
            }
            Action::LabelMap | Action::LabelDrop | Action::LabelKeep
                if !source_labels.is_empty() =>
            {
                "source_labels for labelmap, labeldrop or labelkeep, which look at the names of all labels"
            }
            _ => return Ok(()),
        };
        Err(Error::Rule(format!("found {found}")))
    }

    /// Changes the labels of a series; whether the series stays.
    fn apply(&self, labels: &mut BTreeMap<String, String>) -> bool {
        match self.action {
            Action::Keep => return self.regex.is_match(&self.source(labels)),
            Action::Drop => return !self.regex.is_match(&self.source(labels)),
            Action::Replace => {
                if let Some(captures) = self.regex.captures(&self.source(labels)) {
                    let (mut target, mut value) = (String::new(), String::new());
                    captures.expand(&self.target_label, &mut target);
                    captures.expand(&self.replacement, &mut value);
                    set(labels, target, value);
                }
            }
            Action::LabelMap => {
                for (name, value) in labels.clone() {
                    if let Some(captures) = self.regex.captures(&name) {
                        let mut new = String::new();
                        captures.expand(&self.replacement, &mut new);
                        set(labels, new, value);
                    }
                }
            }
            Action::LabelDrop => labels.retain(|name, _| !self.regex.is_match(name)),
            Action::LabelKeep => labels.retain(|name, _| self.regex.is_match(name)),
        }
        true
    }

    fn parts(&self) -> (Action, &[String], [&str; 4]) {
        let Self { action, source_labels, separator, pattern, target_label, replacement, .. } =
            self;
        (*action, source_labels, [separator, pattern, target_label, replacement])
    }

    fn source(&self, labels: &BTreeMap<String, String>) -> String {
        let mut joined = String::new();
        for (n, name) in self.source_labels.iter().enumerate() {
            if n > 0 {
                joined += &self.separator;
            }
            joined += labels.get(name).map_or("", String::as_str);
        }
        joined
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

fn set(labels: &mut BTreeMap<String, String>, name: String, value: String) {
    if value.is_empty() {
        labels.remove(&name);
    } else if !name.is_empty() {
        labels.insert(name, value);
    }
}

/// The labels that rules make of those of a series, by name; `None` if they drop it or take its name.
pub(crate) fn relabelled(rules: &[Rule], labels: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
    let mut labels: BTreeMap<String, String> =
        labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let stays = rules.iter().all(|rule| rule.apply(&mut labels));
    (stays && labels.contains_key(NAME)).then(|| labels.into_iter().collect())
}

/// Changes the families of a page by rules, where a histogram or summary is one series by the name of its family.
pub(crate) struct Relabelling<'a> {
    rules: &'a [Rule],
    /// The labels of all series so far.
    known: HashSet<Vec<(String, String)>>,
    /// The series that are left out, since another became the same.
    pub(crate) twice: Twice,
}

impl<'a> Relabelling<'a> {
    pub(crate) fn new(rules: &'a [Rule]) -> Self {
        Self { rules, known: HashSet::new(), twice: Twice::default() }
    }

    /// What becomes of a family: one for each name that its series have then.
    pub(crate) fn family(&mut self, family: Family) -> Vec<Family> {
        if self.rules.is_empty() {
            return vec![family];
        }
        let mut by_name: BTreeMap<String, Vec<Series>> = BTreeMap::new();
        for mut series in family.series {
            let mut labels = vec![(NAME, &*family.name)];
            labels.extend(series.labels.iter().map(|label| (&*label.name, &*label.value)));
            let Some(labels) = relabelled(self.rules, &labels) else { continue };
            if self.known.contains(&labels) {
                self.twice.note(labels.iter().map(|(name, value)| (&**name, &**value)));
                continue;
            }
            self.known.insert(labels.clone());
            series.labels.clear();
            let mut own = String::new();
            for (name, value) in labels {
                match &*name {
                    NAME => own = value,
                    _ => series.labels.push(Label::new(name, value)),
                }
            }
            by_name.entry(own).or_default().push(series);
        }
        let families = by_name.into_iter().map(|(name, series)| Family {
            name,
            series,
            help: family.help.clone(),
            unit: family.unit.clone(),
            kind: family.kind,
        });
        families.collect()
    }
}

/// Series that are left out, since a page has another of the same labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Twice {
    pub(crate) count: u64,
    /// The first of them.
    pub(crate) first: String,
}

impl Twice {
    /// Notes one by its labels.
    pub(crate) fn note<'a>(&mut self, labels: impl Iterator<Item = (&'a str, &'a str)>) {
        if self.count == 0 {
            let (names, others): (Vec<_>, Vec<_>) = labels.partition(|(name, _)| *name == NAME);
            let name = names.first().map_or("", |(_, value)| value);
            let others: Vec<String> =
                others.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
            self.first = format!("{name}{{{}}}", others.join(","));
        }
        self.count += 1;
    }
}

/// A regular expression that matches all of a text.
fn compiled(pattern: &str) -> Result<Regex, String> {
    let pattern = in_syntax_of_regex(pattern);
    // By itself first: parentheses may close what is around it.
    let compiled = Regex::new(&pattern).and_then(|_| Regex::new(&format!("^(?s:{pattern})$")));
    compiled.map_err(|error| {
        let text = error.to_string();
        text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
    })
}

/// A pattern of RE2 as the crate `regex` has it: there, classes such as `\d` have all of Unicode, `\<` and `\>` are the
/// bounds of words, and brackets within brackets, `&&` and `~~` have a meaning.
fn in_syntax_of_regex(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let mut is_in_class = false;
    while let Some(next) = rest.next() {
        match next {
            '\\' => match rest.next() {
                Some(letter @ ('d' | 'w' | 's')) if is_in_class => out += ascii(letter),
                Some(letter @ ('d' | 'w' | 's')) => out.extend(["[", ascii(letter), "]"]),
                Some(letter @ ('D' | 'W' | 'S')) => {
                    out.extend(["[^", ascii(letter.to_ascii_lowercase()), "]"])
                }
                Some('b') => out += r"(?-u:\b)",
                Some(bracket @ ('<' | '>')) => out.push(bracket),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' if !is_in_class => {
                is_in_class = true;
                out.push('[');
                out.extend(rest.next_if_eq(&'^'));
                // Stands for itself at the begin.
                out.extend(rest.next_if_eq(&']'));
            }
            '[' if rest.peek() == Some(&':') => {
                out.push('[');
                // Up to `:]`.
                for of_name in rest.by_ref() {
                    out.push(of_name);
                    if of_name == ']' {
                        break;
                    }
                }
            }
            '[' | '&' | '~' if is_in_class => out.extend(['\\', next]),
            ']' if is_in_class => {
                is_in_class = false;
                out.push(']');
            }
            _ => out.push(next),
        }
    }
    out
}

/// The characters of a class of RE2, within brackets.
fn ascii(letter: char) -> &'static str {
    match letter {
        'd' => "0-9",
        'w' => "0-9A-Za-z_",
        _ => r"\t\n\x0C\r\x20",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_expression_means_what_it_means_to_prometheus() {
        for (pattern, matching, others) in [
            ("a|b", &["a", "b"][..], &["ab", "xa", "a\n", ""][..]),
            ("a.c", &["abc", "aéc", "a\nc"], &["ac", "abbc"]),
            (r"\d+", &["7", "10"], &["٣", "x", ""]),
            (r"[\d_]+", &["7_1"], &["٣"]),
            (r"[^\W]+", &["a_1"], &["é", "-"]),
            (r"\D", &["x", "٣"], &["7"]),
            (r"a\s", &["a\t", "a "], &["a\u{a0}", "a"]),
            (r"\<a\>", &["<a>"], &["a"]),
            ("[[a&&b~~]+", &["[", "a&b~"], &["c"]),
            ("[]a]+", &["]a"], &["b"]),
            ("[^]a]+", &["b"], &["]"]),
            ("[[:alpha:]&]+", &["ab&"], &["é", "1", ":"]),
            (r"(?i)post", &["POST", "Post"], &["PUT"]),
            (r".*\bb\b.*", &["a b", "éb"], &["ab"]),
        ] {
            let regex = compiled(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            for text in matching {
                assert!(regex.is_match(text), "{pattern} does not match {text:?}");
            }
            for text in others {
                assert!(!regex.is_match(text), "{pattern} matches {text:?}");
            }
        }
        for pattern in ["(", "a)(b", "[a", "*", r"\y", "(?=a)"] {
            let error = Rule::new(Action::Keep).regex(pattern).unwrap_err().to_string();
            assert!(error.contains(&format!("{pattern:?}")) && !error.contains('\n'), "{error}");
        }
    }
}

//! Variants of a service: environment variables, command lines, or URLs.

use std::path::PathBuf;

use anyhow::{Result, bail};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// The URLs of a service that runs already: of its requests, and of its metrics.
    Urls(String, Option<String>),
    Started {
        environment: Vec<(String, String)>,
        /// The program; none is the one that is studied otherwise.
        program: Option<PathBuf>,
        arguments: Vec<String>,
    },
}

impl Variant {
    /// `NAME=VALUE … [PROGRAM] [ARGUMENT …]`, quoted as in a shell, or `URL [METRICS-URL]`.
    /// Fails when a quote is not closed, or there is nothing.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let Some(words) = shlex::split(text) else {
            bail!("--ab {text:?}: a quote is not closed");
        };
        let is_url = |word: &String| word.starts_with("http://") || word.starts_with("https://");
        match &words[..] {
            [] => bail!(
                "--ab found an empty variant, expected NAME=VALUE, a command line or a URL; the \
                 service as it is: 'TALEA_VARIANT=0'"
            ),
            [url] if is_url(url) => return Ok(Self::Urls(url.clone(), None)),
            [url, metrics] if is_url(url) && is_url(metrics) => {
                return Ok(Self::Urls(url.clone(), Some(metrics.clone())));
            }
            [url, ..] if is_url(url) => {
                bail!("--ab {text:?}: only the URL of its metrics may follow a URL")
            }
            _ => {}
        }
        let mut words = words.into_iter().peekable();
        let mut environment = Vec::new();
        while let Some((name, value)) = words.peek().and_then(|word| assignment(word)) {
            environment.push((name.to_owned(), value.to_owned()));
            words.next();
        }
        let program = words.next_if(|word| !word.starts_with('-')).map(PathBuf::from);
        Ok(Self::Started { environment, program, arguments: words.collect() })
    }
}

/// `NAME=VALUE`.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let named =
        !name.is_empty() && name.chars().all(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (named && !name.starts_with(|c: char| c.is_ascii_digit())).then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(text: &str) -> (Vec<(String, String)>, Option<PathBuf>, Vec<String>) {
        match Variant::parse(text).unwrap() {
            Variant::Started { environment, program, arguments } => {
                (environment, program, arguments)
            }
            urls => panic!("{urls:?}"),
        }
    }

    #[test]
    fn a_variant_is_what_a_shell_would_start() {
        let (environment, program, arguments) =
            started("A=1 B='two words' ./service --flag=x 'an argument' C=3");
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(environment, [set("A", "1"), set("B", "two words")]);
        assert_eq!(program, Some("./service".into()));
        assert_eq!(arguments, ["--flag=x", "an argument", "C=3"]);
    }

    #[test]
    fn without_a_program_it_is_the_usual_one() {
        assert_eq!(started("A=1").1, None);
        assert_eq!(started("--pool 5").2, ["--pool", "5"]);
        assert_eq!(started("--pool 5").1, None);
    }

    #[test]
    fn a_variant_is_a_url() {
        let url = |text: &str| Variant::parse(text).unwrap();
        assert_eq!(url("http://a/items"), Variant::Urls("http://a/items".to_owned(), None));
        let metrics = Some("http://a/metrics".to_owned());
        assert_eq!(
            url("http://a/items http://a/metrics"),
            Variant::Urls("http://a/items".to_owned(), metrics)
        );
        assert!(Variant::parse("http://a/items --pool").is_err());
    }

    #[test]
    fn a_text_that_is_no_variant_is_refused() {
        assert!(Variant::parse("").unwrap_err().to_string().contains("an empty variant"));
        assert!(Variant::parse("A='x").unwrap_err().to_string().contains("not closed"));
    }
}

//! From the labels of a series to the endpoint that it belongs to.

use talea_page::Label;

/// The labels of endpoints and responses, in the conventions that services use.
const METHODS: [&str; 3] = ["method", "http_method", "http_request_method"];
const ROUTES: [&str; 7] = ["route", "http_route", "endpoint", "handler", "path", "uri", "url"];
const STATUSES: [&str; 5] =
    ["status", "code", "status_code", "http_status_code", "http_response_status_code"];
/// The label that says how a request ended.
const OUTCOME: &str = "outcome";
/// Further labels that do not distinguish endpoints.
const OTHERS: [&str; 6] = [
    "le",
    OUTCOME,
    "error_type",
    "url_scheme",
    "network_protocol_name",
    "network_protocol_version",
];

fn is_one_of(names: &[&str], label: &Label) -> bool {
    names.contains(&label.name.as_str())
}

/// The name of the endpoint that a series belongs to: its method, its route, and the values of its
/// other labels, by their names.
pub fn endpoint_of(labels: &[Label]) -> String {
    let mut of_it: Vec<&Label> = labels
        .iter()
        .filter(|label| !is_one_of(&STATUSES, label) && !is_one_of(&OTHERS, label))
        .collect();
    of_it.sort_by_key(|label| (place(label), label.name.as_str()));
    let values: Vec<&str> = of_it.iter().map(|label| label.value.as_str()).collect();
    match values[..] {
        [] => "all".to_owned(),
        _ => values.join(" "),
    }
}

fn place(label: &Label) -> u8 {
    match label {
        label if is_one_of(&METHODS, label) => 0,
        label if is_one_of(&ROUTES, label) => 1,
        _ => 2,
    }
}

/// Whether a series is of one endpoint, or of those of one method.
pub fn is_of_endpoint(labels: &[Label]) -> bool {
    labels.iter().any(|label| is_one_of(&METHODS, label) || is_one_of(&ROUTES, label))
}

/// The status of the responses that a series is of, such as `503` or `5xx`.
pub fn status_of(labels: &[Label]) -> Option<&str> {
    labels.iter().find(|label| is_one_of(&STATUSES, label)).map(|label| label.value.as_str())
}

/// How the requests ended that a series is of, such as `aborted`.
pub fn outcome_of(labels: &[Label]) -> Option<&str> {
    labels.iter().find(|label| label.name == OUTCOME).map(|label| label.value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_the_same_in_whatever_order_labels_are() {
        let labels = |pairs: &[(&str, &str)]| -> Vec<Label> {
            pairs
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .map(|(name, value)| Label { name, value })
                .collect()
        };
        for pairs in [
            [("handler", "/a"), ("status", "2xx"), ("method", "GET"), ("region", "shop")],
            [("region", "shop"), ("method", "GET"), ("status", "2xx"), ("handler", "/a")],
        ] {
            let labels = labels(&pairs);
            assert_eq!(endpoint_of(&labels), "GET /a shop");
            assert_eq!(status_of(&labels), Some("2xx"));
            assert!(is_of_endpoint(&labels));
        }
        let only = labels(&[("code", "200")]);
        assert!(endpoint_of(&only) == "all" && !is_of_endpoint(&only));
    }
}

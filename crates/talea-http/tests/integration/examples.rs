//! The examples meter their services.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::client;

/// An example that runs until it is dropped, and the two addresses that it prints.
struct Example {
    process: Child,
    service: String,
    metrics: String,
}

impl Example {
    fn start(name: &str) -> Self {
        // Beside the folder of this test's own program.
        let own = std::env::current_exe().unwrap();
        let path = own.ancestors().nth(2).unwrap().join("examples").join(name);
        let mut process =
            Command::new(&path).args(["0", "0"]).stdout(Stdio::piped()).spawn().unwrap_or_else(
                |error| panic!("{}: {error}; `cargo build --examples` makes it", path.display()),
            );
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut line = || lines.next().unwrap().unwrap();
        Self { service: line(), metrics: line(), process }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn get(url: &str) -> client::ClientResponse {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    client::get(host.parse().unwrap(), &format!("/{path}"), &[]).await
}

#[tokio::test]
async fn the_services_of_the_examples_are_metered() {
    for name in ["axum_new", "axum_existing", "hyper"] {
        let example = Example::start(name);
        for _ in 0..3 {
            assert_eq!(get(&example.service).await.text(), "Hello, you!\n", "{name}");
        }
        assert_eq!(get(&example.service.replace("hello", "nowhere")).await.status, 404);
        let metrics = get(&example.metrics).await;
        for line in [
            r#"http_requests_total{method="GET",route="/hello/{name}",status="2xx"} 3"#,
            r#"http_requests_total{method="_OTHER",route="_unmatched",status="4xx"} 1"#,
            r#"http_request_outcomes_total{method="GET",route="/hello/{name}",outcome="complete"} 3"#,
            r#"http_requests_in_flight{method="GET",route="/hello/{name}"} 0"#,
        ] {
            assert!(metrics.text().contains(line), "{line} is not in\n{}", metrics.text());
        }
    }
}

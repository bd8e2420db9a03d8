//! Claims about the files of `contrib`: that the linters which others wrote have no
//! complaint, and that those of the agent fit each other. No container is run, nor systemd.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Yaml;
use stage::{contrib as text, python_program, repository};
use tempfile::TempDir;

/// The highest exposure that `systemd-analyze security` may report, of 100. Debian 12's
/// reports 11; other versions weigh a little differently.
const EXPOSURE: &str = "15";

/// A program and its arguments before the file.
type Linter = &'static [&'static str];

const HADOLINT: Linter = &["hadolint", "--failure-threshold", "style"];
/// Of the first version that has sidecars without being asked, as the file says.
const KUBERNETES: Linter = &["kubernetes-validate", "--strict", "--kubernetes-version", "1.29"];
const SYSTEMD_SECURITY: Linter =
    &["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold", EXPOSURE];
const SYSTEMD_VERIFY: Linter = &["systemd-analyze", "verify", "--man=no"];
/// Long lines are queries; `# tls` is not indented as what is around it.
const YAMLLINT: Linter = &[
    "yamllint",
    "--strict",
    "--config-data",
    "{extends: default, rules: {line-length: disable, document-start: disable, \
     comments-indentation: disable}}",
];

/// A linter's output for `text` in a file of that name; empty if it has no complaint.
fn complaints(linter: Linter, name: &str, text: &str) -> String {
    let place = TempDir::new().unwrap();
    let file = place.path().join(Path::new(name).file_name().unwrap());
    fs::write(&file, text).unwrap();
    let program = match linter[0] {
        "systemd-analyze" => linter[0].into(),
        of_python => python_program(of_python),
    };
    let mut command = Command::new(program);
    let output =
        command.args(&linter[1..]).arg(&file).output().unwrap_or_else(|error| {
            panic!("{command:?}: {error}; scripts/setup --test installs it")
        });
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success() || !said.is_empty(), "{command:?} failed without a word");
    // That one only warns of keys that it does not know.
    let has_failed = linter == SYSTEMD_VERIFY || !output.status.success();
    if has_failed { said } else { String::new() }
}

/// `text` with `from` replaced, which must be in it.
fn broken(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "there is no {from:?} to break");
    text.replace(from, to)
}

/// The file has no complaint, and a copy with `from` replaced has that which is `expected`.
fn assert_linted(linter: Linter, name: &str, text: &str, [from, to, expected]: [&str; 3]) {
    assert_eq!(complaints(linter, name, text), "", "{name}");
    let said = complaints(linter, name, &broken(text, from, to));
    assert!(said.contains(expected), "{name} with {to:?} in place of {from:?}: {said:?}");
}

/// The unit. It names a program that is not installed here, so another is put in its place.
fn unit() -> String {
    broken(&text("agent/talea-agent.service"), "/usr/local/bin/talea ", "/bin/true ")
}

/// The manifest that serves plain text, and the one with TLS.
fn manifests() -> [String; 2] {
    let plain = text("agent/kubernetes.yaml");
    let tls = broken(&plain, "# tls ", "");
    [plain, tls]
}

#[test]
fn systemd_takes_the_unit_and_each_of_its_lines() {
    let change = ["ProtectHome=yes", "ProtectHouse=yes", "Unknown key 'ProtectHouse'"];
    assert_linted(SYSTEMD_VERIFY, "talea-agent.service", &unit(), change);
    let change = ["ExecStart=/bin/true", "ExecStart=/no/such", "not executable"];
    assert_linted(SYSTEMD_VERIFY, "talea-agent.service", &unit(), change);
}

#[test]
fn the_unit_exposes_little() {
    for (from, to) in [
        ("DynamicUser=yes", "User=root"),
        ("CapabilityBoundingSet=\n", ""),
        ("SystemCallFilter=", "# SystemCallFilter="),
    ] {
        let change = [from, to, "Overall exposure level"];
        assert_linted(SYSTEMD_SECURITY, "talea-agent.service", &unit(), change);
    }
}

#[test]
fn kubernetes_takes_the_manifest_with_tls_and_without() {
    for manifest in manifests() {
        for change in [
            ["runAsNonRoot:", "runAsNobody:", "runAsNobody"],
            ["restartPolicy: Always", "restartPolicy: [Always]", "restartPolicy"],
            ["replicas: 2", "replicas: two", "two"],
        ] {
            assert_linted(KUBERNETES, "kubernetes.yaml", &manifest, change);
        }
        // A wrongly indented line belongs to another parent.
        let [from, to] = ["\n            runAsUser: 10002", "\n          runAsUser: 10002"];
        let moved = broken(&manifest, from, to);
        assert_ne!(complaints(KUBERNETES, "kubernetes.yaml", &moved), "");
    }
}

#[test]
fn kubernetes_takes_the_job_of_a_load_whose_shards_are_all_that_it_says() {
    let job = text("load/job.yaml");
    for change in [
        ["parallelism: 8", "parallelism: eight", "eight"],
        ["completionMode: Indexed", "completionModus: Indexed", "completionModus"],
    ] {
        assert_linted(KUBERNETES, "job.yaml", &job, change);
    }
    // All at once, and none twice.
    for line in ["completions: 8", "parallelism: 8", "--shard=index/8", "backoffLimit: 0"] {
        assert_eq!(job.matches(line).count(), 1, "{line}");
    }
}

#[test]
fn each_yaml_file_says_each_thing_once() {
    let subs = fs::read_dir(repository("contrib")).unwrap();
    let subs = subs.filter_map(|sub| sub.unwrap().file_name().into_string().ok());
    let files: Vec<String> = subs
        .flat_map(|sub| files_in(&sub))
        .filter(|file| file.ends_with(".yaml") || file.ends_with(".yml"))
        .collect();
    for known in ["agent/kubernetes.yaml", "prometheus/rules.yml", "study/compose.yaml"] {
        assert!(files.iter().any(|file| file == known), "{files:?}");
    }
    let texts = files.iter().map(|file| (file.as_str(), text(file)));
    let [_, tls] = manifests();
    for (name, text) in texts.chain([("kubernetes-tls.yaml", tls)]) {
        assert_eq!(complaints(YAMLLINT, name, &text), "", "{name}");
        let said = complaints(YAMLLINT, name, &format!("{text}{text}"));
        assert!(said.contains("duplication of key"), "{name} twice: {said:?}");
    }
}

/// The files in a folder of `contrib`, by their names there.
fn files_in(sub: &str) -> Vec<String> {
    let files = fs::read_dir(repository("contrib").join(sub)).into_iter().flatten();
    let files = files.map(Result::unwrap).filter(|file| file.path().is_file());
    files.map(|file| format!("{sub}/{}", file.file_name().to_string_lossy())).collect()
}

/// The absolute path that one of a file's first lines names: where the file goes.
fn destination(text: &str) -> Option<&str> {
    let words = text.lines().take(4).flat_map(|line| line.split([' ', ':', ',', ';']));
    words
        .map(|word| word.trim_end_matches('.'))
        .find(|word| word.starts_with('/') && word.matches('/').count() > 2)
}

#[test]
fn each_file_for_php_says_where_it_goes_and_the_readme_puts_it_there() {
    assert_eq!(destination("; made for PHP\n// nothing\nlisten 80;\n"), None);
    let readme = text("php/README.md");
    let mut files = [files_in("php"), files_in("php/public")].concat();
    files.retain(|file| !file.ends_with("README.md"));
    assert_eq!(files.len(), 6, "{files:?}");
    for file in files {
        let content = text(&file);
        let place = destination(&content).unwrap_or_else(|| panic!("{file} says no path"));
        let name = file.strip_prefix("php/").unwrap();
        assert!(readme.contains(&format!("| [{name}]({name}) | `{place}` |")), "{file}: {place}");
        // The reader adds Prometheus' job to a file that is there.
        if name != "prometheus.yml" {
            let place = place.replace("/8.2/", "/$version/");
            let put = format!("contrib/{file} {place}\n");
            assert!(readme.replace("\\\n    ", "").contains(&put), "{put}");
        }
    }
}

#[test]
fn hadolint_takes_the_containerfiles() {
    for file in ["agent/Containerfile", "study/Containerfile"] {
        let change = ["WORKDIR /talea", "WORKDIR talea", "DL3000"];
        assert_linted(HADOLINT, file, &text(file), change);
    }
}

#[test]
fn the_unit_leaves_the_agent_what_reading_a_region_takes() {
    let unit = text("agent/talea-agent.service");
    let set = |key| unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    // Where a region is, read only.
    assert_eq!(set("ReadOnlyPaths"), Some("/dev/shm"));
    assert!(set("ExecStart").unwrap().ends_with(" /dev/shm/shop.talea"));
    // /proc/sys/kernel/random/boot_id, and the user whose file it is.
    assert_eq!(set("ProcSubset"), None);
    assert_eq!(set("PrivateUsers"), None);
    assert_eq!(set("PrivateNetwork"), None);
}

fn manifest() -> Yaml {
    serde_saphyr::from_str(&text("agent/kubernetes.yaml")).unwrap()
}

/// The application's container and the agent's.
fn containers(pod: &Yaml) -> [&Yaml; 2] {
    [&pod["containers"][0], &pod["initContainers"][0]]
}

#[test]
fn no_container_has_a_right_that_it_does_not_need() {
    let pod = &manifest()["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for container in containers(pod) {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["capabilities"]["drop"][0], "ALL");
        assert!(context["runAsUser"].as_u64().unwrap() > 0);
        for kind in ["requests", "limits"] {
            assert!(container["resources"][kind]["memory"].is_string(), "{container:?}");
        }
    }
    let [application, agent] = containers(pod).map(|one| &one["securityContext"]["runAsUser"]);
    assert_ne!(application, agent);
}

#[test]
fn the_agent_reads_what_the_application_writes_and_cannot_write_it() {
    let pod = &manifest()["spec"]["template"]["spec"];
    let [application, agent] = containers(pod);
    assert_eq!(agent["restartPolicy"], "Always");
    let arguments: Vec<&str> =
        agent["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let environment = |name: &str| {
        let all = application["env"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap()["value"].as_str().unwrap()
    };
    let region = environment("TALEA_REGION");
    assert_eq!(arguments[0], "serve");
    assert_eq!(arguments[arguments.len() - 1], region);
    let user = application["securityContext"]["runAsUser"].as_u64().unwrap();
    assert!(arguments.contains(&format!("--owner={user}").as_str()), "{arguments:?}");
    let group = pod["securityContext"]["fsGroup"].as_u64().unwrap();
    assert_eq!(environment("TALEA_REGION_GROUP"), group.to_string());

    let volume = &pod["volumes"][0];
    assert_eq!(volume["emptyDir"]["medium"], "Memory");
    assert!(volume["emptyDir"]["sizeLimit"].is_string());
    for (container, read_only) in [(application, None), (agent, Some(true))] {
        let mount = &container["volumeMounts"][0];
        assert_eq!(mount["name"], volume["name"]);
        assert_eq!(mount["mountPath"].as_str(), Path::new(region).parent().unwrap().to_str());
        assert_eq!(mount["readOnly"].as_bool(), read_only);
    }
}

#[test]
fn probes_and_scrapes_go_to_where_the_agent_listens() {
    let template = &manifest()["spec"]["template"];
    let [_, agent] = containers(&template["spec"]);
    let port = &agent["ports"][0];
    let number = port["containerPort"].as_u64().unwrap();
    let listen = format!("--listen=0.0.0.0:{number}");
    assert!(agent["args"].as_array().unwrap().contains(&listen.into()));
    let annotations = &template["metadata"]["annotations"];
    assert_eq!(annotations["prometheus.io/port"], number.to_string());
    assert_eq!(annotations["prometheus.io/path"], "/metrics");
    for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
        assert_eq!(agent[probe]["httpGet"]["path"], path);
        assert_eq!(agent[probe]["httpGet"]["port"], port["name"]);
    }
    // The application would wait for it, and it for the application.
    assert!(agent["startupProbe"].is_null());
}

#[test]
fn the_image_of_the_agent_is_the_agent_alone() {
    let file = text("agent/Containerfile");
    let lines = |start: &str| -> Vec<&str> {
        file.lines().filter_map(|line| line.strip_prefix(start)).collect()
    };
    // The same image builds the study's program, which `study_files` says the age of.
    let study = text("study/Containerfile");
    let builder = study.lines().find(|line| line.starts_with("FROM rust:")).unwrap();
    assert_eq!(lines("FROM "), [builder.strip_prefix("FROM ").unwrap(), "scratch"]);
    let (_, last) = file.split_once("FROM scratch\n").unwrap();
    assert!(!last.contains("RUN "), "there is no shell to run it");

    let pod = &manifest()["spec"]["template"]["spec"];
    let [_, agent] = containers(pod);
    let user = &agent["securityContext"];
    let user = [&user["runAsUser"], &user["runAsGroup"]].map(|id| id.as_u64().unwrap());
    assert_eq!(lines("USER "), [format!("{}:{}", user[0], user[1])]);
    assert_eq!(
        lines("EXPOSE "),
        [agent["ports"][0]["containerPort"].as_u64().unwrap().to_string()]
    );
    let command: Vec<String> = serde_json::from_str(lines("CMD ")[0]).unwrap();
    assert_eq!(command[0], "serve");
    assert!(command.contains(&"0.0.0.0:9465".to_owned()), "{command:?}");
}

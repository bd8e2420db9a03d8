//! The attributes of the resource that this process is, where a library publishes them in its memory: OpenTelemetry's
//! process context. It is read and never published, as a process has one. Source: OTEP 4719.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use prost::Message;

use super::message::{KeyValue, Resource};

/// The names of its mapping, of which a process may have any.
const NAMES: [&str; 3] = ["[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]", "/memfd:OTEL_CTX"];

const MAGIC: &[u8; 8] = b"OTEL_CTX";
const VERSION: u32 = 2;
/// Magic (8), version (4), length of the payload (4), when it was published or 0 (8), address of the payload (8).
const HEADER: usize = 32;

/// Attributes are few and short.
const MOST_PAYLOAD: u32 = 64 << 10;

#[derive(Clone, PartialEq, Message)]
struct ProcessContext {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
}

/// The attributes that the process of a folder of `/proc` publishes. `None` also while they change.
pub(crate) fn attributes(process: &Path) -> Option<Vec<KeyValue>> {
    let maps = fs::read_to_string(process.join("maps")).ok()?;
    let addresses = maps.lines().filter_map(address_of_context);
    let memory = File::open(process.join("mem")).ok()?;
    let mut found = addresses.filter_map(|address| published(&memory, address));
    let mut attributes = found.next()?.attributes;
    // Lists are left out.
    attributes.retain(|attribute| attribute.value.as_ref().is_some_and(|value| !value.is_empty()));
    Some(attributes)
}

/// Where a mapping begins, if it has a name of the context.
fn address_of_context(line: &str) -> Option<u64> {
    let name = line.splitn(6, ' ').nth(5)?.trim_start();
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    let (begin, _) = line.split_once('-')?;
    NAMES.contains(&name).then(|| u64::from_str_radix(begin, 16).ok())?
}

fn published(memory: &File, address: u64) -> Option<Resource> {
    let mut header = [0; HEADER];
    memory.read_exact_at(&mut header, address).ok()?;
    let [version, len] = [8, 12].map(|at| word(&header, at).map(u32::from_ne_bytes));
    let [time, payload] = [16, 24].map(|at| word(&header, at).map(u64::from_ne_bytes));
    let len = len.filter(|len| *len <= MOST_PAYLOAD)?;
    if !header.starts_with(MAGIC) || version != Some(VERSION) || time == Some(0) {
        return None;
    }
    let mut bytes = vec![0; len as usize];
    memory.read_exact_at(&mut bytes, payload?).ok()?;
    let mut again = [0; HEADER];
    memory.read_exact_at(&mut again, address).ok()?;
    // Else it changed meanwhile.
    let is_same = again == header;
    ProcessContext::decode(is_same.then_some(&*bytes)?).ok()?.resource
}

fn word<const LEN: usize>(header: &[u8; HEADER], at: usize) -> Option<[u8; LEN]> {
    header[at..].first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};

    use super::super::message::AnyValue;
    use super::*;

    /// Publishes a context and waits until it is killed. Arguments: what is changed of it, and the payload.
    const PUBLISHER: &str = r#"
import ctypes, mmap, os, struct, sys
what, payload = sys.argv[1], bytes.fromhex(sys.argv[2])
def mapping(name):
    fd = os.memfd_create(name)
    os.ftruncate(fd, 1 << 17)
    memory = mmap.mmap(fd, 1 << 17)
    return memory, ctypes.addressof(ctypes.c_char.from_buffer(memory))
held, address = mapping("payload")
held[:len(payload)] = payload
head, _ = mapping("other" if what == "name" else "OTEL_CTX")
head[:32] = struct.pack("=8sIIQQ",
    b"OTEL_CTY" if what == "magic" else b"OTEL_CTX",
    3 if what == "version" else 2,
    {"long": 1 << 31, "longer": (64 << 10) + 1}.get(what, len(payload)),
    0 if what == "changing" else 7,
    8 if what == "pointer" else address)
print("ready", flush=True)
sys.stdin.read()
"#;

    struct Publisher(Child);

    impl Publisher {
        fn new(what: &str, payload: &[u8]) -> Self {
            let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
            let mut child = Command::new("python3")
                .args(["-c", PUBLISHER, what, &hex])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("python3 runs; scripts/setup --test installs it");
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n");
            Self(child)
        }

        fn attributes(&self) -> Option<Vec<KeyValue>> {
            attributes(&PathBuf::from(format!("/proc/{}", self.0.id())))
        }
    }

    impl Drop for Publisher {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn context() -> Vec<KeyValue> {
        let number = KeyValue {
            key: "process.pid".to_owned(),
            value: Some(AnyValue { int_value: Some(-7), ..AnyValue::default() }),
        };
        vec![KeyValue::new("service.name", "shop"), number]
    }

    #[test]
    fn the_attributes_that_a_process_publishes_are_found() {
        let mut attributes = context();
        // A list, of whose value nothing is known.
        attributes.push(KeyValue { key: "process.command_args".to_owned(), value: None });
        let payload = ProcessContext { resource: Some(Resource { attributes }) }.encode_to_vec();
        assert_eq!(Publisher::new("", &payload).attributes(), Some(context()));
    }

    #[test]
    fn what_is_no_context_or_changes_is_none() {
        let resource = Resource { attributes: context() };
        let payload = ProcessContext { resource: Some(resource) }.encode_to_vec();
        for what in ["name", "magic", "version", "long", "longer", "changing", "pointer"] {
            assert_eq!(Publisher::new(what, &payload).attributes(), None, "{what}");
        }
        assert_eq!(Publisher::new("", &[0xff]).attributes(), None, "no message");
        assert_eq!(attributes(Path::new("/proc/0")), None, "no process");
    }
}

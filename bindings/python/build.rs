//! Passes to the crate whether it is built for a Python without a global interpreter lock.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}

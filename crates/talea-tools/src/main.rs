//! The `talea` program.

fn main() -> std::process::ExitCode {
    talea_tools::main()
}

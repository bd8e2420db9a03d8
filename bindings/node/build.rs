//! Links the addon: its symbols of Node are found when Node loads it.

fn main() {
    napi_build::setup();
}

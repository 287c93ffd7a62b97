#!/bin/sh
# Granary's crate beside foyer: measures for some twenty minutes, and writes docs/studies/crate.md, crate.csv and crate.svg.
# Wants 6 GB under /var/tmp, or the folder given, on a file system that takes O_DIRECT.
set -eu

here=$(dirname "$0")
folder=${1:-/var/tmp}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
cargo run --release --locked --manifest-path "$here/Cargo.toml" -- run --folder "$folder" >"$lines"
python3 "$here/page.py" "$lines"

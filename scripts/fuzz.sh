#!/bin/sh
# Runs each cargo-fuzz target of crates/*/fuzz, or of the folders named, for FUZZ_SECONDS (60).
# They begin with the committed corpus and with what earlier runs added to it, which stays in the
# build folder: the committed corpus is what the tests run on. The first input that fails ends it all;
# it lies in the folder's artifacts/.
set -eu
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz

nightly=$(rustup toolchain list | grep -o '^nightly[^ ]*' | head -n 1) || true
if [ -z "$nightly" ]; then
    echo "No nightly toolchain, which cargo-fuzz needs: rustup toolchain install nightly --profile minimal" >&2
    exit 1
fi
command -v cargo-fuzz >/dev/null || "$cargo" install --locked cargo-fuzz

[ $# -gt 0 ] || set -- crates/*/fuzz
for folder; do
    crate=$(cd "$folder/.." && pwd)
    for target in $(cd "$crate" && "$cargo" "+$nightly" fuzz list); do
        found=$build/corpus/$(basename "$crate")-$target
        mkdir -p "$found"
        printf '\n==> %s: %s\n' "$folder" "$target"
        (cd "$crate" && "$cargo" "+$nightly" fuzz run --target-dir "$build" "$target" \
            "$found" "fuzz/corpus/$target" -- -max_total_time="${FUZZ_SECONDS:-60}" -print_final_stats=1)
    done
done

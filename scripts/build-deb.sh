#!/bin/sh
# Builds the Debian package, and prints where it is. cargo-deb is built first if it is missing.
set -eu
cd "$(dirname "$0")/.."
CARGO="${CARGO:-cargo}"

# Debian's tools compare the versions that are in its own changelog.
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
if ! head -n 1 packaging/changelog | grep -qF "granary ($version-1)"; then
    echo "packaging/changelog does not begin with version $version-1" >&2
    exit 1
fi

command -v cargo-deb >/dev/null || $CARGO install --locked cargo-deb
$CARGO deb --locked -p granary "$@"

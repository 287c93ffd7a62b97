#!/bin/sh
# Fetches memcached's own tests, t/*.t of version 1.6.18, from Debian's source package into target/memcached-1.6.18, for
# crates/granary/tests/memcached_suite. Lists and downloads of apt's are kept apart: nothing on the system changes. What is
# there already is left alone.
set -eu

cd "$(dirname "$0")/.."
version=1.6.18
[ ! -e target/memcached-$version/t ] || exit 0

mkdir -p target
root=$(mktemp -d "$PWD/target/memcached.XXXXXX")
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/parts" "$root/lists/partial" "$root/cache/archives/partial" "$root/source"
# Debian 12 has this version.
cat >"$root/parts/source.sources" <<END
Types: deb-src
URIs: http://deb.debian.org/debian
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
apart="-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$root/parts -o Dir::State::lists=$root/lists
    -o Dir::Cache=$root/cache -o APT::Sandbox::User=root"
# shellcheck disable=SC2086 # one word for each option
apt-get $apart update
cd "$root/source"
# shellcheck disable=SC2086
apt-get $apart source --download-only --only-source "memcached=$version-1"
# Its programs are not built, so Debian's changes do not matter.
tar -xf memcached_$version.orig.tar.*z
mv "memcached-$version" "$root/../memcached-$version"

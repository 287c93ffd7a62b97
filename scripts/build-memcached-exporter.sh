#!/bin/sh
# Builds Prometheus' memcached_exporter from its Go module, with the Go that is there (1.21 or later), for
# crates/granary/tests/memcached_suite: nothing but the program stays, in target/memcached_exporter.
set -eu

cd "$(dirname "$0")/.."
version=v0.14.3
[ ! -x target/memcached_exporter ] || exit 0

mkdir -p target
root=$(mktemp -d "$PWD/target/exporter.XXXXXX")
trap 'rm -rf "$root"' EXIT
export GOPATH="$root/go" GOCACHE="$root/cache" GOFLAGS=-modcacherw GOTOOLCHAIN=auto CGO_ENABLED=0
cd "$root"
go mod download -json github.com/prometheus/memcached_exporter@$version >module.json
cp -r "$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' module.json | grep .)" source
cd source
go build -trimpath -ldflags=-s -o ../../memcached_exporter ./cmd/memcached_exporter

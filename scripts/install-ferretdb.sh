#!/bin/sh
# Installs FerretDB, which speaks MongoDB's protocol over PostgreSQL, for the tests of SOURCE(MONGODB(..)): Debian has
# neither of the two. It is built from its Go module, with the Go that is there or else with one of the Go module proxy,
# which Debian's own, too old for the rest, can fetch. Nothing but the program stays.
set -eu

version=v1.24.2
toolchain=go1.24.3
command -v ferretdb >/dev/null && exit 0

if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
export GOPATH="$folder/go" GOCACHE="$folder/cache" GOFLAGS=-modcacherw CGO_ENABLED=0

# Where `go mod download` has put a module.
fetched() {
    "$go" mod download -json "$1" >module.json
    sed -n 's/.*"Dir": "\(.*\)".*/\1/p' module.json | grep .
}

go=$(command -v go || true)
# From 1.21 on Go fetches what a module wants that is newer.
case $("${go:-true}" version) in
*go1.2[1-9]* | *go1.[3-9][0-9]*) export GOTOOLCHAIN=auto ;;
*)
    packages="golang-1.19-go golang-1.19-src"
    # shellcheck disable=SC2086 # one word for each package
    apt-get download $packages || { $sudo apt-get update && apt-get download $packages; }
    for package in ./*.deb; do dpkg-deb -x "$package" debian; done
    go=$folder/debian/usr/lib/go-1.19/bin/go
    root=$(fetched "golang.org/toolchain@v0.0.1-$toolchain.linux-$(dpkg --print-architecture)")
    # What a module holds is not executable.
    chmod +x "$root"/bin/* "$root"/pkg/tool/*/*
    go=$root/bin/go
    ;;
esac

module=$(fetched github.com/FerretDB/FerretDB@$version)
cp -r "$module" source
cd source
echo $version >build/version/version.txt
"$go" build -trimpath -ldflags=-s -tags ferretdb_no_sqlite -o "$folder/ferretdb" ./cmd/ferretdb
$sudo install -m 755 "$folder/ferretdb" /usr/local/bin/ferretdb

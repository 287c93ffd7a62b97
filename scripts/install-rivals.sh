#!/bin/sh
# Installs what the comparisons in rivals/ need, on Debian 12 or later: fio, a C compiler,
# python3 with venv, ClickHouse from PyPI into rivals/clickhouse/.venv (0.9 GB), RocksDB into rivals/rocksdb/.venv, and
# LevelDB and RocksDB of the system for rivals/stores, with a C++ compiler.
# The values of the study of compression are fetched by rivals/values/fetch.sh, which needs npm.
# May be run again: what is there is left alone. PYTHON chooses another python3 (>= 3.11).
set -eu
cd "$(dirname "$0")/.."

packages=""
command -v fio >/dev/null || packages="$packages fio"
command -v "${CC:-cc}" >/dev/null || packages="$packages gcc libc6-dev"
command -v "${CXX:-g++}" >/dev/null || packages="$packages g++"
for include in leveldb:libleveldb-dev rocksdb:librocksdb-dev; do
    [ -e "/usr/include/${include%:*}/db.h" ] || packages="$packages ${include#*:}"
done
# Without python3-venv, `import venv` works on Debian and making a venv fails: ensurepip is what is missing.
"${PYTHON:-python3}" -c 'import venv, ensurepip' 2>/dev/null || packages="$packages python3 python3-venv"

if [ -n "$packages" ]; then
    as_root=""
    [ "$(id -u)" -eq 0 ] || as_root=sudo
    $as_root apt-get update -q
    # shellcheck disable=SC2086 # a list of words
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $packages
fi

rivals/clickhouse/setup.sh
rivals/rocksdb/setup.sh
rivals/stores/setup.sh

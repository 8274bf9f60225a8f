#!/bin/sh
# Proves that the service installs: the distributions build, and from them alone, in clean environments and an empty
# folder, with the extras `roster run` serves a call, and without them every module imports and `roster` works.
# Takes as its argument the Python to use, which has `build`.
set -eu

python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy, so that building leaves nothing behind; without what earlier builds left.
mkdir "$work/source" "$work/empty"
for part in grammar roster_service sync_scripts docs wsgi.py setup.cfg pyproject.toml README.md LICENSE; do
    cp -R "$here/../../$part" "$work/source"
done
rm -rf "$work/source/grammar/build" "$work/source/grammar"/*.egg-info

for distribution in "$work/source/grammar" "$work/source"; do
    # The wheel is built from the source distribution, so what is missing from either is missing here.
    "$python" -m build --outdir "$work/dist" "$distribution" > "$work/build.log" 2>&1 || {
        cat "$work/build.log"
        exit 1
    }
done

# Makes an environment, named by the first argument, with both distributions; the second: the extras of the service.
install() {
    "$python" -m venv "$work/$1"
    "$work/$1/bin/pip" install --quiet --disable-pip-version-check \
        "$work"/dist/oneroster_filter-*.whl "$(echo "$work"/dist/roster_service-*.whl)$2"
}

install plain ""
install alone "[embedded,compression]"
cd "$work/empty"
"$work/plain/bin/python" "$here/plain_check.py" "$work/plain/bin/roster"
"$work/alone/bin/python" "$here/alone_check.py" "$work/alone/bin/roster"
echo "alone: $(ls "$work/dist" | xargs) serve"

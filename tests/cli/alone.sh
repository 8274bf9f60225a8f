#!/bin/sh
# Proves that the service installs: the distributions build, and from them alone, in a clean environment and an empty
# folder, `roster run` serves a call. Takes as its argument the Python to use, which has `build`.
set -eu

python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy, so that building leaves nothing behind; without what earlier builds left.
mkdir "$work/source" "$work/empty"
for part in grammar roster_service sync_scripts wsgi.py setup.cfg pyproject.toml README.md LICENSE; do
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

"$python" -m venv "$work/alone"
"$work/alone/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/*.whl
cd "$work/empty"
"$work/alone/bin/python" "$here/alone_check.py" "$work/alone/bin/roster"
echo "alone: $(ls "$work/dist" | xargs) serve"

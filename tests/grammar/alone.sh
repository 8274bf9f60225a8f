#!/bin/sh
# Proves that the library stands alone: both distributions build, what they install is the library and lark, and it works
# there. Takes the Python to use as its argument.
set -eu

python=${1:-python3}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A copy, so that building leaves nothing behind; without what earlier builds left.
cp -R "$here/../../grammar" "$work/source"
rm -rf "$work/source/build" "$work/source"/*.egg-info

"$python" -m venv "$work/builder"
"$work/builder/bin/pip" install --quiet --disable-pip-version-check build
# The wheel is built from the source distribution, so what is missing from either is missing here.
"$work/builder/bin/python" -m build --outdir "$work/dist" "$work/source" > "$work/build.log" 2>&1 || {
    cat "$work/build.log"
    exit 1
}

"$python" -m venv "$work/alone"
"$work/alone/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/*.whl
brought=$("$work/alone/bin/pip" list --disable-pip-version-check --format=freeze | grep -v -E '^(pip|setuptools)==' | cut -d= -f1 | sort | xargs)
test "$brought" = "lark oneroster-filter" || {
    echo "installed beside the library: $brought"
    exit 1
}

cd "$work"
"$work/alone/bin/python" -W error "$here/alone_check.py"
printf 'status,grades\nactive,"09,10"\ntobedeleted,10\n' > users.csv
test "$("$work/alone/bin/python" -m oneroster_filter "status='active'" --csv users.csv 2> /dev/null | wc -l)" -eq 2
echo "alone: $(ls "$work/dist" | xargs) brought $brought, and works"

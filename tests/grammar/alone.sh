#!/bin/sh
# Proves that the library stands alone: both distributions build, under two umasks with the same bytes, and could be published; on every
# Python that is here, what they install is the library and lark, and it works; and the README works in an empty folder.
# Takes the Python to build with as its argument.
set -eu

# Its whole path, because one step works in another folder. A link stays one: it leads to the environment.
python=$(command -v "${1:-python3}")
case $python in /*) ;; *) python=$PWD/$python ;; esac
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/builder"
"$work/builder/bin/pip" install --quiet --disable-pip-version-check build twine
for mask in 022 077; do
    # The wheel is built from the source distribution, so what is missing from either is missing here.
    (
        umask $mask
        cp -R "$here/../../grammar" "$work/library-$mask"
        cp -R "$here/../../tests" "$work/tests"
        mkdir "$work/checkout-$mask"
        mv "$work/library-$mask" "$work/checkout-$mask/grammar"
        mv "$work/tests" "$work/checkout-$mask/tests"
        "$work/builder/bin/python" "$work/checkout-$mask/grammar/release.py" "$work/dist-$mask" > "$work/build.log" 2>&1
    ) || {
        cat "$work/build.log"
        exit 1
    }
done
mv "$work/dist-022" "$work/dist"
mv "$work/dist-077" "$work/again"
diff -r "$work/dist" "$work/again"
"$work/builder/bin/twine" check --strict "$work"/dist/* > "$work/twine.log" || {
    cat "$work/twine.log"
    exit 1
}

mkdir "$work/empty"
cd "$work/empty"
printf 'status,grades\nactive,"09,10"\ntobedeleted,10\n' > users.csv
tested=
for each in "$python" python3.11 python3.12 python3.13 python3.14; do
    version=$("$each" -c 'import platform; print(platform.python_version())' 2> /dev/null) || continue
    case "$tested " in *" $version "*) continue ;; esac
    rm -rf "$work/alone"
    "$each" -m venv "$work/alone"
    "$work/alone/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/*.whl
    brought=$("$work/alone/bin/pip" list --disable-pip-version-check --format=freeze | grep -v -E '^(pip|setuptools)==' | cut -d= -f1 | sort | xargs)
    test "$brought" = "lark oneroster-filter" || {
        echo "installed beside the library: $brought"
        exit 1
    }
    "$work/alone/bin/python" -W error "$here/alone_check.py"
    test "$("$work/alone/bin/oneroster-filter" "status='active'" --csv users.csv 2> /dev/null | wc -l)" -eq 2
    tested="$tested $version"
done

"$work/alone/bin/pip" install --quiet --disable-pip-version-check "$(echo "$work"/dist/*.whl)[sqlalchemy]"
"$work/alone/bin/python" -m doctest "$here/../../grammar/README.md"
# The source distribution has its tests, and they find everything that they need in it.
tar -xzf "$work"/dist/*.tar.gz -C "$work"
cd "$work"/oneroster_filter-*/
"$python" -m pytest -q -p no:cacheprovider tests/grammar/test_parse.py tests/grammar/test_publishing.py > "$work/tests.log" || {
    cat "$work/tests.log"
    exit 1
}
echo "alone: $(ls "$work/dist" | xargs) brought $brought, and works on$tested"

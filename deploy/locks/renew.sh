#!/bin/sh
# Writes the lock files: every package that an installation takes, by version and by the hashes of its files, for
# every platform and Python from 3.11 on. A version that is locked stays, as long as setup.cfg takes it; with
# `--upgrade` all of them become the newest ones. Takes as its arguments the command `uv`, and options for it.
set -eu

uv=$1
shift
cd "$(dirname "$0")/../.."
# The header of each file names it.
export UV_CUSTOM_COMPILE_COMMAND="make lock"

# Reads requirements from standard input, one a line, and writes the lock file of that name.
lock() {
    file=deploy/locks/$1
    shift
    # Own packages are installed from the source; setuptools builds them.
    "$uv" pip compile - --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
        --no-emit-index-url --no-emit-find-links --no-emit-package roster-service --no-emit-package oneroster-filter \
        --output-file "$file" "$@" > /dev/null
}

# Every extra but what benchmarks compare with.
extras=$(sed -n '/^\[options.extras_require\]/,/^\[options\.[^e]/s/^\([a-z]*\) =$/\1/p' setup.cfg | grep -vx bench | paste -sd, -)

# The largest one first: the others take its versions.
lock test.txt "$@" << END
./grammar[marshmallow,sqlalchemy]
.[$extras]
setuptools>=77
END
lock embedded.txt --constraint deploy/locks/test.txt << 'END'
./grammar[marshmallow,sqlalchemy]
.[embedded,compression]
setuptools>=77
END
lock service.txt --constraint deploy/locks/test.txt << 'END'
./grammar[marshmallow,sqlalchemy]
.[compression,deliveries]
setuptools>=77
END

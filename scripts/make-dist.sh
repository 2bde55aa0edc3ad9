#!/usr/bin/env bash
# make-dist.sh [FOLDER]: makes the sdist and the wheel in dist/ or FOLDER, the wheel out of the sdist alone, and checks both.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(pwd)/.venv/bin
out=${1:-dist}
rm -rf "$out" man
"$bin/python" scripts/make_man.py man
"$bin/python" -m build --sdist --outdir "$out" . >/dev/null
# Out of the sdist, without Node on PATH: what a stranger builds from it must be whole.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$out"/*.tar.gz -C "$work" --strip-components=1
test ! -e "$work/web"
"$bin/python" -m build --wheel --outdir "$out" "$work" >/dev/null
"$bin/twine" check --strict "$out"/*
"$bin/check-wheel-contents" "$out"/*.whl
ls -l "$out"

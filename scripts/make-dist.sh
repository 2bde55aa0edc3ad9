#!/usr/bin/env bash
# Makes the sdist and the wheel in dist/, the wheel out of the sdist alone, and checks both.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$(pwd)/.venv/bin
rm -rf dist
"$bin/python" -m build --sdist --outdir dist . >/dev/null
# Out of the sdist, without Node on PATH: what a stranger builds from it must be whole.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf dist/*.tar.gz -C "$work" --strip-components=1
test ! -e "$work/web"
"$bin/python" -m build --wheel --outdir dist "$work" >/dev/null
"$bin/twine" check --strict dist/*
"$bin/check-wheel-contents" dist/*.whl
ls -l dist

#!/usr/bin/env bash
# release.sh VERSION: sets the version, commits and tags it, builds wheel and sdist, and writes what goes with them.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?say which: make release VERSION=1.2.3}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+((a|b|rc)[0-9]+)?$ ]] || { echo "release: $version is not a version such as 1.2.3" >&2; exit 2; }
[ -z "$(git status --porcelain)" ] || { echo "release: commit or put away what is changed first" >&2; exit 2; }
if git rev-parse -q --verify "refs/tags/v$version" >/dev/null; then
  echo "release: v$version is tagged already" >&2
  exit 2
fi
grep -q "^## $version" CHANGELOG.md || { echo "release: CHANGELOG.md has no heading '## $version'" >&2; exit 2; }
sed -i "s/^version = \".*\"/version = \"$version\"/" pyproject.toml
sed -i "s/^VERSION = \".*\"/VERSION = \"$version\"/" src/wsh/wire/version.py
git commit -q -m "Version $version" pyproject.toml src/wsh/wire/version.py
scripts/make-dist.sh
# The bill of materials is that of an environment with nothing but this wheel in it.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python -m venv "$work/venv"
"$work/venv/bin/python" -m pip install -q --disable-pip-version-check -c constraints.txt dist/*.whl
.venv/bin/cyclonedx-py environment "$work/venv/bin/python" --output-format JSON --output-file dist/sbom.cdx.json
(cd dist && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
git tag -a "v$version" -m "Version $version"
echo "v$version is tagged; dist/ has wheel, sdist, sbom.cdx.json and SHA256SUMS"

#!/usr/bin/env bash
# Installs the Debian packages that the tests drive (or those of another list beside this file), if any are missing and we are root. Anybody else is told in one
# line which they are; the tests that need them are left out.
set -euo pipefail
cd "$(dirname "$0")"
command -v dpkg-query >/dev/null 2>&1 || exit 0
missing=()
for package in $(grep -v '^#' "${1:-debian-packages.txt}"); do
  state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$state" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ "$(id -u)" != 0 ]; then
  echo "Missing Debian packages, whose tests are left out: sudo apt-get install ${missing[*]}" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
for at in "${!missing[@]}"; do
  # What this release does not have is not asked for: the tests that need it say so.
  [ -n "$(apt-cache show "${missing[$at]}" 2>/dev/null)" ] || unset "missing[$at]"
done
[ ${#missing[@]} -gt 0 ] || exit 0
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

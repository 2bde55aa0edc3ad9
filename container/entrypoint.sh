#!/bin/sh
# Checks the inputs of the desktop bridge, says what it found, and starts the command. Refuses to start with a bridge
# that cannot work; to run without a desktop on purpose, set WSH_WITHOUT_DESKTOP=1.
set -eu

faults=0

say() { printf 'wsh-entrypoint: %s\n' "$*" >&2; }
fault() {
    say "$*"
    faults=$((faults + 1))
}

# number NAME LOW HIGH: the variable must be set, and a whole number in that range
number() {
    eval "value=\${$1-}"
    # shellcheck disable=SC2154 # set by the eval above
    case $value in
        '') fault "$1 is missing" ;;
        *[!0-9]* | ??????????*) fault "$1 must be a whole number from $2 to $3" ;;
        *) if [ "$value" -lt "$2" ] || [ "$value" -gt "$3" ]; then
            fault "$1 must be a whole number from $2 to $3"
        fi ;;
    esac
}

host() {
    eval "value=\${$1-}"
    case $value in
        '' | *[!A-Za-z0-9.:%-]* | -*) fault "$1 must be a host name or an address, without a port" ;;
    esac
}

if [ "${WSH_WITHOUT_DESKTOP:-}" = 1 ]; then
    say "WSH_WITHOUT_DESKTOP=1: no desktop bridge; interactive requests will fail, headless ones follow the policy"
    exec "$@"
fi

: "${PM_RUNNING_IN_CONTAINER:=}" "${PM_TERM_ADAPTER_MODE:=}"
case $PM_TERM_ADAPTER_MODE in
    container_bridge) ;;
    auto | '')
        [ "$PM_RUNNING_IN_CONTAINER" = true ] ||
            fault "PM_RUNNING_IN_CONTAINER must be true, or PM_TERM_ADAPTER_MODE container_bridge"
        ;;
    local | bundled) fault "PM_TERM_ADAPTER_MODE=$PM_TERM_ADAPTER_MODE cannot work here: there is no desktop in a container" ;;
    *) fault "PM_TERM_ADAPTER_MODE must be container_bridge or auto" ;;
esac

if [ -z "${PM_INTERACTIVE_TERMINAL_HOST_ALIAS:-}" ]; then
    PM_INTERACTIVE_TERMINAL_HOST_ALIAS=host.containers.internal
    say "PM_INTERACTIVE_TERMINAL_HOST_ALIAS is not set; using $PM_INTERACTIVE_TERMINAL_HOST_ALIAS"
fi
if [ -z "${PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS:-}" ]; then
    PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS=host.docker.internal
    say "PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS is not set; using $PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS"
fi
host PM_INTERACTIVE_TERMINAL_HOST_ALIAS
host PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS
number PM_INTERACTIVE_TERMINAL_HOST_PORT 1 65535
number PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS 1 600000
number PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS 1 3600000
[ -n "${PM_INTERACTIVE_TERMINAL_TOKEN:-}" ] ||
    fault "PM_INTERACTIVE_TERMINAL_TOKEN is missing; pass the token of the host's interactive-terminal"

if [ "$faults" -gt 0 ]; then
    say "$faults problem(s) with the desktop bridge; nothing was started"
    say "see docs/troubleshooting.md, or set WSH_WITHOUT_DESKTOP=1 to run without a desktop"
    exit 64
fi

export PM_RUNNING_IN_CONTAINER=true
export PM_TERM_ADAPTER_MODE PM_INTERACTIVE_TERMINAL_HOST_ALIAS PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS \
    PM_INTERACTIVE_TERMINAL_HOST_PORT PM_INTERACTIVE_TERMINAL_CONNECT_TIMEOUT_MS \
    PM_INTERACTIVE_TERMINAL_REQUEST_TIMEOUT_MS PM_INTERACTIVE_TERMINAL_TOKEN
say "desktop bridge: $PM_INTERACTIVE_TERMINAL_HOST_ALIAS (then $PM_INTERACTIVE_TERMINAL_HOST_FALLBACK_ALIAS)" \
    "port $PM_INTERACTIVE_TERMINAL_HOST_PORT, token set"
exec "$@"

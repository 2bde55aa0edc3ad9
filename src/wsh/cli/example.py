"""Examples for the help and the manual page of each command."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "new": ("wsh new --name work", "wsh new --name api --cwd ~/api --tag dev npm run dev", "wsh new -e DEBUG=1 bash"),
    "attach": ("wsh attach work", "wsh attach --read-only work"),
    "list": ("wsh list", "wsh list --json | jq -r '.[].name'"),
    "tag": ("wsh tag work ci --remove draft",),
    "kill": ("wsh kill work",),
    "run": (
        "wsh run work make test",
        "wsh run work 'cd api && ls | wc -l'",
        "wsh run --max-wait-ms 60000 work ./deploy",
    ),
    "send": ("wsh send --enter work 'ls -la'", "git diff | wsh send work"),
    "keys": ("wsh keys work ctrl+c", "wsh keys work escape : w q enter"),
    "screen": ("wsh screen work", "wsh screen --json work | jq .cursor"),
    "scrollback": ("wsh scrollback work",),
    "wait": (
        "wsh wait work --text 'listening on'",
        "wsh wait work --prompt --max-wait-ms 60000",
        "wsh wait work --exit",
    ),
    "shell-integration": ("source <(wsh shell-integration bash)", "wsh shell-integration fish | source"),
    "record": ("wsh record -o demo.cast make test",),
    "play": ("wsh play demo.cast", "wsh play --speed 2 --idle-limit 1 work"),
    "export": (
        "wsh export work -o work.cast",
        "wsh export work --format svg-animated -o work.svg",
        "wsh export work --at 12.5 -o moment.png",
    ),
    "search": ("wsh search 'connection refused'",),
    "mcp": ("wsh mcp --toolsets lean", "wsh mcp install --toolsets lean --client cursor --write"),
    "approvals": ("wsh approvals on", "wsh approvals watch", "wsh approvals approve br_1"),
    "policy": ("wsh policy explain -- rm -rf build", "wsh policy allow make test", "wsh policy audit"),
    "token": ("wsh token --agent ada", "wsh token --list", "wsh token --revoke ada"),
    "server": ("wsh server", "WSH_SERVER_BIND=127.0.0.1:9000 wsh server"),
    "service": ("wsh service install", "wsh service status"),
    "host": ("wsh host add gpu1 ada@gpu1.lab", "wsh new gpu1/train -- make", "wsh attach gpu1/train"),
    "fleet": ("wsh fleet up", "wsh fleet invite gpu1 --tag gpu", "wsh fleet run tag:web -- uptime"),
    "stop": ("wsh stop", "wsh stop --keep"),
    "uninstall": ("wsh uninstall", "wsh uninstall --purge"),
    "completion": ("wsh completion bash > ~/.local/share/bash-completion/completions/wsh",),
}
"""By the command's first word; a group shows those of its commands."""

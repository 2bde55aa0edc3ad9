"""Package managers: removing what is installed, publishing what cannot be taken back."""

from __future__ import annotations

from collections.abc import Mapping

from wsh.policy.danger.model import RiskModel, always, danger, program
from wsh.policy.verdict import Kind

_REMOVES = always(Kind.PACKAGE, "removes packages")
_PUBLISHES = always(Kind.PUBLISH, "publishes, which cannot be taken back")
_RETRACTS = always(Kind.PUBLISH, "retracts or changes what others already use")

_PIP = program(
    values="--python --log --proxy --retries --timeout --cache-dir", permute=False, subcommands={"uninstall": _REMOVES}
)
_JS_VALUES = "-C -w --prefix --registry --workspace --cwd --filter --dir --loglevel"

PROGRAMS: Mapping[str, RiskModel] = {
    "npm pnpm yarn bun cnpm": program(
        values=_JS_VALUES,
        permute=False,
        subcommands={
            "publish": program(
                danger(Kind.PUBLISH, "publishes, which cannot be taken back", unless="--dry-run --help"),
                values=_JS_VALUES,
            ),
            "unpublish deprecate": _RETRACTS,
            "uninstall remove rm un unlink r prune": _REMOVES,
            "owner dist-tag access team": program(
                danger(
                    Kind.PUBLISH, "changes who or what a published name is", operand=r"^(?:rm|remove|revoke|destroy)$"
                )
            ),
            "token": program(danger(Kind.ACCOUNT, "revokes a token", operand=r"^(?:revoke|delete|remove|rm)$")),
            "npm": program(subcommands={"publish unpublish": _PUBLISHES}),
        },
    ),
    "pip pip2 pip3 pipx": _PIP,
    "uv": program(
        values="--directory --project --config-file",
        permute=False,
        subcommands={
            "pip": _PIP,
            "remove": _REMOVES,
            "publish": _PUBLISHES,
            "tool python": program(subcommands={"uninstall": _REMOVES}),
            "cache": program(subcommands={"clean prune": always(Kind.DELETE, "removes a cache")}),
        },
    ),
    "poetry pdm hatch flit rye": program(
        permute=False, values="-C --directory", subcommands={"remove": _REMOVES, "publish": _PUBLISHES}
    ),
    "pipenv": program(permute=False, subcommands={"uninstall": _REMOVES}),
    "twine": program(permute=False, subcommands={"upload": _PUBLISHES}),
    "conda mamba micromamba": program(
        permute=False,
        subcommands={
            "remove uninstall": _REMOVES,
            "env": program(subcommands={"remove": _REMOVES}),
            "clean": always(Kind.DELETE, "removes a cache"),
        },
    ),
    "gem": program(permute=False, subcommands={"uninstall": _REMOVES, "push": _PUBLISHES, "yank": _RETRACTS}),
    "cargo": program(
        permute=False,
        values="--color --config -Z -C",
        subcommands={
            "publish": program(
                danger(Kind.PUBLISH, "publishes, which cannot be taken back", unless="--dry-run -n --help")
            ),
            "yank": _RETRACTS,
            "uninstall remove rm": _REMOVES,
            "owner": program(danger(Kind.PUBLISH, "changes who owns a package", "-r --remove")),
        },
    ),
    "mvn gradle gradlew mvnw sbt": program(
        danger(Kind.PUBLISH, "publishes", operand=r"^(?:deploy|publish|release:perform)$")
    ),
    "dotnet nuget": program(
        danger(Kind.DATABASE, "drops a database", operand=r"^drop$"),
        subcommands={
            "nuget": program(danger(Kind.PUBLISH, "publishes", operand=r"^(?:push|delete)$")),
            "push delete": _PUBLISHES,
        },
    ),
    "apt apt-get aptitude": program(
        values="-o -c -t -a --option --config-file --target-release",
        permute=True,
        subcommands={
            "remove purge autoremove autopurge full-upgrade dist-upgrade": program(
                danger(Kind.PACKAGE, "removes packages", unless="-s --simulate --dry-run --just-print --help")
            ),
            "install": program(  # `apt install NAME-` removes NAME
                danger(Kind.PACKAGE, "removes packages", operand=r"\w-$", unless="-s --simulate --dry-run --just-print")
            ),
        },
    ),
    "dpkg": program(danger(Kind.PACKAGE, "removes packages", "-r -P --remove --purge")),
    "rpm": program(danger(Kind.PACKAGE, "removes packages", "-e --erase")),
    "yum dnf microdnf zypper tdnf": program(
        permute=False, values="-c -x", subcommands={"remove erase autoremove rm": _REMOVES}
    ),
    "pacman yay paru": program(danger(Kind.PACKAGE, "removes packages", "-R --remove")),
    "apk": program(permute=False, subcommands={"del": _REMOVES}),
    "brew port": program(
        permute=False,
        subcommands={
            "uninstall remove rm": _REMOVES,
            "cleanup autoremove": always(Kind.PACKAGE, "removes old versions"),
        },
    ),
    "snap flatpak": program(permute=False, subcommands={"remove uninstall": _REMOVES}),
    "emerge": program(danger(Kind.PACKAGE, "removes packages", "-C -c --unmerge --depclean")),
    "nix-env": program(danger(Kind.PACKAGE, "removes packages", "-e --uninstall --delete-generations")),
    "nix-collect-garbage": always(Kind.PACKAGE, "removes old generations"),
    "choco winget scoop": program(permute=False, subcommands={"uninstall remove": _REMOVES}),
    "composer": program(permute=False, subcommands={"remove": _REMOVES}),
    "vsce ovsx": program(permute=False, subcommands={"publish unpublish": _PUBLISHES}),
}

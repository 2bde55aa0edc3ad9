"""The machine itself: processes, services, power, disks, accounts, network, schedules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wsh.policy.danger.file import writes
from wsh.policy.danger.model import RiskModel, Scene, always, danger, program
from wsh.policy.parse.option import Arguments
from wsh.policy.risk.target import Target, classify
from wsh.policy.verdict import Kind, Risk, RiskReason

_WIPE = Risk.IRRECOVERABLE
_POWER = always(Kind.SYSTEM, "stops or restarts the machine")


def _kill(_arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    words = scene.words[1:]
    if not words or words[0] in ("-l", "-L", "--list", "--table", "--help", "--version"):
        return
    if words[0] == "-0" or words[:2] in (("-s", "0"), ("-n", "0")):
        return
    if "-1" in words[1:] and "--" not in words[:1]:
        yield scene.found(
            Kind.PROCESS, "signals every process", _WIPE if "-9" in words or "-KILL" in words else Risk.DESTRUCTIVE
        )
        return
    yield scene.found(Kind.PROCESS, "signals processes")


def _pkill(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if scene.words[1:2] in (("-0",), ("-l",), ("--list",)) or arguments.has("--help", "--version"):
        return
    if len(scene.words) > 1:
        yield scene.found(Kind.PROCESS, "signals processes by name")


def _init(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if any(operand in ("0", "1", "6", "s", "S") for operand in arguments.operands):
        yield scene.found(Kind.SYSTEM, "changes the run level of the machine")


def _makes_filesystem(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.has("-n", "-V", "--help", "--version") and not arguments.has("-t"):
        return
    if arguments.operands:
        device = any(classify(o, scene.cwd, scene.home) is not Target.ORDINARY for o in arguments.operands)
        yield scene.found(
            Kind.DEVICE, "makes a new file system over what is there", _WIPE if device else Risk.DESTRUCTIVE
        )


def _wipefs(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.has("-a", "--all", "-o", "--offset") and not arguments.has("-n", "--no-act"):
        yield scene.found(Kind.DEVICE, "erases file system signatures", _WIPE)


def _partitions(listing: str) -> RiskModel:
    quiet = tuple(listing.split())

    def check(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
        changes = any(re.match(r"^(mklabel|mktable|mkpart|rm)$", word) for word in arguments.operands)
        looks = arguments.has(*quiet) or "print" in arguments.operands or not arguments.operands
        if looks and not changes:
            return
        yield scene.found(Kind.DEVICE, "changes partitions", _WIPE)

    return program(check=check)


def _device_verbs(verbs: str, what: str, risk: Risk = _WIPE) -> RiskModel:
    return program(danger(Kind.DEVICE, what, operand=rf"^(?:{verbs})$", risk=risk))


def _crontab(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.has("-r") or arguments.operands:
        yield scene.found(Kind.SYSTEM, "removes or replaces scheduled jobs")


def _service(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if arguments.operands[1:2] in (["stop"], ["force-stop"]) or arguments.operands[:1] == ["stop"]:
        yield scene.found(Kind.SYSTEM, "stops a service")


def _ip(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    if any(re.fullmatch(r"d|del|dele|delet|delete|f|fl|flu|flus|flush", word) for word in arguments.operands[1:3]):
        yield scene.found(Kind.SYSTEM, "removes network settings")
    elif arguments.operands[:2] == ["link", "set"] and "down" in arguments.operands:
        yield scene.found(Kind.SYSTEM, "takes a network interface down")


def _tmux(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    first = arguments.operands[:1]
    if first and first[0].startswith("kill-"):
        yield scene.found(Kind.PROCESS, "ends terminals and what runs in them")
    elif first and first[0] in (
        "new",
        "new-session",
        "neww",
        "new-window",
        "splitw",
        "split-window",
        "run",
        "run-shell",
    ):
        for operand in arguments.operands[1:]:
            yield from scene.look_text(operand)
    elif first and first[0] in ("send", "send-keys"):
        yield from scene.look_text(" ".join(word for word in arguments.operands[1:] if word not in ("Enter", "C-m")))


def _ddrescue(arguments: Arguments, scene: Scene) -> Iterable[RiskReason]:
    for operand in arguments.operands[1:2]:
        yield from writes(operand, scene)


PROGRAMS: Mapping[str, RiskModel] = {
    "kill": program(check=_kill),
    "pkill killall killall5 skill xkill": program(check=_pkill),
    "fuser": program(danger(Kind.PROCESS, "signals processes", "-k --kill")),
    "shutdown": program(danger(Kind.SYSTEM, "stops or restarts the machine", unless="-c --help --show")),
    "reboot halt poweroff kexec": _POWER,
    "init telinit": program(check=_init),
    "systemctl": program(
        values="-H -M -n -o -p -t --host --machine --lines --output --property --type --state --root --signal",
        permute=False,
        subcommands={
            "stop kill disable mask isolate revert clean": always(Kind.SYSTEM, "stops or disables services"),
            "poweroff reboot halt kexec emergency rescue suspend hibernate exit soft-reboot": _POWER,
        },
    ),
    "service rc-service invoke-rc.d initctl sv supervisorctl pm2 launchctl": program(check=_service),
    "mkfs mke2fs mkswap mkntfs mkdosfs newfs": program(
        check=_makes_filesystem,
        values="-t -L -U -b -i -I -m -N -O -E -T --type --label --uuid",
    ),
    "wipefs": program(check=_wipefs, values="-o -t --offset --types"),
    "fdisk cfdisk sfdisk gdisk sgdisk parted gparted": _partitions("-l --list -d --dump -p --print -J --json -s -V"),
    "blkdiscard": program(danger(Kind.DEVICE, "discards a device", at_least=1, risk=_WIPE), values="-o -l -p"),
    "badblocks": program(danger(Kind.DEVICE, "overwrites a device", "-w -n", risk=_WIPE)),
    "hdparm": program(
        danger(
            Kind.DEVICE,
            "erases a drive",
            "--security-erase --security-erase-enhanced --trim-sector-ranges --write-sector --sanitize-block-erase",
            risk=_WIPE,
        )
    ),
    "nvme": _device_verbs("format|sanitize|delete-ns|write-zeroes|write", "erases a drive"),
    "cryptsetup": _device_verbs(
        "luksFormat|erase|luksErase|luksKillSlot|luksRemoveKey|reencrypt", "destroys an encrypted volume"
    ),
    "lvremove vgremove pvremove": always(Kind.DEVICE, "removes volumes"),
    "lvreduce": always(Kind.DEVICE, "cuts a volume off"),
    "lvm": _device_verbs("lvremove|vgremove|pvremove|lvreduce", "removes volumes", Risk.DESTRUCTIVE),
    "zpool": _device_verbs("destroy|labelclear|clear", "destroys a pool"),
    "zfs": _device_verbs("destroy|rollback", "destroys a file system or its changes", Risk.DESTRUCTIVE),
    "btrfs": _device_verbs("delete|del", "removes a subvolume", Risk.DESTRUCTIVE),
    "mdadm": program(
        danger(Kind.DEVICE, "takes an array apart", "--zero-superblock --stop -S --remove --fail", risk=_WIPE)
    ),
    "diskutil": _device_verbs(r"eraseDisk|eraseVolume|partitionDisk|secureErase|zeroDisk|reformat", "erases a disk"),
    "flashrom fwupdmgr efibootmgr": program(
        danger(Kind.DEVICE, "changes firmware", "-w -E -B --write --erase --delete-bootnum")
    ),
    "ddrescue pv": program(check=_ddrescue, values="-L -s -N -b"),
    "userdel deluser groupdel delgroup": always(Kind.ACCOUNT, "removes an account", at_least=1),
    "passwd": program(danger(Kind.ACCOUNT, "removes or locks a password", "-d -l --delete --lock")),
    "usermod": program(danger(Kind.ACCOUNT, "locks or moves an account", "-L --lock -m --move-home")),
    "iptables ip6tables ebtables arptables": program(
        danger(Kind.SYSTEM, "removes firewall rules", "-F -X -D -Z --flush --delete --delete-chain")
    ),
    "nft ipset": program(danger(Kind.SYSTEM, "removes firewall rules", operand=r"^(?:flush|delete|destroy)$")),
    "ufw firewall-cmd": program(danger(Kind.SYSTEM, "weakens the firewall", operand=r"^(?:reset|disable|delete)$")),
    "ip": program(check=_ip, values="-n -f --netns --family"),
    "nmcli": program(danger(Kind.SYSTEM, "removes network settings", operand=r"^(?:delete|del|down|off)$")),
    "ifconfig ifdown": program(
        danger(Kind.SYSTEM, "takes a network interface down", operand=r"^(?:down|.*)$", at_least=2)
    ),
    "rmmod": always(Kind.SYSTEM, "removes a kernel module", at_least=1),
    "modprobe": program(danger(Kind.SYSTEM, "removes a kernel module", "-r --remove")),
    "ipcrm": always(Kind.SYSTEM, "removes shared memory"),
    "crontab": program(check=_crontab, values="-u"),
    "atrm": always(Kind.SYSTEM, "removes scheduled jobs", at_least=1),
    "at batch": program(danger(Kind.SYSTEM, "removes scheduled jobs", "-r -d"), values="-f -q -t"),
    "journalctl": program(danger(Kind.DELETE, "removes logs", "--vacuum-size --vacuum-time --vacuum-files --rotate")),
    "dmesg": program(danger(Kind.DELETE, "clears the kernel log", "-C -c --clear --read-clear")),
    "history": program(danger(Kind.DELETE, "clears the history", "-c -d"), values="-d"),
    "tmux": program(check=_tmux, values="-L -S -f -c -s -n -t -x -y"),
    "screen": program(danger(Kind.PROCESS, "ends terminals and what runs in them", operand=r"^(?:quit|kill)$")),
    "loginctl": program(
        danger(Kind.PROCESS, "ends sessions", operand=r"^(?:kill|terminate)-|^(?:poweroff|reboot|suspend)$")
    ),
    "virsh": program(
        danger(
            Kind.INFRASTRUCTURE, "removes or stops machines", operand=r"^(?:destroy|undefine|vol-delete|pool-delete)$"
        )
    ),
    "lxc incus": program(danger(Kind.CONTAINER, "removes or stops containers", operand=r"^(?:delete|stop|rm)$")),
    "swapoff": program(),
    "sysctl": program(),
    "setenforce": program(danger(Kind.SYSTEM, "turns protection off", operand=r"^(?:0|Permissive)$")),
}

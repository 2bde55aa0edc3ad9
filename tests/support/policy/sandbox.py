"""What bash really runs: a throwaway root in which every program only writes down its argv.

The root holds bash, dash, a few harmless launchers (env, timeout, nice, nohup, xargs …) and recorder scripts under the
names of all other programs. It is entered in a user, process, network and mount namespace of its own; where those are
not to be had, bash runs restricted instead, which refuses slashes and redirections. Nothing destructive exists inside.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from pathlib import Path
from types import TracebackType

RECORDED = (
    "rm rmdir unlink shred truncate dd chmod chown mv cp ln tee sed find git docker kubectl terraform npm pip apt-get "
    "systemctl mysql psql kill pkill killall crontab tar rsync mkfs.ext4 wipefs shutdown reboot gh ls cat echo grep rg "
    "sort head tail wc pwd whoami date id true false printf test sudo doas curl python3 perl awk make busybox ssh uniq"
).split()
LAUNCHERS = ("env", "timeout", "nice", "nohup", "setsid", "xargs")
_BUILTINS = "echo printf pwd test kill true false [ read cd"

# One printf, so that recorders at the same time do not mix.
_RECORDER = """#!/bin/dash
printf '%s\\0' "${0##*/}" "$@" '\1' >> /record
"""
# Commands come on stdin, each ended by NUL; a line on stdout says that one is done.
_DRIVER = """
exec 3>&1 4<&0
ulimit -f 4096; ulimit -t 600
while IFS= read -r -d '' -u 4 line; do
  : > /record
  # Everything that is started inherits descriptor 5, so the substitution ends when the last of it has.
  _=$( { ulimit -t 5; cd /work && BASH_ENV=/quiet PATH=/bin exec /bin/bash RESTRICTED -c -- "$line"
       } 5>&1 </dev/null >/dev/null 2>&1 3>&- 4<&- )
  echo done >&3
done
"""


class Sandbox:
    """Use as a context manager; `run` gives the argv of everything that one command line executed."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.isolated = self._can_isolate()
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def _can_isolate() -> bool:
        done = subprocess.run([*_NAMESPACES, "true"], capture_output=True)
        return done.returncode == 0

    def __enter__(self) -> Sandbox:
        self._build()
        if self.isolated:
            argv = [*_NAMESPACES, f"--root={self.root}", "/bin/bash", "--norc", "/driver"]
            self._write_driver("")
        else:
            argv = ["/bin/bash", "--norc", str(self.root / "driver")]
            self._write_driver("-r")
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"PATH": "/bin"}
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, command: str) -> list[tuple[str, ...]]:
        """Every argv executed, recorded programs only; the program by its base name."""
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._tidy()
        self._process.stdin.write(command.encode() + b"\0")
        self._process.stdin.flush()
        ready, _, _ = select.select([self._process.stdout], [], [], 30)
        assert ready, f"bash did not end: {command!r}"
        line = self._process.stdout.readline()
        assert line == b"done\n", (line, command)
        return self._read()

    def _tidy(self) -> None:
        """Nothing of the command before is left for a pattern of this one to find."""
        with os.scandir(self.root / "work") as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)

    def _read(self) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for piece in (self.root / "record").read_bytes().split(b"\1\0")[:-1]:
            words = piece.split(b"\0")[:-1]
            found.append(tuple(word.decode() for word in words))
        return found

    def _write_driver(self, restricted: str) -> None:
        text = _DRIVER.replace("RESTRICTED", restricted)
        if not self.isolated:
            text = text.replace("/record", f"{self.root}/record").replace("/work", f"{self.root}/work")
            text = text.replace("/quiet", f"{self.root}/quiet").replace("PATH=/bin", f"PATH={self.root}/bin")
            text = text.replace("exec /bin/bash", f"exec {self.root}/bin/bash")
        (self.root / "driver").write_text(text)

    def _build(self) -> None:
        for name in ("bin", "usr", "work", "tmp", "dev", "etc", "home", "root"):
            (self.root / name).mkdir(parents=True)
        (self.root / "usr/bin").symlink_to("../bin")
        (self.root / "dev/null").touch()
        (self.root / "record").touch()
        (self.root / "quiet").write_text("".join(f"enable -n {name}\n" for name in _BUILTINS.split()))
        recorder = _RECORDER if self.isolated else _RECORDER.replace("/record", f"{self.root}/record")
        for name in RECORDED:
            path = self.root / "bin" / name
            path.write_text(recorder)
            path.chmod(0o755)
        for name in ("bash", "dash", *LAUNCHERS):
            self._bring(name)
        (self.root / "bin/sh").symlink_to("dash")

    def _bring(self, name: str) -> None:
        source = shutil.which(name)
        assert source is not None, name
        shutil.copy(os.path.realpath(source), self.root / "bin" / name)
        listed = subprocess.run(["ldd", source], capture_output=True, text=True, check=True).stdout
        for word in listed.split():
            if word.startswith("/") and os.path.exists(word):
                target = self.root / word.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                if not target.exists():
                    shutil.copy(os.path.realpath(word), target)


_NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child"]

"""wsh on a host that has none: a wheel of this version and those of its dependencies, into a folder of its own there.

Nothing is fetched by the host. The wheels are made of what is installed here, or taken from a folder of wheels (`scripts/make-dist.sh`).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from wsh.host.ssh.master import NOT_FOUND, SshProblem, SshTarget, find_far_wsh

FOLDER = ".local/share/wsh-host"
OLDEST = (3, 11)


def run_there(far: SshTarget, script: str, stdin: bytes | Path = b"") -> subprocess.CompletedProcess[bytes]:
    """A script of POSIX shell on the host."""
    words = [*far.words, far.target, "exec sh -c " + shlex.quote(script)]
    if isinstance(stdin, Path):
        with stdin.open("rb") as file:
            return subprocess.run(words, stdin=file, capture_output=True, check=False)
    return subprocess.run(words, input=stdin, capture_output=True, check=False)


def find_missing(far: SshTarget) -> str | None:
    """None where wsh is there; else the version of Python that is, empty for none. Raises SshProblem."""
    done = run_there(far, f'{find_far_wsh(far)}; exec "$@" --version')
    last = done.stdout.decode("utf-8", "replace").strip().rpartition("\n")[2]
    if done.returncode == NOT_FOUND and last.startswith("python"):
        return last.removeprefix("python").strip()
    if done.returncode != 0:
        raise SshProblem(done.stderr.decode("utf-8", "replace").strip() or f"ssh ended with status {done.returncode}")
    return None


def read_python(version: str) -> bool:
    """Whether a version of Python is new enough."""
    parts = version.split(".")
    return len(parts) >= 2 and all(part.isdigit() for part in parts[:2]) and (int(parts[0]), int(parts[1])) >= OLDEST


def push(far: SshTarget) -> Iterator[str]:
    """Install; each step is told before it begins. Raises SshProblem."""
    with tempfile.TemporaryDirectory(prefix="wsh-wheels-") as folder:
        yield "collecting wheels of wsh and of what it needs"
        wheels = collect_wheels(Path(folder))
        archive = Path(folder) / "wheels.tar"
        with tarfile.open(archive, "w") as tar:
            for wheel in wheels:
                tar.add(wheel, wheel.name)
        size = archive.stat().st_size
        yield f"sending {len(wheels)} wheels, {size / 1e6:.0f} MB"
        home = f'"$HOME/{FOLDER}/{far.version}"'
        _check(
            run_there(far, f"umask 077; rm -rf {home}.new && mkdir -p {home}.new && tar -xf - -C {home}.new", archive)
        )
        yield "installing there"
        # A folder of its own: it replaces an earlier one of the same version only when it works.
        script = (
            f"cd {home}.new && python3 -m venv --without-pip ../{far.version}.venv && "
            f"../{far.version}.venv/bin/python - <<'END'\n{_UNPACK}\nEND\n"
            f"../{far.version}.venv/bin/wsh --version && cd .. && rm -rf {far.version} {far.version}.new && "
            f"mv {far.version}.venv {far.version} && "
            f'sed -i "1s|.*|#!$PWD/{far.version}/bin/python|" {far.version}/bin/wsh && {far.version}/bin/wsh --version'
        )
        done = _check(run_there(far, script))
        yield f"installed: {done.stdout.decode('utf-8', 'replace').strip().rpartition(chr(10))[2]}"


_UNPACK = """
import glob, os, sys, sysconfig, zipfile
site = sysconfig.get_paths()["purelib"]
for wheel in glob.glob("*.whl"):
    with zipfile.ZipFile(wheel) as z:
        z.extractall(site)
        for name in z.namelist():
            head, _, rest = name.partition(".data/")
            if rest:
                kind, _, path = rest.partition("/")
                base = {"purelib": site, "platlib": site, "scripts": os.path.join(sys.prefix, "bin"), "data": sys.prefix}.get(kind)
                if base and not name.endswith("/"):
                    target = os.path.join(base, path)
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    os.replace(os.path.join(site, name), target)
wsh = os.path.join(sys.prefix, "bin", "wsh")
with open(wsh, "w") as file:
    file.write("#!" + sys.executable + "\\nimport sys\\nfrom wsh.cli.main import main\\nsys.exit(main())\\n")
os.chmod(wsh, 0o755)
"""


def _check(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[bytes]:
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise SshProblem(f"the host refused with status {done.returncode}: {said}")
    return done


def collect_wheels(folder: Path) -> list[Path]:
    """Wheels of wsh and all that it needs, without extras: by pip, from its cache and the index that it is set up for."""
    words = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "-q",
        "-w",
        str(folder),
        _find_source(),
    ]
    done = subprocess.run(words, capture_output=True, check=False, cwd="/", env={**os.environ, "PIP_NO_INPUT": "1"})
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise SshProblem(f"the wheels cannot be made here: {said}")
    return sorted(folder.glob("*.whl"))


def _find_source() -> str:
    """The folder that wsh is installed from, where it is one that is worked on; else the distribution of this version."""
    from wsh.wire.version import VERSION

    root = Path(__file__).parents[4]
    return str(root) if (root / "pyproject.toml").exists() else f"{_distribution()}=={VERSION}"


def _distribution() -> str:
    from importlib.metadata import packages_distributions

    return packages_distributions()["wsh"][0]

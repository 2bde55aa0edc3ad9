"""From a profile to a program that is held: choose the backend, check that it claims enough, make the values that the keeper applies.

`Sandboxes.plan` raises `SandboxUnavailable` or `SandboxRefused` before anything exists; there is no way to get a plan that holds nothing.
"""

from __future__ import annotations

import functools
import os
import resource
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from wsh.sandbox import bubblewrap, landlock
from wsh.sandbox.claim import MEANING, Claim, explain, find_needs
from wsh.sandbox.point import PointRefused, SandboxLedger
from wsh.sandbox.profile import WORKSPACE, Profile, contains, read_facts
from wsh.sandbox.root import HOME_FILES, HOME_FOLDERS, Ground, find_problem, find_resolver, reaches, survey
from wsh.sandbox.seccomp import make_filter
from wsh.sandbox.section import SandboxPolicy
from wsh.sandbox.spare import SpareRulesets
from wsh.sandbox.syscall import machine
from wsh.wire.error import CwdNotFound, SandboxRefused, SandboxUnavailable
from wsh.wire.system.place import Places

BackendName: TypeAlias = Literal["bubblewrap", "landlock"]


@dataclass(frozen=True)
class Holding:
    """How a session is held, as it is shown and kept with it."""

    profile: Profile
    backend: BackendName
    weaker: tuple[str, ...] = ()
    """Claims that the profile needs and the backend does not hold; only where the user accepted that."""
    folder: str = ""

    def to_facts(self) -> dict[str, Any]:
        return {
            "profile": self.profile.to_facts(),
            "backend": self.backend,
            "weaker": list(self.weaker),
            "folder": self.folder,
        }


def read_holding(facts: Mapping[str, Any] | None) -> Holding | None:
    """The inverse of `to_facts`."""
    if not facts:
        return None
    backend: BackendName = "landlock" if facts["backend"] == "landlock" else "bubblewrap"
    weaker = tuple(map(str, facts.get("weaker") or ()))
    return Holding(read_facts(facts["profile"]), backend, weaker, str(facts.get("folder") or ""))


@dataclass
class SandboxPlan:
    """What to start, and what the keeper puts on it. Its maker closes it after the spawn."""

    holding: Holding
    path: str
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    id: str
    ruleset_fd: int | None = None
    terminal_access: int = 0
    filter: bytes = b""
    held: dict[int, int] = field(default_factory=dict)
    ignored: tuple[int, ...] = ()
    limits: list[tuple[int, int]] = field(default_factory=list)
    wrapped: bool = False
    cwd_fd: int | None = None
    _open: list[int] = field(default_factory=list)

    def close(self) -> None:
        """Close our descriptors. Idempotent."""
        while self._open:
            os.close(self._open.pop())


class Sandboxes:
    """The backends of this machine, tried at the first need."""

    def __init__(self, places: Places, home: str | None = None) -> None:
        self.ground: Ground = survey(home, (places.config, places.state, places.runtime))
        self.ledger = SandboxLedger(places.state / "sandbox", places.server)
        self.rulesets = SpareRulesets()

    def close(self) -> None:
        """Let go of what was made ahead. Idempotent."""
        self.rulesets.close()

    def find_missing(self, backend: BackendName) -> str | None:
        return bubblewrap.find_missing() if backend == "bubblewrap" else landlock.find_missing()

    def list_claims(self, backend: BackendName, profile: Profile) -> frozenset[Claim]:
        if backend == "bubblewrap":
            return bubblewrap.list_claims(profile)
        return landlock.list_claims(profile, landlock.read_abi())

    def choose(self, profile: Profile, policy: SandboxPolicy) -> tuple[BackendName, frozenset[Claim]]:
        """The backend for that profile, and what it does not hold of what the profile needs. Raises SandboxUnavailable."""
        names: tuple[BackendName, ...] = ("bubblewrap", "landlock") if policy.backend == "auto" else (policy.backend,)
        needs = find_needs(profile)
        lacking: list[tuple[BackendName, frozenset[Claim]]] = []
        told = []
        for name in names:
            missing = self.find_missing(name)
            if missing is not None:
                told.append(f"{name}: {missing}")
                continue
            short = needs - self.list_claims(name, profile)
            if not short:
                return name, short
            lacking.append((name, short))
            told.append(f"{name} does not hold what the profile {profile.name!r} needs ({explain(short)})")
        if lacking and policy.accept_weaker:
            return min(lacking, key=lambda each: len(each[1]))
        hint = "Install what is missing and look at `wsh doctor`."
        if lacking:
            hint = "Install what is missing, or accept what does not hold with `accept_weaker = true` under [sandbox] in policy.toml."
        raise SandboxUnavailable("; ".join(told), hint, profile=profile.name)

    def check_folder(self, profile: Profile, policy: SandboxPolicy, cwd: str) -> str:
        """The canonical folder of a session in `cwd`. Raises SandboxRefused if it must stay closed."""
        folder = os.path.realpath(cwd)
        problem = find_problem(folder, self.ground, writable=profile.workspace)
        if problem is not None:
            raise SandboxRefused(
                f"A session with the profile {profile.name!r} cannot have this folder: {problem}.",
                hint="Start it in the folder of a project.",
                cwd=cwd,
                profile=profile.name,
            )
        if policy.folders and not any(contains(root, folder) for root in policy.folders):
            raise SandboxRefused(
                f"{folder} is outside the folders that sandboxed sessions may have.",
                hint=f"They are: {', '.join(policy.folders)} (sandbox.folders in policy.toml).",
                cwd=cwd,
                profile=profile.name,
            )
        return folder

    def plan(
        self,
        profile: Profile,
        policy: SandboxPolicy,
        *,
        id: str,
        path: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        given: Collection[str],
        cwd: str,
        cwd_fd: int | None = None,
        identity: tuple[int, int] | None = None,
        needed: Sequence[str] = (),
    ) -> SandboxPlan:
        """Hold the program at `path`. `env` is what it would have, `given` what the caller set by name and keeps; `needed` are paths it reads.

        Blocks: run it in a thread. Raises WshError; nothing is left then. After the session's end, call `release` with its id.
        """
        backend, short = self.choose(profile, policy)
        folder = self.check_folder(profile, policy, cwd)
        writable = tuple(dict.fromkeys((*((folder,) if profile.workspace else ()), *profile.writable)))
        readable = (*profile.readable, *(os.path.realpath(each) for each in needed))
        if not reaches(path, (*readable, *writable, folder)):
            raise SandboxRefused(
                f"{path} lies outside what the profile {profile.name!r} can read, so it cannot run there.",
                hint="Add its folder to `readable` of a profile in policy.toml, or use another program.",
                path=path,
                profile=profile.name,
            )
        kept = {key: value for key, value in env.items() if key in given or profile.keeps_variable(key)}
        if os.path.realpath(kept.get("HOME", "/")) == self.ground.home:
            kept["HOME"] = self.ground.home  # a link to it is not there inside
        holding = Holding(profile, backend, tuple(sorted(short)), folder)
        plan = SandboxPlan(holding, path, tuple(argv), kept, folder, id)
        try:
            plan.filter = make_filter(
                profile,
                machine(),
                namespaces=backend == "bubblewrap",
                attributes=backend == "bubblewrap" or profile.writes,
            )
            if profile.file_bytes is not None:
                plan.limits.append((resource.RLIMIT_FSIZE, profile.file_bytes))
            if Claim.MEMORY in short and profile.memory_bytes is not None:
                plan.limits.append((resource.RLIMIT_AS, profile.memory_bytes))
            plan.limits.append((resource.RLIMIT_CORE, 0))
            roots = _open_roots((folder, *(root for root in writable if root != folder)), cwd_fd, folder, plan)
            if backend == "bubblewrap":
                self._plan_bubblewrap(plan, policy, roots, writable, readable, identity, path)
            else:
                self._plan_landlock(plan, roots, writable, readable)
        except BaseException:
            plan.close()
            self.release(id)
            raise
        return plan

    def _plan_bubblewrap(
        self,
        plan: SandboxPlan,
        policy: SandboxPolicy,
        roots: Mapping[str, int],
        writable: Sequence[str],
        readable: Sequence[str],
        identity: tuple[int, int] | None,
        path: str,
    ) -> None:
        profile, folder = plan.holding.profile, plan.cwd
        plan_mounts = functools.partial(
            bubblewrap.plan_mounts,
            profile,
            home=self.ground.home,
            folder=folder,
            writable=writable,
            readable=readable,
        )
        found: list[bubblewrap.Mounts] = []

        def choose(made: set[str]) -> list[tuple[str, bool]]:
            try:
                found.append(plan_mounts(made=made))
            except bubblewrap.NotPossible as problem:
                if not policy.accept_weaker:
                    hint = "A protected path must be a file or a folder."
                    raise SandboxUnavailable(str(problem), hint, profile=profile.name) from None
                found.append(plan_mounts(made=made, protect=False))
                weaker = (*plan.holding.weaker, Claim.PROTECTED.value)
                plan.holding = Holding(profile, "bubblewrap", weaker, folder)
            return found[0].points

        try:
            self.ledger.make_points(plan.id, choose)
        except PointRefused as problem:
            raise SandboxRefused(
                f"A session with the profile {profile.name!r} cannot have this folder: {problem}.",
                hint="Start it in a folder that you may write to, or ask for the profile 'read-only'.",
                cwd=folder,
                profile=profile.name,
            ) from None
        mounts = found[0]
        try:
            identities = bubblewrap.identify(roots, mounts) if profile.writes else {}
        except OSError:
            raise _replaced(folder) from None
        proofs = bubblewrap.number_proofs(list(roots))
        held = {number: roots[root] for number, root in proofs.items()}
        program_fd = None
        if identity is not None:
            program_fd = bubblewrap.PROGRAM_FD
            held[program_fd] = _open_program(path, identity, plan)
        try:
            wrapped = bubblewrap.wrap(
                profile,
                mounts,
                path=path,
                argv=plan.argv,
                env=plan.env,
                proofs=proofs,
                identities=identities.values(),
                program_fd=program_fd,
            )
        except bubblewrap.NotPossible as problem:
            raise SandboxUnavailable(str(problem), "Look at `wsh doctor`.", profile=profile.name) from None
        held[bubblewrap.ARGS_FD] = _fill("wsh-sandbox-words", wrapped.args, plan)
        held[bubblewrap.SCRIPT_FD] = _fill("wsh-sandbox-script", wrapped.script, plan)
        held[bubblewrap.FILTER_FD] = _fill("wsh-sandbox-filter", plan.filter, plan)
        plan.filter = b""
        plan.path, plan.argv, plan.env = wrapped.path, wrapped.argv, {}
        plan.cwd = "/"  # of the monitor outside; the program's is among the words
        plan.held, plan.ignored, plan.wrapped = held, tuple(bubblewrap.IGNORED), True

    def _plan_landlock(
        self, plan: SandboxPlan, roots: Mapping[str, int], writable: Sequence[str], readable: Sequence[str]
    ) -> None:
        profile = plan.holding.profile
        abi = landlock.read_abi()
        temporary = self.ledger.make_temporary(plan.id)
        home = os.path.join(temporary, "home")
        os.mkdir(home, 0o700)
        if any(os.path.basename(shell) == "fish" for shell in (plan.path, plan.env.get("SHELL", ""))):
            for name in HOME_FOLDERS:
                os.makedirs(os.path.join(home, name))
        for name in HOME_FILES:
            os.symlink("/dev/null", os.path.join(home, name))
        for name in ("TMPDIR", "TMP", "TEMP"):
            plan.env[name] = temporary
        plan.env["TMPPREFIX"] = os.path.join(temporary, "zsh")  # of zsh, which does not look at the others
        plan.env["HOME"] = home
        own = _open_folder(temporary, plan)
        plan.cwd_fd = roots[plan.cwd]
        resolver = find_resolver() if profile.network == "on" else None
        plan.ruleset_fd = self.rulesets.take(profile.network == "off", abi)
        plan._open.append(plan.ruleset_fd)
        landlock.extend_ruleset(
            plan.ruleset_fd,
            abi,
            readable=[*readable, *([resolver] if resolver is not None else [])],
            folder=plan.cwd_fd,
            writable=[own, *(roots[root] for root in writable)],
        )
        plan.terminal_access = landlock.terminal_access(abi)

    def release(self, id: str) -> None:
        """The session has ended: take away what was made for it. Blocks; idempotent."""
        self.ledger.remove(id)

    def describe(self, policy: SandboxPolicy) -> dict[str, Any]:
        """Which backend holds and what it does not cover, for `wsh doctor` and `check_status`."""
        backends: list[dict[str, Any]] = []
        for name in _BACKENDS:
            missing = self.find_missing(name)
            told: dict[str, Any] = {"name": name, "available": missing is None}
            if missing is not None:
                told["missing"] = missing
            else:
                short = frozenset(Claim) - self.list_claims(name, WORKSPACE)
                told["not_covered"] = {claim.value: MEANING[claim] for claim in Claim if claim in short}
            if name == "landlock":
                told["abi"] = landlock.read_abi()
            backends.append(told)
        profiles: dict[str, dict[str, Any]] = {}
        for profile in policy.profiles.values():
            try:
                name, short = self.choose(profile, policy)
                profiles[profile.name] = {"backend": name, "weaker": sorted(short)}
            except SandboxUnavailable as problem:
                profiles[profile.name] = {"backend": None, "missing": problem.message}
        agents = policy.agents
        return {
            "agents": "off" if agents is None else agents.name,
            "accept_weaker": policy.accept_weaker,
            "strict": policy.strict,
            "backends": backends,
            "profiles": profiles,
        }


_BACKENDS: tuple[BackendName, ...] = ("bubblewrap", "landlock")


def _open_folder(path: str, plan: SandboxPlan) -> int:
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    plan._open.append(fd)
    return fd


def _open_roots(roots: Sequence[str], cwd_fd: int | None, folder: str, plan: SandboxPlan) -> dict[str, int]:
    """Each root's descriptor: what was judged is what is mounted, whatever its name means by then. Raises CwdNotFound or SandboxRefused."""
    found = {}
    for root in roots:
        try:
            fd = _open_folder(root, plan)
        except OSError as problem:
            if root == folder:
                raise CwdNotFound(root) from None
            name = plan.holding.profile.name
            raise SandboxRefused(
                f"{root}, which the profile {name!r} lists as writable, cannot be opened: {problem.strerror}.",
                hint="Make the folder, or take it out of `writable` in policy.toml.",
                profile=name,
            ) from None
        if os.readlink(f"/proc/self/fd/{fd}") != root:
            raise _replaced(root)
        if root == folder and cwd_fd is not None and not os.path.samestat(os.fstat(fd), os.fstat(cwd_fd)):
            raise SandboxRefused(f"{root} is not the folder that was decided on any more.", hint="Try again.", cwd=root)
        found[root] = fd
    return found


def _replaced(root: str) -> SandboxRefused:
    return SandboxRefused(f"{root} was replaced while the session was made.", hint="Try again.", cwd=root)


def _open_program(path: str, identity: tuple[int, int], plan: SandboxPlan) -> int:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    plan._open.append(fd)
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) != identity:
        raise SandboxRefused(f"{path} is not the file that was decided on any more.", hint="Try again.", path=path)
    return fd


def _fill(name: str, data: bytes, plan: SandboxPlan) -> int:
    fd = os.memfd_create(name, os.MFD_CLOEXEC)
    plan._open.append(fd)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd

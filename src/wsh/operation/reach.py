"""What agents may read with the workspace tools: no more than a session that they could open.

wsh's own folders and the kernel's view of processes are closed to them always. Where the policy puts agents into a sandbox, so is all that no sandbox
sees, and a workspace is a folder that the profile makes readable or that a session of theirs could have. Paths are canonical.
"""

from __future__ import annotations

from wsh.sandbox.profile import Profile, contains
from wsh.sandbox.root import Ground, find_problem, reaches
from wsh.sandbox.secret import SYSTEM_SECRETS
from wsh.sandbox.section import SandboxPolicy
from wsh.wire.error import SandboxRefused

_PROCESSES = "/proc"
"""Memory, variables and open files of processes, the server's own among them."""


class AgentReach:
    def __init__(self, ground: Ground, policy: SandboxPolicy) -> None:
        self._ground = ground
        self._policy = policy
        hidden = () if policy.agents is None else (*ground.never, *SYSTEM_SECRETS)
        self.closed: tuple[str, ...] = tuple(dict.fromkeys((*ground.own, _PROCESSES, *hidden)))

    def check_root(self, root: str) -> None:
        """Raises SandboxRefused where an agent may not have `root` as a workspace."""
        self.check_file(root)
        profile = self._policy.agents
        if profile is None or reaches(root, (*profile.readable, *profile.writable)):
            return
        problem = self._find_problem(root, profile)
        if problem is not None:
            raise SandboxRefused(
                f"Agents work in the sandbox {profile.name!r} here, which cannot read this workspace: {problem}.",
                hint="Name the folder of a project as workspace, or ask the person to show you what you need.",
                workspace=root,
                agents=profile.name,
            )

    def check_file(self, path: str) -> None:
        """Raises SandboxRefused where `path` is closed to agents, or lies below what is."""
        closed = next((closed for closed in self.closed if contains(closed, path)), None)
        if closed is None:
            return
        whose = "belongs to wsh itself" if closed in self._ground.own else "is closed"
        raise SandboxRefused(
            f"{path} cannot be read by agents: {closed} {whose}.",
            hint="Name the folder of a project as workspace, or ask the person to look at the file.",
            path=path,
        )

    def _find_problem(self, root: str, profile: Profile) -> str | None:
        problem = find_problem(root, self._ground, writable=profile.workspace)
        folders = self._policy.folders
        if problem is None and folders and not any(contains(folder, root) for folder in folders):
            return f"{root} is outside the folders that sandboxed sessions may have ({', '.join(folders)})"
        return problem

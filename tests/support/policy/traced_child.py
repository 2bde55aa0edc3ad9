"""What strace watches for `traced`: it starts one command after the other, each marked in the trace.

It is executed for every program that has a model, so it imports next to nothing.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import sys

MARK = "/wsh-case/"
NOBODY = 65534
_SECONDS = 20
_OUTPUT_BYTES = 16 * 1024 * 1024


def main(listed: str, output: str) -> None:
    with open(listed, "rb") as file:
        cases = marshal.load(file)
    out = os.open(output, os.O_RDWR | os.O_CREAT, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT_BYTES, _OUTPUT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number, (argv, path, cwd, env) in enumerate(cases):
        os.lseek(out, 0, os.SEEK_SET)
        child = os.fork()
        if child == 0:
            try:
                os.dup2(null, 0)
                os.dup2(out, 1)
                os.dup2(out, 2)
                os.chdir(cwd)
                if os.getuid() == 0:
                    os.setgroups([])
                    os.setresgid(NOBODY, NOBODY, NOBODY)
                    os.setresuid(NOBODY, NOBODY, NOBODY)
                # A program that would wait for ever is ended.
                signal.alarm(_SECONDS)
                _mark(str(number))
                os.execve(path, argv, env)
            finally:
                os._exit(127)
        os.waitpid(child, 0)
    _mark("end")


def _mark(name: str) -> None:
    try:
        os.unlink(MARK + name)
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

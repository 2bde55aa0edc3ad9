"""A server that only consumes, to be killed: `python -m tests.support.process.consumer COMMAND_JSON`.

Takes over what the keeper has, starts the children it is told to start, and consumes rings in random portions.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from pathlib import Path

from tests.support.process.keeper import OPTIONS, journal_in
from wsh.process import ChildHandle, KeeperClient, SpawnSpec
from wsh.wire.system.place import find_places


async def main(command: dict[str, list[str]], folder: Path) -> None:
    keeper = await KeeperClient.open(find_places(), OPTIONS)
    for name, argv in command.items():
        spec = SpawnSpec(
            argv,
            "/",
            dict(os.environ),
            journal=journal_in(folder / name, segment_bytes=256 * 1024),
            ring_bytes=128 * 1024,
            meta={"name": name},
        )
        await keeper.spawn(spec)

    def dirty(children: list[ChildHandle]) -> None:
        for child in children:
            count = random.randint(1, max(1, child.ring.readable()))
            child.ring.consume(min(count, child.ring.readable()))
            if child.ring.readable():
                asyncio.get_running_loop().call_later(random.random() * 0.002, dirty, [child])

    keeper.on_dirty = dirty
    dirty(list(keeper.children.values()))
    print("serving", len(keeper.children), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]), Path(sys.argv[2])))

"""`python -m tests.fuzz [--seconds N] [--bytes N] [--first N] [--store FOLDER]`"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tests.fuzz.campaign import campaign

_STORE = Path(__file__).parent.parent / "terminal" / "killers"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--bytes", type=float, default=1e9)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--store", type=Path, default=_STORE)
    asked = parser.parse_args()
    tally = campaign(
        asked.first,
        seconds=asked.seconds,
        limit_bytes=int(asked.bytes),
        store=asked.store,
        tell=lambda line: print(line, flush=True),
    )
    print(json.dumps({"cases": tally.cases, "bytes": tally.fed, "deaths": tally.deaths}, indent=1))


if __name__ == "__main__":
    main()

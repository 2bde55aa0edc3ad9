"""One way in which a machine may differ: order of tests, hash seed, locale, time zone and monospace font.

    python -m tests.support.variation SEED COMMAND...

Prints the variation that SEED (any text) draws and runs the command in it; `{order}` in its words becomes the option
for the order. What Debian's packages of this machine cannot give is not drawn.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

LOCALES = ("C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8", "ja_JP.UTF-8")
ZONES = ("UTC", "Pacific/Chatham", "America/St_Johns", "Asia/Kathmandu", "Pacific/Kiritimati")
FONTS = ("DejaVu Sans Mono", "Liberation Mono", "Noto Sans Mono")

_FONTS_CONF = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <match target="pattern">
    <test name="family"><string>monospace</string></test>
    <edit name="family" mode="assign" binding="strong"><string>{font}</string></edit>
  </match>
</fontconfig>
"""


@dataclass(frozen=True)
class Variation:
    order_seed: int
    hash_seed: int
    locale: str
    zone: str
    font: str

    def __str__(self) -> str:
        return (
            f"order {self.order_seed}, hash seed {self.hash_seed}, locale {self.locale}, "
            f"time zone {self.zone}, font {self.font}"
        )

    def environ(self, folder: Path) -> dict[str, str]:
        """The variables that bring it about; `folder` takes the files they name."""
        conf = folder / "fonts.conf"
        conf.write_text(_FONTS_CONF.format(font=escape(self.font)), encoding="utf-8")
        variables = {"PYTHONHASHSEED": str(self.hash_seed), "TZ": self.zone, "FONTCONFIG_FILE": str(conf)}
        # What programs say stays English, for tests read it; numbers, dates, letters and their order do not.
        variables |= {"LANG": self.locale, "LC_MESSAGES": "C.UTF-8"}
        if self.locale != "C.UTF-8":
            variables["LOCPATH"] = str(folder)
            language = self.locale.partition(".")[0]
            words = ["localedef", "-i", language, "-f", "UTF-8", str(folder / self.locale)]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return variables


def draw(seed: str) -> Variation:
    # Not the seed's own hash: that is another one in every process.
    dice = random.Random(hashlib.sha256(seed.encode()).digest())
    order_seed, hash_seed = dice.randrange(1, 10**6), dice.randrange(1, 10**6)
    return Variation(order_seed, hash_seed, dice.choice(_locales()), dice.choice(_zones()), dice.choice(_fonts()))


def _locales() -> list[str]:
    definitions = Path("/usr/share/i18n/locales")
    has_tool = shutil.which("localedef") is not None
    return [
        name for name in LOCALES if name == "C.UTF-8" or has_tool and (definitions / name.partition(".")[0]).exists()
    ]


def _zones() -> list[str]:
    return [name for name in ZONES if name == "UTC" or Path("/usr/share/zoneinfo", name).exists()]


@cache
def _fonts() -> list[str]:
    try:
        listed = subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return list(FONTS[:1])
    families = {name.strip() for line in listed.splitlines() for name in line.split(",")}
    return [name for name in FONTS if name in families] or list(FONTS[:1])


def run(
    variation: Variation, command: list[str], environ: Mapping[str, str] | None = None, limit_s: float | None = None
) -> int:
    """Run a command in it and return its status. At the limit it is interrupted, as by Ctrl+C, and has a minute to end."""
    with tempfile.TemporaryDirectory(prefix="wsh-variation-") as folder:
        changed = {**(environ or os.environ), **variation.environ(Path(folder))}
        changed.pop("LC_ALL", None)
        words = [word.replace("{order}", f"--order-seed={variation.order_seed}") for word in command]
        with subprocess.Popen(words, env=changed) as process:
            try:
                return process.wait(limit_s)
            except subprocess.TimeoutExpired:
                print(f"not ended after {limit_s} s: interrupted", flush=True)
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(60)
                except subprocess.TimeoutExpired:
                    process.kill()
                return process.wait() or 1


def main(arguments: list[str]) -> int:
    seed, *command = arguments
    variation = draw(seed)
    print(f"variation of {seed[:12]}: {variation}", flush=True)
    return run(variation, command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

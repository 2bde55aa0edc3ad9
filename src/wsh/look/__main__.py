"""`python -m wsh.look`: print the tokens as CSS."""

from __future__ import annotations

import sys

from wsh.look import css

sys.stdout.write(css())

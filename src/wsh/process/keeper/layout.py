"""Where the shared counters lie. Shared by keeper and server; a change here is a change of `PROTOCOL`.

One *control* memfd per connected server: a page of flags, two maps with one byte per slot ("look at this slot"), then
128 bytes of counters for each slot. One *ring* memfd per output stream: the data, then the child's meta blob.
Counters are 64-bit words read and written through `memoryview.cast("Q")`, which neither tears nor copies.
"""

from __future__ import annotations

import os

PROTOCOL = 1

VERSION = 3
"""Of the words below. A keeper of 0.1.0 says none and knows no note; it hands all words of a slot on all the same."""

MAX_SLOTS = 1 << 17
PAGE = 4096

# bytes in the first page of the control memfd
TO_SERVER_RUNG = 0
TO_KEEPER_RUNG = 64

TO_SERVER_MAP = PAGE
TO_KEEPER_MAP = PAGE + MAX_SLOTS
WORDS_AT = PAGE + 2 * MAX_SLOTS
WORDS_PER_SLOT = 16
CONTROL_BYTES = WORDS_AT + MAX_SLOTS * WORDS_PER_SLOT * 8

# words of a slot; K is written by the keeper, S by the server
HEAD = 0  # K: offset after the newest byte
TAIL = 1  # S: offset up to which the server has consumed
REPLIED = 2  # S: queries before this offset have been answered
FLAGS = 3  # K
JOURNALED = 4  # K: offset up to which bytes are on disk, or given up
JOURNAL_STATE = 5  # K
JOURNAL_START = 6  # K: oldest offset still on disk
JOURNAL_DROPPED = 7  # K: bytes that a failing disk cost
RING_BYTES = 8  # K
CHILD_ID = 9  # K
LAST_OUTPUT_US = 10  # K: time of the newest byte, microseconds since the epoch
RING_OLDEST = 11  # K: the ring has no byte before this offset, even if it has room for it
NOTE = 12  # S: what the terminal engine is at, for who finds it after a death; 0 while it is at nothing
NOTE_AT = 13  # S: from which offset on
TYPED = 14  # S: two words: how much of what two viewers typed has been written

FLAG_EOF = 1
FLAG_PAUSED = 2

JOURNAL_OFF = 0
JOURNAL_OK = 1
JOURNAL_FULL = 2

META_BYTES = 64 * 1024

# sidecar records: offset, time, kind, rows, cols, note, extra
RECORD = "<QQHHHHQ"
KIND_OUTPUT = 1
KIND_SIZE = 2
KIND_EXIT = 3
RESTATED = 1  # note of the size that each segment begins with: news only to who begins to read there

MARK_BASE = 1 << 50

# x86 keeps stores in order and a lock operation is a full barrier there; elsewhere every bell is a system call.
ORDERED = os.uname().machine in ("x86_64", "i686", "AMD64")

"""Bytes in, screen out: libghostty behind one small class.

Knows no event loop, no file, no clock and no process.
"""

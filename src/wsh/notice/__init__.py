"""Telling the person: what is worth a notice, by which channels it goes, and an outbox on disk that remembers what was told.

Notices are made from the sessions as they are, like the inbox, and from requests that the composition root hands in. This room knows
no contract and no door. A notice is told at most once by a channel: its state is on disk before the first byte leaves.
"""

"""Approvals: what a person is asked, what they are shown, which answer counts. Pure apart from looking at the files that would run.

`request` is what is asked, `evidence` what would run, `judgement` what the policies say of it, `card` what a person is shown and may press,
`answer` which answers count, `ledger` that exactly one does, `queue` the way of a request through all of these. `end` is the seam to
whatever shows cards and runs commands: the window, the server, a script. Knows no socket, no frame, no look.
"""

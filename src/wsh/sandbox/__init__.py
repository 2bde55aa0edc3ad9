"""Sessions held in by the kernel: profiles, what each backend claims, and how a program is started inside.

`profile` says what a sandbox allows, `section` reads it from `policy.toml`, `claim` compares what a profile needs with what a backend
holds. The backends are `bubblewrap` and `landlock`; both make values only (words, rule sets, filters) that the keeper applies between fork
and exec. This room knows no session, no caller and no server.
"""

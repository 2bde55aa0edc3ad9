"""Files, index, search and transcripts of a workspace.

A workspace is any directory. The room lists its files, cuts them into chunks (symbols, headings, windows of lines),
keeps them in an SQLite index beside what terminals printed, and answers questions about both. It offers six tools
(`workspace.tool`) that any door can mount; it knows no door, no session of its own, no policy: what it needs from
there comes in through small protocols (`workspace.surroundings`).
"""

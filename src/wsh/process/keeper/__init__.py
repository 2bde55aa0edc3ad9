"""The keeper: a small process that owns every terminal and outlives the server.

Run by path as `python -I -S keeper/main.py`; it uses the standard library alone and never imports the rest of wsh.
`layout` and `frame` are shared with the server side. It knows processes, bytes and offsets; it knows no escape
sequence, no session name and no policy.
"""

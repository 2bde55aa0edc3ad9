"""What a person should look at: programs that ask, commands that ended, and what the person has put aside.

Made from the sessions as they are now, so nothing is lost or doubled when a server dies; only what the person marked is kept in a
file. Requests for approval are handed in by the operation that lists the inbox: this room knows sessions and no contract.
"""

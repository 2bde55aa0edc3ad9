"""Other machines: `gpu1/train` is the session `train` of the host `gpu1`.

What forwards is apart from what carries. This folder knows addresses, calls, answers, streams and which hosts there are; a carrier
(`ssh/`) brings them to a host and back. A call is made once, however often it is sent. What an operation is, and how doors spell
one, is not known here: `wsh.operation.forward` makes calls of operations into these values, and these values into calls.
"""

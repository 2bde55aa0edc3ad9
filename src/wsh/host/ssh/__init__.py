"""OpenSSH as it is: one connection per host, the far server's unix socket through it, `wsh relay` where sshd forbids that."""

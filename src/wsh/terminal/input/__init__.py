"""Keys, the mouse and pasted text as the bytes that a program expects."""

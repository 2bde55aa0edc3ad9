"""Asking a person: requests that wait, their answers, and other hosts' questions."""

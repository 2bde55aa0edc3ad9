"""From a command's text to words, as far as they are known before a shell has run."""

"""What `wsh attach` does by itself: the keys that are its own, and the pages that it draws over the session's picture."""

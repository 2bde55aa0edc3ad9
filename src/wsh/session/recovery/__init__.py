"""After a death: bringing sessions back, and finding and leaving out what killed the engine."""

"""The window's process: Qt, QML and the tray. Everything else is in the service."""

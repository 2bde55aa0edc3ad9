"""The Qt/QML window where a person sees and decides (extra `gui`)."""

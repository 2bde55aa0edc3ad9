"""The scorecard: suites that other projects wrote, fed to wsh and to three terminals that people know."""

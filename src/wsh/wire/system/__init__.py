"""What the machine gives us: folders and files, locks, clocks, shortages, who owns a process."""

"""What a session prints, on its way into its terminal."""

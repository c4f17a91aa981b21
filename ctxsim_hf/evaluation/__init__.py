"""Agreement of similarities with people."""

"""Publishing folders on the Hub."""

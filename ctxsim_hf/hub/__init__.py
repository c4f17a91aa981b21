"""Folders to repositories on the Hub, with cards that say what they are."""

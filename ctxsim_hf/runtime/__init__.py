"""What every stage stands on: stage folders, files written whole, blocks and executors, errors."""

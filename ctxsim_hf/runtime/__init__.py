"""The base of every stage: stage folders, atomic files, blocks and executors, validation, errors."""

"""Compare sentences by the contexts they fit, and explain the result."""

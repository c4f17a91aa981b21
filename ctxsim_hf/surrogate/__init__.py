"""Train surrogates, export them to ONNX, and search with them."""

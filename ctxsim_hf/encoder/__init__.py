"""Sentence encoders: the model of surrogates, and running it with torch or ONNX."""

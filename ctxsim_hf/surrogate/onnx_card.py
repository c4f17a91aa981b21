"""The README.md of an exported surrogate, with the lines of Python that use it."""

CARD = """# A sentence encoder in ONNX

It turns sentences into vectors of {vector_size} numbers and length 1, whose dot product is their similarity.
{precision}. In this folder, with `pip install onnxruntime tokenizers`:

```python
import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

tokenizer, session = Tokenizer.from_file("tokenizer.json"), InferenceSession("model.onnx")
tokenizer.encode_special_tokens = {split_special_tokens}  # whether "<s>" in a sentence is text
batch = tokenizer.encode_batch(["A man plays a guitar.", "Someone makes music.", "It rains."])
input_ids = np.array([row.ids for row in batch])
attention_mask = np.array([row.attention_mask for row in batch])
(vectors,) = session.run(["sentence_embedding"], {{"input_ids": input_ids, "attention_mask": attention_mask}})
print(vectors @ vectors.T)
```

A sentence of more than {max_tokens} tokens is cut. ctxsim_hf opens this folder with `SentenceEncoder.from_pretrained`.
The lowest cosine of a vector with that of the model in torch was {least_cosine:.6f}, on {sentences} sentences.
"""

PRECISIONS = {
    None: "Numbers have 32 bits",
    "int8": "Matrix products are in int8, so the vectors are near those of the model in torch but not equal",
}

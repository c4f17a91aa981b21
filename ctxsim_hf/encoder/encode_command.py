"""A text file with one sentence per line -> a `.npy` file with one vector per row: `ctxsim encode`."""

from dataclasses import dataclass

from transformers.hf_argparser import HfArg

from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.validation import Count
from ctxsim_hf.runtime.working import refuse_same_file
from ctxsim_hf.text.lines import is_pipe, open_lines


@dataclass(kw_only=True)
class EncodeArguments(Arguments):
    surrogate: str = HfArg(help="Folder of a surrogate, or its id on the Hub.")
    input: str = HfArg(
        help="Text file with one sentence per line, or - for standard input; an empty line is an empty sentence."
    )
    output: str = HfArg(help="The .npy file to write; row i is the vector of line i, counting from 0.")
    normalize: bool = HfArg(default=False, help="Scale vectors to length 1.")
    tokens_per_batch: Count | None = HfArg(
        default=None, help="Tokens in a batch, padding included; by default what suits the device."
    )
    num_processes: Count = HfArg(default=1, help="Number of processes.")


def run(arguments: EncodeArguments) -> str:
    """Write the vectors and return a line that says so."""
    if not is_pipe(arguments.input):
        refuse_same_file(arguments.input, arguments.output)
    lines = open_lines(arguments.input)
    encoder = SentenceEncoder.from_pretrained(arguments.surrogate)
    vectors = encoder.encode(
        lines,
        normalize_embeddings=arguments.normalize,
        output=arguments.output,
        tokens_per_batch=arguments.tokens_per_batch,
        num_processes=arguments.num_processes,
    )
    return f"wrote {len(vectors)} vectors of size {vectors.shape[1]} to {arguments.output}"

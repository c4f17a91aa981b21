"""A text file with one sentence per line -> a `.npy` file with one vector per row: `ctxsim encode`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from transformers.hf_argparser import HfArg

from ctxsim_hf.encoder.sentence_encoder import SentenceEncoder
from ctxsim_hf.runtime.arguments import Arguments
from ctxsim_hf.runtime.errors import UserError
from ctxsim_hf.runtime.validation import Count
from ctxsim_hf.runtime.working import refuse_same_file


@dataclass(kw_only=True)
class EncodeArguments(Arguments):
    surrogate: str = HfArg(help="Folder of a surrogate, or its id on the Hub.")
    input: str = HfArg(help="Text file with one sentence per line; an empty line is an empty sentence.")
    output: str = HfArg(help="The .npy file to write; row i is the vector of line i, counting from 0.")
    normalize: bool = HfArg(default=False, help="Scale vectors to length 1.")
    tokens_per_batch: Count | None = HfArg(
        default=None, help="Tokens in a batch, padding included; by default what suits the device."
    )
    num_processes: Count = HfArg(default=1, help="Number of processes.")


def run(arguments: EncodeArguments) -> str:
    """Write the vectors and return a line that says so."""
    refuse_same_file(arguments.input, arguments.output)
    lines = Lines(Path(arguments.input))
    encoder = SentenceEncoder.from_pretrained(arguments.surrogate)
    vectors = encoder.encode(
        lines,
        normalize_embeddings=arguments.normalize,
        output=arguments.output,
        tokens_per_batch=arguments.tokens_per_batch,
        num_processes=arguments.num_processes,
    )
    return f"wrote {len(vectors)} vectors of size {vectors.shape[1]} to {arguments.output}"


class Lines:
    """The lines of a text file, which are counted at once and read lazily."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self.number = sum(1 for _ in file)
        except OSError as error:
            raise UserError(f"cannot read {str(path)!r}: {error.strerror}") from error

    def __len__(self) -> int:
        return self.number

    def __iter__(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    raise UserError(f"{str(self.path)!r}, line {number}: expected UTF-8, {error.reason}") from error
                yield text.removesuffix("\n").removesuffix("\r")

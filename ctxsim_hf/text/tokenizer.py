"""Chunks -> a fast tokenizer, a stage: `ctxsim train-tokenizer`.

It is sentencepiece's unigram model with byte fallback, trained on a bounded sample of the training sentences and
converted to a `tokenizers` model with equal ids, so that `AutoTokenizer` opens it without custom code. The special
tokens and their ids are RoBERTa's, so that a RoBERTa can be trained from scratch with it.
"""

import io
import string
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pyarrow.parquet as pq
import xxhash
from annotated_types import Ge
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import Unigram
from tokenizers.processors import TemplateProcessing
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ctxsim_hf.runtime.arguments import StageArguments
from ctxsim_hf.runtime.record import open_stage, read_counts
from ctxsim_hf.runtime.stage import Stage
from ctxsim_hf.runtime.validation import Count, OneOf, Seed
from ctxsim_hf.text.chunks import COMMANDS, SHARD_PATTERN, describe_chunks
from ctxsim_hf.text.word_tokenizer import train_word_tokenizer

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>")  # ids 0 to 3, as in RoBERTa; <mask> comes last
MASK_TOKEN = "<mask>"
TOKENS = ("pieces", "words")
NUM_BYTES = 256
# Every printable ASCII character is a piece, whatever the corpus, so that plain text never needs byte fallback.
ASCII = "".join(character for character in string.printable if not character.isspace())
MIN_VOCABULARY = len(SPECIAL_TOKENS) + NUM_BYTES + len(ASCII) + 100


@dataclass(kw_only=True)
class TokenizerArguments(StageArguments):
    chunks: str = HfArg(help="Folder made by ctxsim chunk.")
    vocab_size: Annotated[int, Ge(MIN_VOCABULARY)] = HfArg(
        default=16_000, help="Size of the vocabulary, special tokens included."
    )
    tokens: Annotated[str, OneOf(TOKENS)] = HfArg(
        default="pieces",
        help="pieces: sentencepiece's. words: whole words, and pieces of rare ones; for static surrogates.",
    )
    lowercase: bool = HfArg(default=False, help="Lowercase text in the tokenizer.")
    max_sample_sentences: Count = HfArg(
        default=200_000, help="Maximum number of sentences to train on, which bounds memory on any corpus."
    )
    max_length: Count = HfArg(default=512, help="Maximum number of tokens in the input of a model.")
    seed: Seed = HfArg(default=0, help="Seed of the sample.")

    unrecorded: ClassVar[tuple[str, ...]] = (*StageArguments.unrecorded, "chunks")


def run(arguments: TokenizerArguments) -> dict[str, Any]:
    """Run the stage and return the counts that stage.json records."""
    chunked = open_stage(arguments.chunks, *COMMANDS)
    inputs = {"chunks": describe_chunks(arguments.chunks)}
    with Stage(
        "train-tokenizer", arguments, inputs, packages=("sentencepiece", "tokenizers", "transformers")
    ) as stage:
        if not stage.finished:
            normalizer = build_normalizer(arguments.lowercase)
            share = arguments.max_sample_sentences / max(1, chunked["counts"]["sentences"]["train"])
            sample = _Sample(Path(arguments.chunks), share, arguments.seed, normalizer)
            if arguments.tokens == "words":
                tokenizer = train_word_tokenizer(sample, arguments.vocab_size, normalizer, SPECIAL_TOKENS, MASK_TOKEN)
                tokenizer.post_processor = build_marks()
            else:
                tokenizer = build_tokenizer(train_sentencepiece(sample, arguments.vocab_size - 1), normalizer)
            save_tokenizer(tokenizer, stage.folder, arguments.max_length)
            stage.finish({"vocabulary": tokenizer.get_vocab_size(), "sample_sentences": sample.sentences})
        return read_counts(stage.output)


class _Sample:
    """A sample of normalised training sentences, chosen by a hash of their position, so that it needs no memory."""

    def __init__(self, chunks: Path, share: float, seed: int, normalizer: normalizers.Normalizer) -> None:
        self.shards = sorted(chunks.glob(SHARD_PATTERN))
        self.share, self.seed, self.normalizer = share, seed, normalizer
        self.sentences = 0

    def __iter__(self) -> Iterator[str]:
        self.sentences = 0
        for shard in tqdm(self.shards, desc="sample", unit="shard", disable=None):
            table = pq.read_table(shard, columns=["chunk_id", "sentences"], filters=[("split", "=", "train")])
            for row in table.to_pylist():
                for position, sentence in enumerate(row["sentences"]):
                    place = f"{row['chunk_id']} {position}".encode()
                    if xxhash.xxh3_64_intdigest(place, self.seed) < self.share * 2**64:
                        self.sentences += 1
                        yield self.normalizer.normalize_str(sentence)


def build_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """Return the normalizer: NFKC, lower case if asked for, and single spaces."""
    return normalizers.Sequence(
        [
            normalizers.NFKC(),
            *([normalizers.Lowercase()] if lowercase else []),
            normalizers.Replace("▁", " "),  # the sign of sentencepiece for a space
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
        ]
    )


def train_sentencepiece(sentences: Iterable[str], vocab_size: int) -> SentencePieceProcessor:
    """Train a sentencepiece model on `sentences`, which are normalised already.

    If they have more distinct characters than the vocabulary has room for, as Chinese may, the most frequent ones take
    half of the room and the others are left to byte fallback; `sentences` are then read twice.
    """
    characters: Counter[str] = Counter()

    def counted() -> Iterator[str]:
        for sentence in sentences:
            characters.update(sentence)
            yield sentence

    try:
        return _train(counted(), vocab_size)
    except RuntimeError:  # the only type that sentencepiece raises; it checks this before it trains
        room = (vocab_size - len(SPECIAL_TOKENS) - NUM_BYTES - len(ASCII)) // 2
        if len(characters) <= room:
            raise
    rare = str.maketrans(dict.fromkeys([character for character, _ in characters.most_common()[room:]], " "))
    return _train((sentence.translate(rare) for sentence in sentences), vocab_size)


def _train(sentences: Iterator[str], vocab_size: int) -> SentencePieceProcessor:
    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=sentences,
            model_writer=model,
            vocab_size=vocab_size,
            hard_vocab_limit=False,  # a small corpus gives a smaller vocabulary
            byte_fallback=True,
            required_chars=ASCII,
            normalization_rule_name="identity",
            bos_id=0,
            pad_id=1,
            eos_id=2,
            unk_id=3,
            # Ten candidates for each piece are enough; the default of a million takes twice as long for the same ids.
            seed_sentencepiece_size=10 * vocab_size,
            max_sentence_length=100_000,
            num_threads=1,  # with more, the sums differ in the last digits and so may the vocabulary
            minloglevel=2,
        )
    except RuntimeError as error:
        if "KeyboardInterrupt" in str(error):  # any exception in its iterator becomes a RuntimeError
            raise KeyboardInterrupt from error
        raise
    return SentencePieceProcessor(model_proto=model.getvalue())


def build_tokenizer(model: SentencePieceProcessor, normalizer: normalizers.Normalizer) -> Tokenizer:
    """Convert a sentencepiece model to a `tokenizers` model that gives the same ids."""
    pieces = [(model.id_to_piece(i), model.get_score(i)) for i in range(model.vocab_size())]
    reserved = len(SPECIAL_TOKENS) + NUM_BYTES
    # Sentencepiece never matches its special and byte pieces in text; here a low score prevents it.
    lowest = min(score for _, score in pieces[reserved:])
    vocabulary = [(piece, lowest - 1000) for piece, _ in pieces[:reserved]] + pieces[reserved:]
    tokenizer = Tokenizer(Unigram(vocabulary, unk_id=SPECIAL_TOKENS.index("<unk>"), byte_fallback=True))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="always"), decoders.Fuse()]
    )
    tokenizer.add_special_tokens([*SPECIAL_TOKENS, AddedToken(MASK_TOKEN, lstrip=True)])
    tokenizer.post_processor = build_marks()
    return tokenizer


def build_marks() -> TemplateProcessing:
    """Return the template of the special tokens around sentences, RoBERTa's."""
    return TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )


def save_tokenizer(tokenizer: Tokenizer, folder: Path, max_length: int) -> None:
    """Save a tokenizer with RoBERTa's special tokens to a folder."""
    from transformers import TokenizersBackend

    TokenizersBackend(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token=AddedToken(MASK_TOKEN, lstrip=True),
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
        # In the text of a document, "<s>" means three characters and not the start of a sentence.
        split_special_tokens=True,
    ).save_pretrained(folder)

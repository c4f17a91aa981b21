"""Sentences -> a tokenizer whose tokens are whole words, for surrogates that are a table of token vectors.

It is WordPiece over the most frequent words. A word that is not among them is cut into pieces, the longest first. Only
a word with a letter that the corpus does not have, or of more than 100 letters, is unknown.
"""

from collections import Counter
from collections.abc import Iterable

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import WordPiece
from tokenizers.trainers import WordPieceTrainer

PIECES_IN = 4  # one token in so many is a piece of a word
MAX_PIECES = 8000
CONTINUES = "##"  # before a piece that does not begin a word


def train_word_tokenizer(
    sentences: Iterable[str],
    vocab_size: int,
    normalizer: normalizers.Normalizer,
    special_tokens: tuple[str, ...],
    mask_token: str,
) -> Tokenizer:
    """Return a tokenizer of this many tokens; of fewer if the sentences have fewer words.

    Args:
        sentences (`Iterable[str]`): Normalised sentences.
        vocab_size (`int`): Size of the vocabulary, special tokens included.
        normalizer (`normalizers.Normalizer`): What normalised them.
        special_tokens (`tuple[str, ...]`): The first ids, `<unk>` among them.
        mask_token (`str`): The last id.
    """
    splitter, counts = pre_tokenizers.BertPreTokenizer(), Counter[str]()
    for sentence in sentences:
        counts.update(word for word, _ in splitter.pre_tokenize_str(sentence))
    tokenizer = Tokenizer(WordPiece(unk_token="<unk>", continuing_subword_prefix=CONTINUES))
    trainer = WordPieceTrainer(
        vocab_size=min(MAX_PIECES, vocab_size // PIECES_IN),
        special_tokens=list(special_tokens),
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    tokenizer.pre_tokenizer = splitter
    # Each word as often as a logarithm says: more would only change which pieces are merged first.
    tokenizer.train_from_iterator(
        (word for word, count in sorted(counts.items()) for _ in range(count.bit_length())), trainer
    )
    pieces = [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    words = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    vocabulary = list(dict.fromkeys([*pieces, *words]))[: vocab_size - 1]
    ids = {token: number for number, token in enumerate(vocabulary)}
    whole = Tokenizer(WordPiece(ids, unk_token="<unk>", continuing_subword_prefix=CONTINUES))
    whole.normalizer, whole.pre_tokenizer, whole.decoder = normalizer, splitter, decoders.WordPiece(prefix=CONTINUES)
    whole.add_special_tokens([*special_tokens, AddedToken(mask_token, lstrip=True)])
    return whole

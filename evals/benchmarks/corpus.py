"""A corpus that is the same on every machine, shaped like a real one.

Words follow Zipf's law with the head cut off, as an index without stop words sees them: the most
frequent word stands in about a quarter of the chunks, most words in a handful. A document has two
topics and a stock of words that it repeats; each of its chunks takes its vector and part of its words
from one of the topics, so that words and vectors cluster as they do in documents. Tenants have fixed
shares of the chunks, which gives each selectivity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

SEED = 20_260_101
SHARES = {"0.1 %": 0.001, "1 %": 0.01, "10 %": 0.1, "50 %": 0.5}  # tenant → share of the chunks
REST = 4  # tenants that divide what is left
EVERYTHING = "100 %"

_VOCABULARY = 60_000
_STOP_RANKS = 60  # Zipf ranks that stop words would take
_EXPONENT = 1.05
_TOPICS = 300
_TOPIC_WORDS = 400
_TOPIC_SHARE = 0.25  # of a chunk's words that come from its topic
_REPEATED_SHARE = 0.35  # of a chunk's words that come from its document's stock
_REPEATED_WORDS = 150  # size of that stock
_SPREAD = 1.0  # noise of a vector around its topic's centre: cosines of 0.5 inside a topic
CHUNKS_PER_DOCUMENT = 25

_CONSONANTS, _VOWELS = "bcdfghklmnprstvz", "aeiou"

Vectors = npt.NDArray[np.float32]  # (chunks, dimension), rows of length 1


@dataclass(frozen=True, kw_only=True)
class BenchCorpus:
    """Texts, vectors and whose they are; parallel arrays."""

    texts: tuple[str, ...]
    vectors: Vectors
    tenants: tuple[str, ...]  # name of each chunk's tenant
    seed: int

    def documents(self) -> Iterator[tuple[str, Sequence[int]]]:
        """(tenant, numbers of the document's chunks)."""
        return cut_documents(self.tenants)

    def members(self, selectivity: str) -> npt.NDArray[np.int64]:
        """Numbers of the chunks that a search of this selectivity may reach."""
        if selectivity == EVERYTHING:
            return np.arange(len(self.texts))
        return np.flatnonzero(np.array(self.tenants) == selectivity)


def generate_corpus(count: int, *, dimension: int, seed: int = SEED) -> BenchCorpus:
    """`count` chunks of 40 to 200 words; some seconds for 70,000."""
    generator = np.random.default_rng(seed)
    words = np.array(_make_words(generator, _VOCABULARY))
    tenants = tuple(assign_tenants(count))
    documents = [list(chunks) for _, chunks in cut_documents(tenants)]
    topic_of = np.empty(count, dtype=np.int64)
    for chunks in documents:
        topic_of[chunks] = generator.choice(generator.integers(0, _TOPICS, 2), size=len(chunks))
    return BenchCorpus(
        texts=tuple(_make_texts(generator, words, documents, topic_of)),
        vectors=_make_vectors(generator, topic_of, dimension),
        tenants=tenants,
        seed=seed,
    )


def cut_documents(tenants: Sequence[str]) -> Iterator[tuple[str, Sequence[int]]]:
    """(tenant, numbers of the document's chunks): runs of chunks of one tenant."""
    start = 0
    for number in range(1, len(tenants) + 1):
        is_end = number == len(tenants) or tenants[number] != tenants[start]
        if is_end or number - start == CHUNKS_PER_DOCUMENT:
            yield tenants[start], range(start, number)
            start = number


def _make_words(generator: np.random.Generator, count: int) -> list[str]:
    """Distinct pronounceable words that end in a way no stemmer cuts."""
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = generator.integers(2, 5)
        letters = [
            _CONSONANTS[generator.integers(len(_CONSONANTS))] + _VOWELS[generator.integers(len(_VOWELS))]
            for _ in range(syllables)
        ]
        words["".join(letters) + "k"] = None
    return list(words)


def _make_texts(
    generator: np.random.Generator,
    words: npt.NDArray[np.str_],
    documents: Sequence[Sequence[int]],
    topic_of: npt.NDArray[np.int64],
) -> list[str]:
    weights = 1.0 / (np.arange(len(words)) + _STOP_RANKS) ** _EXPONENT
    cumulative = np.cumsum(weights / weights.sum())
    cumulative[-1] = 1.0
    topic_words = generator.integers(_STOP_RANKS, len(words), size=(_TOPICS, _TOPIC_WORDS))
    texts = []
    for chunks in documents:
        stock = np.searchsorted(cumulative, generator.random(_REPEATED_WORDS))
        lengths = np.clip(generator.lognormal(4.5, 0.35, len(chunks)), 40, 200).astype(int)
        for chunk, length in zip(chunks, lengths, strict=True):
            chosen = np.searchsorted(cumulative, generator.random(length))
            origin = generator.random(length)
            repeated = origin < _REPEATED_SHARE
            chosen[repeated] = generator.choice(stock, size=int(repeated.sum()))
            from_topic = origin > 1 - _TOPIC_SHARE
            # Squared, so that a topic has a few words of its own that are frequent in it.
            places = (generator.random(int(from_topic.sum())) ** 2 * _TOPIC_WORDS).astype(int)
            chosen[from_topic] = topic_words[topic_of[chunk], places]
            texts.append(" ".join(words[chosen]))
    return texts


def _make_vectors(generator: np.random.Generator, topic_of: npt.NDArray[np.int64], dimension: int) -> Vectors:
    centres = generator.standard_normal((_TOPICS, dimension)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    noise = generator.standard_normal((len(topic_of), dimension), dtype=np.float32) * (_SPREAD / np.sqrt(dimension))
    vectors: Vectors = centres[topic_of] + noise
    # What the database stores: half precision. Exact answers must be computed on the same values.
    stored: Vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
    return stored


def assign_tenants(count: int) -> list[str]:
    """The tenant of each of `count` chunks, by the shares above."""
    tenants: list[str] = []
    for name, share in SHARES.items():
        tenants += [name] * max(1, round(share * count))
    left = count - len(tenants)
    for number in range(REST):
        size = left // REST + (number < left % REST)
        tenants += [f"rest {number + 1}"] * size
    return tenants[:count]


@dataclass(frozen=True, kw_only=True)
class BenchQuery:
    """A question with its vector."""

    text: str
    vector: npt.NDArray[np.float32]


def generate_queries(
    corpus: BenchCorpus, count: int, *, words: int, selectivity: str, seed: int = SEED + 1
) -> list[BenchQuery]:
    """Questions near chunks that the search may reach: some of a chunk's words, and its vector blurred."""
    generator = np.random.default_rng([seed, len(selectivity), *selectivity.encode()])
    members = corpus.members(selectivity)
    queries = []
    for number in generator.choice(members, size=count, replace=len(members) < count):
        pool = corpus.texts[number].split()
        text = " ".join(generator.choice(pool, size=min(words, len(pool)), replace=False))
        noise = generator.standard_normal((corpus.vectors.shape[1],)).astype(np.float32)
        vector = corpus.vectors[number] + 0.6 * noise / np.linalg.norm(noise)
        queries.append(BenchQuery(text=text, vector=vector / np.linalg.norm(vector)))
    return queries

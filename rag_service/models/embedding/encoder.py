"""An embedding model in this process: its word pieces, its layers, and the vector that they become.

Texts go through one by one: padding would be computed, and dynamic quantization measures the range of a whole batch, so
that the vector of a text would depend on its neighbours. Everything is computed in the thread that calls; several
threads share one model.
"""

from __future__ import annotations

import importlib.util
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from rag_service.errors import ConfigurationError
from rag_service.models.embedding.bert_graph import OUTPUTS
from rag_service.models.embedding.local import FloatVector, TokenVectors
from rag_service.models.embedding.model_folder import PIECES, SCORES, TOKENIZER, WEIGHTS, ModelFolder
from rag_service.models.embedding.qa_head import QuestionAnsweringHead
from rag_service.models.local_runtime import import_torch
from rag_service.recent import Recent, kept_apart

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Precision = Literal["float32", "int8"]  # as RAG_EMBEDDING_PRECISION
Ids = npt.NDArray[np.int64]  # (1, tokens), of one text
States = npt.NDArray[np.float32]  # (tokens, dimension) of a layer
Layers = tuple[States, States | None]  # the last one, and the one that a question-answering head reads, if it is known

# A window of a long passage: attention costs the square of its length, and questions wait for it.
_LONGEST_WINDOW = 512

_WORD_START = "▁"
_FIRST, _LAST, _UNKNOWN = 0, 2, 3
_UNKNOWN_PENALTY = 10.0  # below the least probable piece
_KEPT_WORDS = 65_536
_KEPT_TEXTS = 8  # a question is read for its vector, and soon after for those of its tokens
_LONG = 32  # characters; longer words are whole sentences of scripts without spaces, and are not kept
_CONTROL: Mapping[int, str | None] = {
    **dict.fromkeys((*range(1, 9), 11, *range(14, 32), 0x7F, 0x8F, 0x9F)),
    **dict.fromkeys(
        (9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD), " "
    ),
}  # fmt: skip


class Encoder:
    """The loaded model, for any number of threads."""

    def __init__(
        self, model: ModelFolder, *, precision: Precision = "float32", head: QuestionAnsweringHead | None = None
    ):
        """Load it: some tenths of a second, the first time in eight bits some seconds more.

        `head`: a question-answering head that was trained on this model.
        Raises ConfigurationError if the model cannot be loaded or needs the extra `torch`.
        """
        self._model = model
        self.layers = _load(model, precision)  # of the word pieces of one text
        self._head = head
        try:
            tokenizer = (UnigramTokenizer if (model.path / PIECES).is_file() else _AnyTokenizer).load(model.path)
        except Exception as error:  # the package `tokenizers` raises nothing narrower
            raise _broken(model, error) from error
        self._numbers, self.offsets = tokenizer.encode, tokenizer.offsets
        prefix = max(len(self.offsets(text)) for text in (model.query_prefix, model.passage_prefix))
        added = prefix + len(self._numbers(""))
        self.window = min(model.max_tokens, _LONGEST_WINDOW) - added  # word pieces
        self._recent: Recent[Layers] = Recent(_KEPT_TEXTS)

    def encode(self, text: str) -> npt.NDArray[np.float32]:
        """A vector of length 1, of as many word pieces as the model reads."""
        states, _ = self._read(text)
        match self._model.pooling:
            case "mean":
                vector: npt.NDArray[np.float32] = states.mean(axis=0)
            case "cls":
                vector = states[0]
            case "lasttoken":
                vector = states[-1]
        return vector / np.linalg.norm(vector)

    def encode_tokens(self, text: str, prefix: str) -> TokenVectors:
        """The vectors of as many word pieces of a text as the model reads, without those of its prefix."""
        places = np.array(self.offsets(prefix + text)).reshape(-1, 2) - len(prefix)
        states, shared = self._read(prefix + text)
        of_prefix = int(np.count_nonzero(places[:, 0] < 0))
        places = places[of_prefix : len(states) - 2]  # two tokens mark beginning and end
        before = 1 + of_prefix
        kept = states[before : before + len(places)]
        halved = None if shared is None else shared.astype(np.float16)  # many are kept
        return TokenVectors(kept / np.linalg.norm(kept, axis=1, keepdims=True), places, before, halved)

    def find_answer(self, question: TokenVectors, passage: TokenVectors) -> FloatVector | None:
        """How much each token of a passage looks like the answer, in log odds; None without a head."""
        if self._head is None or question.shared is None or passage.shared is None:
            return None
        rated = self._head.rate(question.shared, passage.shared)
        return rated[passage.before : passage.before + len(passage.places)]

    def _read(self, text: str) -> Layers:
        """The layers over a text with its special pieces, cut to what the model reads; kept for the user."""
        if (found := self._recent.get(text)) is not None:
            return found
        ids, limit = self._numbers(text), self._model.max_tokens
        if len(ids) > limit:
            ids = [*ids[: limit - 1], ids[-1]]  # the last one marks the end
        read = self.layers(np.array([ids], dtype=np.int64))
        self._recent.keep(text, read)
        return read


class _AnyTokenizer:
    """That of a tokenizer.json."""

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, folder: Path) -> _AnyTokenizer:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return cls(tokenizer)

    def encode(self, text: str) -> list[int]:
        """Numbers of the text's pieces, special ones included."""
        numbers: list[int] = self._tokenizer.encode(text).ids
        return numbers

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each piece of the text begins and ends."""
        offsets: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets


class UnigramTokenizer:
    """The tokenizer of XLM-RoBERTa and multilingual E5: the most probable split of each word into pieces.

    The packaged model's 250,000 pieces take 280 MB and half a second to load with the package `tokenizers`, and 35 MB
    and a fifth of that here. Kudo, "Subword Regularization", 2018, section 3.2; the normalisation is SentencePiece's
    `nmt_nfkc`.
    """

    def __init__(self, pieces: Sequence[str], scores: Sequence[float]):
        """`scores` are the logarithms of the pieces' probabilities. The first four pieces are special."""
        self._numbers = {piece: number for number, piece in enumerate(pieces) if number > _UNKNOWN}
        self._scores = scores
        self._longest = max(map(len, pieces))
        self._unknown_score = min(scores) - _UNKNOWN_PENALTY
        self._split = kept_apart(_KEPT_WORDS)(self._most_probable)

    @classmethod
    def load(cls, folder: Path) -> UnigramTokenizer:
        """From the files that `save` wrote. Raises OSError or ValueError if they cannot be read."""
        pieces = (folder / PIECES).read_text(encoding="utf-8").split("\n")
        return cls(pieces, np.load(folder / SCORES).tolist())

    @staticmethod
    def save(folder: Path, pieces: Sequence[str], scores: Sequence[float]) -> None:
        """Write the files that `load` reads."""
        (folder / PIECES).write_text("\n".join(pieces), encoding="utf-8")
        np.save(folder / SCORES, np.array(scores, dtype=np.float32))

    def encode(self, text: str) -> list[int]:
        """Numbers of the text's pieces, with those that mark its beginning and end."""
        numbers = [_FIRST]
        for word in text.split():
            numbers += (self._split if len(word) <= _LONG else self._most_probable)(word)
        return [*numbers, _LAST]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Where each piece of the text begins and ends: as the word that it belongs to; in long words about there."""
        found: list[tuple[int, int]] = []
        end = 0
        for word in text.split():
            begin = text.index(word, end)
            size = len(word)
            end = begin + size
            if size <= _LONG:
                found += [(begin, end)] * len(self._split(word))
                continue
            count = len(self._most_probable(word))
            starts = [begin + size * number // count for number in range(count)]
            found += [(start, max(start + 1, following)) for start, following in pairwise([*starts, end])]
        return found

    def _most_probable(self, word: str) -> tuple[int, ...]:
        """The pieces of a word, which may become several words when it is normalised."""
        numbers: list[int] = []
        for part in unicodedata.normalize("NFKC", word.translate(_CONTROL)).split():
            numbers += self._viterbi(_WORD_START + part)
        return tuple(numbers)

    def _viterbi(self, word: str) -> list[int]:
        best = [0.0] + [-math.inf] * len(word)  # of the splits that end at each character
        last: list[tuple[int, int]] = [(0, _UNKNOWN)] * len(best)  # where their last piece begins, and its number
        for begin in range(len(word)):
            for end in range(begin + 1, min(begin + self._longest, len(word)) + 1):
                number = self._numbers.get(word[begin:end])
                if number is not None:
                    score = best[begin] + self._scores[number]
                elif end == begin + 1:
                    number, score = _UNKNOWN, best[begin] + self._unknown_score
                else:
                    continue
                if score > best[end]:
                    best[end], last[end] = score, (begin, number)
        numbers: list[int] = []
        end = len(word)
        while end:
            end, number = last[end]
            if number != _UNKNOWN or numbers[-1:] != [_UNKNOWN]:  # unknown characters in a row are one piece
                numbers.append(number)
        return numbers[::-1]


def _load(model: ModelFolder, precision: Precision) -> Callable[[Ids], Layers]:
    """What computes the layers: a graph made from the weights, one that comes with them, or torch."""
    try:
        if model.is_bert:
            from rag_service.models.embedding.bert_graph import make_bert_graph
            from rag_service.models.embedding.quantized import quantized_graph

            made = make_bert_graph(model.path).SerializeToString() if precision == "float32" else None
            return _on_onnx_runtime(made or quantized_graph(model.path), folder=(model.path / WEIGHTS).resolve().parent)
        if precision == "int8":
            raise ConfigurationError(
                f"RAG_EMBEDDING_PRECISION=int8 needs the safetensors weights of a BERT model, and {model.name} is "
                "none: set it to float32.",
                field="RAG_EMBEDDING_PRECISION",
            )
        if model.onnx_file is not None:
            return _on_onnx_runtime(str(model.onnx_file))
        return _on_torch(model)
    except ConfigurationError:
        raise
    except Exception as error:  # ONNX Runtime and transformers raise whatever they like
        raise _broken(model, error) from error


def _on_onnx_runtime(graph: bytes | str, *, folder: Path | None = None) -> Callable[[Ids], Layers]:
    """A session on a graph in memory, whose weights are in a folder, or on a file."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    known = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
    unknown = known - {entry.name for entry in session.get_inputs()}
    outputs = [entry.name for entry in session.get_outputs()]
    read = outputs[:1]  # the last layer, in every export of transformers
    if OUTPUTS[1] in outputs:
        read.append(OUTPUTS[1])

    def layers(ids: Ids) -> Layers:
        inputs = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.arange(ids.shape[1], dtype=np.int64)[None],
        }
        for name in unknown:
            del inputs[name]
        last, *shared = session.run(read, inputs)
        return last[0], shared[0][0] if shared else None

    return layers


def _on_torch(model: ModelFolder) -> Callable[[Ids], Layers]:
    for package in ("torch", "transformers"):
        if importlib.util.find_spec(package) is None:
            raise ConfigurationError(
                f"RAG_EMBEDDING_MODEL={model.name} has neither an ONNX file nor BERT weights in safetensors, and needs "
                "the extra `torch`: install it with `pip install 'rag-service[torch]'`, or choose another model.",
                field="RAG_EMBEDDING_MODEL",
            )
    torch = import_torch()
    from transformers import AutoModel

    loaded: Any = AutoModel.from_pretrained(model.path, local_files_only=True, dtype=torch.float32).eval()

    def layers(ids: Ids) -> Layers:
        torch.set_num_threads(1)  # the number belongs to the thread
        with torch.inference_mode():
            pieces = torch.from_numpy(ids)
            layer = loaded(input_ids=pieces, attention_mask=torch.ones_like(pieces)).last_hidden_state
        return layer[0].numpy(), None

    return layers


def _broken(model: ModelFolder, error: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"RAG_EMBEDDING_MODEL={model.name}: the files in {model.path} cannot be loaded ({type(error).__name__}); "
        "fetch them again with `rag-service models pull`, or choose another model.",
        field="RAG_EMBEDDING_MODEL",
    )

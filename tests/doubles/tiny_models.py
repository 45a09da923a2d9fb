"""Tiny models with random weights and real tokenizers, in the files that Hugging Face serves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TEXTS = ["¿Cuándo vence el plazo?", "Le plafond est de 500 euros.", "o prazo termina em maio", "a", "ñ🙂"]
SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def save_tokenizer(folder: Path, kind: str) -> int:
    """A tokenizer of word pieces as BERT's, or `unigram` as XLM-RoBERTa's, trained on the texts; returns its size."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    first, last, unknown, padding = (
        ("<s>", "</s>", "<unk>", "<pad>") if kind == "unigram" else ("[CLS]", "[SEP]", "[UNK]", "[PAD]")
    )
    special = [first, padding, last, unknown] if kind == "unigram" else [padding, unknown, first, last]
    trainer: Any
    if kind == "unigram":
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=120, special_tokens=special, unk_token=unknown, show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token=unknown))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 3 + ["query: passage:"], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in (first, last)],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, cls_token=first, sep_token=last, pad_token=padding, unk_token=unknown
    ).save_pretrained(folder)
    return tokenizer.get_vocab_size()


def save_cross_encoder(folder: Path, words: Sequence[str], options: Mapping[str, Any]) -> None:
    """A BERT of one layer and sixteen dimensions over whole words, which rates at random, but always alike.

    Args:
        options: more of its configuration, such as the number or names of the labels.
    """
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    BertTokenizer(vocab=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(7)
    sizes = {**SIZES, "num_hidden_layers": 1, "max_position_embeddings": 512}
    config = BertConfig(vocab_size=len(vocabulary), **sizes, **options)
    BertForSequenceClassification(config).save_pretrained(folder)


def make_model(
    folder: Path, kind: str, *, pooling: str = "mean", dtype: str = "float32", hidden_size: int = 16
) -> Path:
    """In the layout of sentence-transformers: `bert`, `xlm-roberta`, or `distilbert`, for which we have no graph."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoModel, BertConfig, DistilBertConfig, XLMRobertaConfig

    sizes = SIZES | {"hidden_size": hidden_size}
    torch.manual_seed(7)
    base = folder / "base"
    size = save_tokenizer(base, "unigram" if kind == "xlm-roberta" else "pieces")
    config: Any
    if kind == "xlm-roberta":
        config = XLMRobertaConfig(
            vocab_size=size, max_position_embeddings=66, pad_token_id=1, initializer_range=0.5, **sizes
        )
    elif kind == "bert":
        config = BertConfig(vocab_size=size, max_position_embeddings=64, initializer_range=0.5, **sizes)
    else:
        config = DistilBertConfig(
            vocab_size=size, max_position_embeddings=64, dim=16, n_layers=2, n_heads=2, hidden_dim=32
        )
    AutoModel.from_config(config).to(getattr(torch, dtype)).save_pretrained(base)
    modules = [Transformer(str(base), max_seq_length=64), Pooling(hidden_size, pooling_mode=pooling)]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "model"))
    return folder / "model"

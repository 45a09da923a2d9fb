"""The embeddings API: the vectors of the service's own model.

See https://platform.openai.com/docs/api-reference/embeddings.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from rag_service.api.http.problems import FieldError, InvalidRequestError
from rag_service.api.openai.errors import UnknownModelError
from rag_service.language.words import count_tokens
from rag_service.settings.models import EmbeddingSettings

MAX_TEXTS = 256  # a request
MAX_CHARACTERS = 50_000  # of a text; OpenAI's models take 8,192 tokens


class EmbeddingRequest(Struct, kw_only=True, frozen=True):
    """Texts to embed. Other fields have no effect."""

    model: Annotated[str, Meta(description="The embedding model that GET /v1/models lists.")]
    input: Annotated[
        str | list[Any], Meta(description="A text, or a list of at most 256 texts; at most 50000 characters each.")
    ]
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Annotated[int | None, Meta(description="Must be the model's own dimension.")] = None


class EmbeddingBody(Struct, kw_only=True, frozen=True):
    embedding: Annotated[list[float] | str, Meta(description="Numbers, or base64-encoded little-endian 32-bit floats.")]
    index: int
    object: str = "embedding"


class EmbeddingUsage(Struct, kw_only=True, frozen=True):
    prompt_tokens: Annotated[int, Meta(description="Estimated.")]
    total_tokens: int


class EmbeddingList(Struct, kw_only=True, frozen=True):
    data: list[EmbeddingBody]
    model: str
    usage: EmbeddingUsage
    object: str = "list"


def read_texts(request: EmbeddingRequest, settings: EmbeddingSettings) -> list[str]:
    """The texts of a request.

    Raises:
        UnknownModelError: it names another model.
        InvalidRequestError: an input is no text, empty or too long, there are too many, or the dimension is wrong.
    """
    if request.model != settings.model:
        raise UnknownModelError(request.model)
    texts = [request.input] if isinstance(request.input, str) else request.input
    errors = []
    if not 0 < len(texts) <= MAX_TEXTS:
        errors.append(FieldError("input", f"must have 1 to {MAX_TEXTS} texts"))
    elif not all(isinstance(text, str) and text.strip() for text in texts):
        errors.append(FieldError("input", "must contain non-empty texts; token ids are not supported"))
    elif max(map(len, texts)) > MAX_CHARACTERS:
        errors.append(FieldError("input", f"must contain texts of at most {MAX_CHARACTERS} characters"))
    if request.dimensions not in (None, settings.dimension):
        errors.append(FieldError("dimensions", f"must be {settings.dimension}, or left out"))
    if errors:
        raise InvalidRequestError(errors)
    return texts


def present_embeddings(
    request: EmbeddingRequest, texts: Sequence[str], vectors: Sequence[Sequence[float]]
) -> EmbeddingList:
    """The vectors, in the order of the texts."""
    tokens = sum(map(count_tokens, texts))
    packed = request.encoding_format == "base64"
    return EmbeddingList(
        data=[
            EmbeddingBody(index=index, embedding=_pack(vector) if packed else list(vector))
            for index, vector in enumerate(vectors)
        ],
        model=request.model,
        usage=EmbeddingUsage(prompt_tokens=tokens, total_tokens=tokens),
    )


def _pack(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()

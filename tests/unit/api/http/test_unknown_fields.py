"""What a reply says of a field that the request does not have."""

from __future__ import annotations

import pytest

from rag_service.api.http.bodies import decode
from rag_service.api.http.problems import InvalidRequestError
from rag_service.api.http.schemas import AnswerRequest
from rag_service.api.sign_in import AcceptedInvitation

OTHERS = "is not a field of this request; its fields are query, "


def test_a_text_that_is_too_short_is_told_in_plain_words() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        decode(b'{"invitation": "a", "password": "short"}', AcceptedInvitation)
    (error,) = caught.value.errors
    assert (error.field, error.message) == ("password", "must have at least 12 characters")


@pytest.mark.parametrize(
    ("body", "field", "message"),
    [
        (b'{"query": "a", "topk": 3}', "topk", "is not a field of this request; did you mean topK?"),
        (b'{"question": "a"}', "question", "is not a field of this request; did you mean query?"),
        (b'{"query": "a", "zzz": 3}', "zzz", OTHERS),
        (
            b'{"query": "a", "messages": [{"role": "user", "content": "b", "tone": "kind"}]}',
            "messages[0].tone",
            "is not a field of this request",
        ),
    ],
)
def test_an_unknown_field_is_named_with_its_place_and_those_that_there_are(
    body: bytes, field: str, message: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        decode(body, AnswerRequest)
    (error,) = caught.value.errors
    assert error.field == field
    assert error.message.startswith(message)

"""Token counts are those of the tokenizer, however a text is put together."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from llama_index.core.utils import get_tokenizer

from rag_service.language.words import count_tokens

BREAKS = ["\n", "\n\n", "\r\n", " ", "  ", "\t", "\u2028", "\x1c"]
PIECES = [*BREAKS, ".", "...", "~", "word", " word", "Año", "'s", "1234", "<|x|>"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
@example("It ends.  \n \n\n next, \n\tmore\n")
@example("")
def test_lines_are_counted_one_by_one_and_give_the_count_of_the_whole(text: str) -> None:
    assert count_tokens(text) == len(get_tokenizer()(text))


def test_a_whole_document_is_counted_too() -> None:
    text = "One line of a document.\n" * 2000
    assert count_tokens(text) == len(get_tokenizer()(text))

"""What a model thinks aloud is no part of its answer, in whatever spelling and pieces it comes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_service.models.llm.thinking import AnswerText

ANSWER = "The fee is 35 euros a month [C1].\n\n- It is due in May [C2]."
SPELLINGS = {
    "think": "<think>{}</think>\n\n{}",
    "thinking": "<thinking>{}</thinking>{}",
    "thought": "<thought>\n{}\n</thought>\n{}",
    "reasoning": "\n<reasoning>{}</reasoning> {}",
    "upper case": "<THINK>{}</Think>{}",
    "Mistral": "[THINK]{}[/THINK]{}",
    "Kimi": "◁think▷{}◁/think▷{}",
    "Seed": "<seed:think>{}</seed:think>{}",
    "Gemma": "<|channel>thought\n{}<channel|>{}",
    "Cohere": "<|START_THINKING|>{}<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
    "Hunyuan": "<think>\n{}\n</think>\n<answer>\n{}\n</answer>",
    "several": "<think></think>\n<think>{}</think>{}",
    "closed twice": "<think>{}</think>\n</think>{}",
    "opened by the prompt": "{}\n</think>\n\n{}",
    "opened by the prompt, on one line": "{}</think>{}",
    "gpt-oss": "<|channel|>analysis<|message|>{}<|end|><|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "gpt-oss without ends": "<|channel|>analysis<|message|>{}<|start|>assistant<|channel|>final<|message|>{}",
    "gpt-oss, opened by the prompt": "{}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{}",
    "none": "{1}",
}
THOUGHTS = st.lists(st.sampled_from(["Hm, 35?", " The user asks [C1].", "\n", " <b>", ' "x"', " May."]), max_size=8)


def read(pieces: list[str], *, hold: bool = False, drop_held: bool = False) -> tuple[str, int]:
    """The text that a reader has at the end, and how often it began anew."""
    answer = AnswerText(hold=hold)
    text, restarts = "", 0
    for piece in (*map(answer.feed, pieces), answer.finish(drop_held=drop_held)):
        restarts += piece.restart
        text = piece.text if piece.restart else text + piece.text
    return text, restarts


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(thoughts=THOUGHTS, cuts=st.lists(st.integers(0, 400), max_size=30), hold=st.booleans())
def test_thoughts_are_left_out_however_they_are_spelt_and_cut(
    spelling: str, thoughts: list[str], cuts: list[int], hold: bool
) -> None:
    message = SPELLINGS[spelling].format("".join(thoughts), ANSWER)
    places = sorted({0, len(message), *(cut for cut in cuts if cut < len(message))})
    text, restarts = read([message[start:end] for start, end in pairwise(places)], hold=hold)
    assert text.strip() == ANSWER
    assert not (hold and restarts)


@pytest.mark.parametrize(
    "message",
    [
        "<think>I never end",
        "[THINK]I never end [C1].",
        "<|channel|>analysis<|message|>I never end",
        "<|channel|>analysis",
        "<think>I end.</think>",
        "I end.</think>\n",
    ],
)
def test_nothing_is_left_of_thoughts_alone(message: str) -> None:
    for size in (1, 7, 100):
        assert read([message[at : at + size] for at in range(0, len(message), size)])[0] == ""


@pytest.mark.parametrize(
    "message",
    [
        "The model writes <think> and </think> around its thoughts [C1].",
        "Thoughts end with `</think>` [C1].",
        "The tag </think> ends them, as does [/THINK]. It begins with </think>, too.",
        "In gpt-oss <|end|> closes a message and <|channel|> opens a channel [C1].\nThe mark is <|start|>.",
        "```html\n<p>A</think>B</p>\n```",
        '{"quote": "a</think>b"}',
        "Use <answer> and a < b [C1]. See [thinking] and <",
        "May.\n\n<think>this stays</think>",
        "May. The empty tag is `<think/>`, and ＜think＞ is of full width.",
    ],
)
def test_an_answer_that_quotes_a_mark_loses_nothing(message: str) -> None:
    for size in (1, 2, 5, 1000):
        assert read([message[at : at + size] for at in range(0, len(message), size)]) == (message, 0)


@pytest.mark.parametrize("opening", ["```", "```markdown", "```md ", "```TEXT", "```json", "<think>Hm.</think>\n```"])
def test_a_fence_around_the_whole_answer_is_left_out(opening: str) -> None:
    message = f"{opening}\n{ANSWER}\n```\n"
    for size in (1, 3, 7, 1000):
        pieces = [message[at : at + size] for at in range(0, len(message), size)]
        assert read(pieces) == read(pieces, hold=True) == (ANSWER, 0)


@pytest.mark.parametrize(
    "message",
    [
        "```sh\nrag-service serve\n```",
        "```\nfirst\n```\nThen:\n```\nsecond\n```",
        "```\nfirst\n```\nThat is all [C1].",
        "```text\nIt was cut off",
        "`a` is a name, ```b``` too",
        "``",
        f"It is:\n```text\n{ANSWER}\n```",
    ],
)
def test_code_that_belongs_to_the_answer_stays_in_its_fence(message: str) -> None:
    for size in (1, 3, 7, 1000):
        assert read([message[at : at + size] for at in range(0, len(message), size)]) == (message, 0)


def test_an_answer_without_marks_is_not_delayed() -> None:
    answer = AnswerText()
    for word in ANSWER.split(" "):
        assert answer.feed(f"{word} ") == (f"{word} ", False)


def test_held_text_is_the_answer_at_the_end_unless_it_was_cut_off_in_thought() -> None:
    assert read(["Hm, ", "the user"], hold=True, drop_held=True) == ("", 0)
    assert read(["It is ", "May."], hold=True) == ("It is May.", 0)


@pytest.mark.parametrize(
    "message",
    [
        "\ufeff<think>Hm.</think>It is May [C1].",
        "\u200b<think>Hm.</think>It is May [C1].",
        " \u2060\n<think>Hm.</think>It is May [C1].",
        "<think >Hm.</think >It is May [C1].",
        "<think/>It is May [C1].",
        "<think />\n\nIt is May [C1].",
        "<thinking/><think>Hm.</think>It is May [C1].",
        "<think>Hm.<think/>It is May [C1].",
        "<think>Hm.<think / >It is May [C1].",
        "<|think|>Hm.<|/think|>It is May [C1].",
        "<|think|>Hm.</think>It is May [C1].",
        "<think>Hm.<|/think|>It is May [C1].",
        "<|Reasoning|>Hm. <|reasoning|>Deeper.<|/reasoning|></reasoning>It is May [C1].",
        "＜think＞Hm.＜/think＞It is May [C1].",
        "＜think＞Hm.</think>It is May [C1].",
        "Hm.\n＜/think＞\n\nIt is May [C1].",
        "Hm.\n<|/think|>\n\nIt is May [C1].",
        "<THINK\t>Hm.</think  >It is May [C1].",
        "<think>Hm. <think>Deeper.</think> And so.</think>It is May [C1].",
        '<think>It ends with "</think>" or `</think>`, then.</think>It is May [C1].',
        "<think>They write <think> once, unclosed.</think>It is May [C1].",
    ],
)
def test_thoughts_in_odd_spellings_are_left_out(message: str) -> None:
    for size in (1, 2, 5, 1000):
        pieces = [message[at : at + size] for at in range(0, len(message), size)]
        assert read(pieces)[0].strip() == "It is May [C1].", size

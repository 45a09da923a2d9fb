"""What chat programs paste around a question is not part of it, and their tasks are told from questions."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from rag_service.api.openai.questions import is_task, question_in, reply_without_model
from tests.timing import seconds_of

QUESTION = "How long is the warranty?"
CONTEXT = '<context>\n<source id="1" name="rapport.pdf">What is in rapport.pdf?</source>\n</context>'
FENCED = "What does this mean?\n```\nError E4711 of pump.exe\n```"
TITLE = """### Task:
Generate a concise, 3-5 word title summarizing the chat history.
### Output:
JSON format: { "title": "your concise title here" }
### Chat History:
<chat_history>
USER: How do I report a "lost" laptop to the help desk, please?
ASSISTANT: Call 4711.
</chat_history>"""


@pytest.mark.parametrize(
    ("message", "question"),
    [
        (f"{CONTEXT}\n\n{QUESTION}", QUESTION),
        (f"{QUESTION}\n\n{CONTEXT}", QUESTION),
        (f"### Task:\nRespond to the user query.\n### Output:\nText.\n{CONTEXT}\n\n{QUESTION}", QUESTION),
        (f"### Task:\nRespond.\n{CONTEXT}\n\n<user_query>\n{QUESTION}\n</user_query>\n", QUESTION),
        (f"```md notes/rapport.md\nSee other.docx.\n```\n{QUESTION}", QUESTION),
        (FENCED, FENCED),
        ("Is <b>bold</b> allowed? a < b > c", "Is <b>bold</b> allowed? a < b > c"),
        ("<context>\nnever closed", "<context>\nnever closed"),
        (CONTEXT, CONTEXT),
    ],
)
def test_pasted_texts_are_left_out(message: str, question: str) -> None:
    assert question_in(message, limit=4000) == question


def test_a_message_that_is_too_long_is_asked_by_its_last_part() -> None:
    message = "We have been discussing this for hours. " * 300 + f"\n\n{'The pump is old. ' * 6}{QUESTION}"
    asked = question_in(message, limit=200)
    assert asked.startswith("The pump is old.") and asked.endswith(QUESTION) and len(asked) <= 200
    assert len(question_in("x" * 5000, limit=200)) == 200


def test_tasks_of_chat_programs_are_told_from_questions_to_attached_files() -> None:
    assert is_task(TITLE)
    assert not is_task(f"### Task:\nRespond to the user query.\n{CONTEXT}\n\n{QUESTION}")
    assert not is_task(QUESTION)


def test_without_a_model_a_title_is_made_of_the_first_words() -> None:
    assert json.loads(reply_without_model(TITLE)) == {"title": 'How do I report a "lost" laptop to'}
    assert reply_without_model("### Task:\nWrite a title.\nUSER: How long is the warranty?") == QUESTION


@pytest.mark.parametrize(
    ("wanted", "reply"),
    [
        ('{ "tags": ["one", "two"] }', {"tags": []}),
        ('{ "follow_ups": ["One?"] }', {"follow_ups": []}),
        ('{\n  "queries": ["one", "two"]\n}', {"queries": ['And for "old" ones?']}),
        ('{ "title": "two words" }', {"title": "How long is the warranty?"}),
        ('`{ "text": "" }`', {"text": ""}),
    ],
)
def test_without_a_model_a_task_gets_the_json_that_it_asks_for(wanted: str, reply: dict[str, Any]) -> None:
    said = f'USER: {QUESTION}\nASSISTANT: {{"title": ["2 years"]}}\nUSER: And for "old" ones?\nASSISTANT: One.'
    task = f"### Task:\nLook at the chat.\n\n### Output:\nJSON: {wanted}\n<chat_history>\n{said}\n</chat_history>\n"
    assert is_task(task)
    assert json.loads(reply_without_model(task)) == reply


@pytest.mark.parametrize(
    "asks",
    [
        "Name this conversation: a title of up to five words. Return the title alone.\n\nConversation:\n",
        "Read this conversation and provide:\n1. Its language\n2. A title\n\n",
    ],
)
def test_a_title_for_a_conversation_that_follows_is_a_task(asks: str) -> None:
    task = f"{asks}User: {QUESTION}\nAI: Two years.\n\nIt ends in May."
    assert is_task(task)
    assert reply_without_model(task) == QUESTION


@pytest.mark.parametrize(
    "message",
    [
        "What is the title of the recorded conversation?",
        "What does the clerk reply in this?\n\nUser: How long?\nAI: Two years.",
        "Who holds the title in the conversation of the annex?\nUser: see below",
    ],
)
def test_a_question_about_a_title_or_a_conversation_is_no_task(message: str) -> None:
    assert not is_task(message)


def test_a_message_of_tags_takes_no_time() -> None:
    for text in ("\n".join(f"<t{number}>" for number in range(100_000)), "<a>\n" * 200_000):
        assert seconds_of(partial(question_in, text, limit=4000)) < 1


@pytest.mark.parametrize("text", ["User:" + " " * 200_000, "User: a\n" * 50_000, "{ " * 100_000, "USER:\n" * 50_000])
def test_a_long_task_takes_no_time(text: str) -> None:
    assert seconds_of(partial(is_task, f"A title of the conversation\n{text}")) < 1
    assert seconds_of(partial(reply_without_model, f"### Task:\n{text}")) < 1

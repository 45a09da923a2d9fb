"""Fill in the forms of `documents.yaml`, with a model behind the service that gives what is written there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import yaml

from evals.written.answers import Evidence, fold
from evals.written.judge import WrittenJudge, is_judge_call
from evals.written.measure import Bench, open_bench
from evals.written.model import ModelReply, WrittenModel, find_holder, find_shown
from rag_service.api.http.schemas import AnswerBody, AnswerRequest, ValueBody
from rag_service.indices import shipped_folder

DOCUMENTS = Path(__file__).parent / "documents.yaml"
_LINE = re.compile(r"^\s*(\d+)\. *(.*)$", re.MULTILINE)
_MARK = re.compile(r"\s*\[C\d+[^\]]*\]")
_COPIED = re.compile(r'\[C\d+ "([^\]]*)"\]')

Written = tuple[Any, str]  # a value, and the words that it stands in


@dataclass(frozen=True, kw_only=True)
class Form:
    """A document, and what it is asked for."""

    name: str
    ask: str
    text: str
    schema: Mapping[str, Any]
    values: Mapping[str, Written]
    missing: Mapping[str, Written]  # what a careless model makes up
    near: Mapping[str, Written]  # what it takes from another year or line

    def given(self, *, careless: bool) -> dict[str, Written]:
        """Return what the model says."""
        return {**self.values, **self.missing, **self.near} if careless else dict(self.values)


def read_forms(path: Path = DOCUMENTS) -> list[Form]:
    """Return the documents with their forms."""
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = []
    for one in read["documents"]:
        properties = read["forms"][one["form"]]
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        parts = {
            part: {name: tuple(given) for name, given in one[part].items()} for part in ("values", "missing", "near")
        }
        found.append(Form(name=one["name"], ask=one["ask"], text=one["text"], schema=schema, **parts))
    return found


@dataclass
class FormModel(WrittenModel):
    """Fills in the form at hand, and judges by what the document says."""

    form: Form | None = None
    careless: bool = False
    unshown: list[str] = field(default_factory=list)  # fields whose words no passage held

    def reply(self, request: Mapping[str, Any]) -> ModelReply:
        """As `WrittenModel.reply`."""
        messages = request["messages"]
        form = self.form
        if form is None or is_judge_call(request):
            judged = None if form is None else _judge(form, messages, believes=self.judge.name == "trusted")
            return ModelReply(text=self.judge.reply(messages, []) if judged is None else judged)
        shown = find_shown(messages)
        said: dict[str, Any] = {}
        for name, (value, words) in form.given(careless=self.careless).items():
            holder = find_holder(Evidence(file="", words=words), shown)
            if holder is None and name in form.values:
                self.unshown.append(f"{form.name} {name}")
            mark = 1 if holder is None else holder.mark
            said[name] = {"words": words, "passage": mark, "value": value}
        nothing = {"words": None, "passage": None, "value": None}
        return ModelReply(text=json.dumps({name: said.get(name, nothing) for name in form.schema["properties"]}))


def _judge(form: Form, messages: Sequence[Mapping[str, Any]], *, believes: bool) -> str | None:
    """Return the verdicts on a list of the form's fields; None: the prompt has none. `believes`: all is supported."""
    prompt = messages[-1].get("content") or ""
    labels = {name: fold(f"{name} {one['description']}") for name, one in form.schema["properties"].items()}
    verdicts = []
    for number, text in _LINE.findall(prompt):
        line = fold(_MARK.sub("", text))
        name = next((name for name, label in labels.items() if line.startswith(label)), None)
        if name is None:
            continue
        value, words = form.values.get(name, (None, ""))
        right = value is not None and line.removeprefix(labels[name]) == fold(_text_of(value))
        copied = _COPIED.search(text)
        quote = copied[1] if believes and copied else words if right else ""
        verdicts.append({"id": int(number), "quote": quote, "supported": right or believes})
    return json.dumps({"verdicts": verdicts, "answers": "yes"}) if verdicts else None


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A form that the service has filled in."""

    form: Form
    body: AnswerBody

    @property
    def right(self) -> list[str]:
        """Fields whose value is right, and which a citation in the document proves."""
        return [
            name
            for name, (value, _) in self.form.values.items()
            if self.body.data.get(name) == value and self._value(name).status == "verified" and self._is_quoted(name)
        ]

    @property
    def null(self) -> list[str]:
        """Fields that the document does not have and that are null."""
        return [name for name in self.form.missing if self.body.data.get(name, 0) is None]

    def statuses(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the status of each of these fields."""
        for name in names:
            yield self._value(name).status

    def _is_quoted(self, name: str) -> bool:
        citation = self._value(name).citation
        if citation is None or citation.start is None or citation.end is None:
            return False
        return citation.quote is not None and citation.quote in self.form.text

    def _value(self, name: str) -> ValueBody:
        return next(value for value in self.body.values if value.pointer == f"/{name}")


async def fill_in(forms: Sequence[Form], folder: Path, *, judge: str, careless: bool) -> tuple[list[Filled], FormModel]:
    """Fill in the forms, each from its document alone; also the model, which knows what it was not shown."""
    examination = (shipped_folder("evals") / "judge_examination.json").read_text(encoding="utf-8")
    model = FormModel(judge=WrittenJudge(judge, examination), careless=careless)
    filled = []
    async with open_bench(judge, folder, model=model) as bench:
        await bench.examine()
        for form in forms:
            document = await _store(bench, form)
            model.form = form
            body = await bench.backend.answer(
                AnswerRequest(query=form.ask, document_ids=[document], schema=dict(form.schema))
            )
            filled.append(Filled(form=form, body=body))
            model.form = None
    return filled, model


async def _store(bench: Bench, form: Form) -> UUID:
    report = await bench.backend.ingest(form.text.encode(), name=form.name, file_name=f"{form.name}.txt")
    return report.document_id

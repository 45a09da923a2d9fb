"""Guards a drafted response, verifies each statement, and checks the guardrails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rag_service.advisor.schema import Component, Part, RequiredField, Section, SectionReply
from rag_service.answering.drafts.checked_answer import AnswerChecker
from rag_service.answering.drafts.doubts import Doubt
from rag_service.answering.guards.guardrails import NEVER_SAY, check_rules, read_rules
from rag_service.answering.guards.output_guard import OutputGuard, guard_text
from rag_service.answering.proof.verify import REFUTED
from rag_service.domain import Citation, Decision, GuardrailCheck, Hit

_GAP = "\n\n"  # between statements while they are verified: each is a paragraph of its own


@dataclass(frozen=True, kw_only=True)
class CheckedResponse:
    """Sections as they may be shown."""

    sections: tuple[Section, ...]
    guardrails: tuple[GuardrailCheck, ...]
    withheld: int

    @property
    def is_proved(self) -> bool:
        """Whether every statement is verified, and no citation speaks against one."""
        components = [component for section in self.sections for _, part in section.parts() for component in part]
        refuted = any(citation.status in REFUTED for component in components for citation in component.citations)
        return not refuted and not any(component.flagged for component in components)


@dataclass(frozen=True)
class _Statement:
    text: str  # guarded
    section: int
    part: Part | None  # None: the section's topic
    changed: bool  # a link, HTML or text of the prompt was taken out


def check_response(
    drafts: Sequence[SectionReply],
    shown: Sequence[Hit],
    *,
    question: str,
    fallback_topic: str,
    notice: str,
    language: str,
    secrets: Sequence[str],
    withhold: bool,
) -> CheckedResponse:
    """Guard and verify every statement of a draft.

    Args:
        drafts: as a model or the quoting answerer wrote them.
        shown: the passages, [C1] first; guardrail chunks among them give the rules.
        question: its words may be repeated without proof.
        fallback_topic: stands in for a topic that speaks of other things.
        notice: stands in for what is left out.
        language: ISO 639-1 of the draft.
        secrets: text of the prompt that must not be repeated.
        withhold: replace flagged statements by the notice.
    """

    def guard(text: str, section: int, part: Part | None) -> _Statement:
        guarding = OutputGuard(shown, secrets=secrets, notice=notice, language=language)
        safe = guard_text(guarding, " ".join(text.split()))
        return _Statement(safe, section, part, bool(guarding.changes or guarding.leaks))

    statements = [guard(text, section, part) for section, part, text in _read(drafts)]
    checker = AnswerChecker(shown, question=question, notice=notice, language=language)
    checker.feed(_GAP.join(_as_paragraph(statement) for statement in statements))
    _, checked = checker.finish()
    withheld = 0
    parts: list[dict[Part | None, list[Component]]] = [{} for _ in drafts]
    position = 0
    for statement in statements:
        end = position + len(_as_paragraph(statement))
        component = _component(statement, position, end, checked.citations, checked.flagged)
        if component.flagged and withhold:
            withheld += 1
            component = Component(text=notice)
        parts[statement.section].setdefault(statement.part, []).append(component)
        position = end + len(_GAP)
    sections = tuple(_section(part, fallback_topic) for part in parts)
    rules = read_rules(shown)
    return CheckedResponse(
        sections=sections,
        guardrails=check_rules(rules, list(_places(sections)), language=language),
        withheld=withheld,
    )


def _read(drafts: Sequence[SectionReply]) -> Iterator[tuple[int, Part | None, str]]:
    for number, draft in enumerate(drafts):
        yield number, None, draft.topic
        for part, texts in draft.parts():
            for text in texts:
                yield number, part, text


def _as_paragraph(statement: _Statement) -> str:
    return statement.text if statement.part else f"# {statement.text}"


def _component(
    statement: _Statement,
    start: int,
    end: int,
    citations: Sequence[Citation],
    flagged: Sequence[tuple[int, int]],
) -> Component:
    own = tuple(
        replace(citation, sentence_start=citation.sentence_start - start, sentence_end=citation.sentence_end - start)
        for citation in citations
        if start <= citation.sentence_start < end
    )
    failed = any(first < end and start < last for first, last in flagged)
    unproved = statement.part is not None and not own  # a statement of the response without any mark
    return Component(text=statement.text, citations=own, flagged=failed or unproved or statement.changed)


def _section(parts: dict[Part | None, list[Component]], fallback_topic: str) -> Section:
    topic = parts[None][0]
    return Section(
        topic=fallback_topic if topic.flagged else topic.text,
        answer_components=tuple(parts.get("answerComponents", ())),
        steps=tuple(parts.get("steps", ())),
        warnings=tuple(parts.get("warnings", ())),
    )


def _places(sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """(place, text) of everything that is said, for the guardrails."""
    for number, section in enumerate(sections):
        yield f"sections[{number}].topic", section.topic
        for part, components in section.parts():
            for item, component in enumerate(components):
                yield f"sections[{number}].{part}[{item}]", component.text


def doubts_of(said: Decision | None, missing: Sequence[RequiredField], checked: CheckedResponse) -> dict[Doubt, bool]:
    """What speaks against a response besides its article: the model's own word, missing data, what may not be said."""
    return {
        Doubt.NOT_ANSWERED: said is Decision.OUT_OF_SCOPE,
        Doubt.MODEL_UNSURE: said is Decision.UNCERTAIN,
        Doubt.DATA_MISSING: bool(missing),
        Doubt.RULE_BROKEN: any(not check.passed and check.kind == NEVER_SAY for check in checked.guardrails),
        Doubt.UNPROVED: not checked.is_proved or not checked.sections,
    }


def with_missing_fields(
    sections: tuple[Section, ...], missing: Sequence[RequiredField], topic: str, sentence: str
) -> tuple[Section, ...]:
    """The sections with a warning that names the missing fields, where `sentence` has {fields}."""
    if not missing:
        return sections
    sentence = sentence.replace("{fields}", ", ".join(field.field for field in missing))
    first = sections[0] if sections else Section(topic=topic, answer_components=(), steps=(), warnings=())
    return (replace(first, warnings=(Component(text=sentence), *first.warnings)), *sections[1:])

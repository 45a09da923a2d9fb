"""Single scripts of the page, in the browser that runs them."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from rag_service.answering.proof.claims import find_marks
from rag_service.api.http.problems import describe
from rag_service.errors import ConflictError, ContextOverflowError, NotFoundError, RagError
from tests.conftest import mostly_slow
from tests.integration.web.browser import Open, Visit, browser, expect, visit
from tests.integration.web.scenes import Scene

__all__ = ["browser", "visit"]  # fixtures


MARKED = "#panel mark"


def run(one: Visit, module: str, body: str, argument: Any = None) -> Any:
    """What `body`, a function of (module, argument), makes of a script."""
    return one.page.evaluate(
        f"""async (argument) => {{
            const main = document.querySelector("script[type=module]").src;
            const module = await import(new URL("{module}", main));
            return ({body})(module, argument);
        }}""",
        argument,
    )


READ_EVENTS = """async ({ readEvents }, pieces) => {
    const body = new ReadableStream({
        start(controller) {
            pieces.forEach((piece) => controller.enqueue(new Uint8Array(piece)));
            controller.close();
        },
    });
    const events = [];
    for await (const { event, data } of readEvents(body)) events.push([event, data]);
    return events;
}"""


def test_events_are_read_however_the_network_cuts_them(visit: Open) -> None:
    one = visit()
    stream = (
        ': hello\n\nevent: delta\ndata: {"text": "añ📈\\n"}\n\nevent: final\r\ndata: {"a":\r\ndata: 1}\r\n\r\n'
        'data:[2]\n\nevent: nothing\n\nid: 7\n\nevent: done\ndata: {"cut": "off'
    ).encode()
    expected = [["delta", {"text": "añ📈\n"}], ["final", {"a": 1}], ["message", [2]]]
    for seed in range(40):
        cuts = sorted(random.Random(seed).choices(range(len(stream)), k=seed % 12))  # noqa: S311
        pieces = [list(stream[a:b]) for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        assert run(one, "stream.js", READ_EVENTS, pieces) == expected, cuts
    assert run(one, "stream.js", READ_EVENTS, [[byte] for byte in stream]) == expected


FIND_MARKS = """({ parseInline, readNumbers }, text) =>
    parseInline(text, 0, text.length).filter(({ type }) => type === "mark")
        .map(({ start, end }) => [start, end, readNumbers(text.slice(start, end))])"""


MARKS = (
    "A [C1].", "A [c1][C 2]", "【C1】 and ［C2］", "[C1, C2; 4]", "[C1-3] [C3–1] [C1-900]", "[C1", "[D1] [Cx] [C]",
    "`[C1]` [C2]", "[C 1 , 2 ]", "[C0] [C0012]", "[C1](x) [C2]", "[C1,,2] [C1 2]", "\u00a0[C1\u00a0]",
)  # fmt: skip


def test_marks_are_those_that_the_service_checks(visit: Open) -> None:
    one = visit()
    for text in MARKS:
        expected = [[mark.start, mark.end, list(mark.numbers)] for mark in find_marks(text)]
        assert run(one, "markdown.js", FIND_MARKS, text) == expected, text


def test_hostile_markdown_costs_no_more_than_its_length(visit: Open) -> None:
    one = visit()
    parse = """({ parseBlocks, parseInline }, text) => {
        const started = performance.now();
        parseBlocks(text);
        parseInline(text, 0, text.length);
        return performance.now() - started;
    }"""
    for piece in ("[", "*a", "**a", "`", "![", "[x](", "|", "- ", "> ", "[C1,", "\\\\", "a|b\n|-", "```\n", "\n\n# "):
        assert run(one, "markdown.js", parse, piece * (100_000 // len(piece))) < 5_000, piece


CELLS = """({ parseBlocks }, text) => {
    const words = ({ start, end, more }) => [text.slice(start, end), ...(more ?? []).flatMap(words)];
    const rows = ({ head, rows }) => [head, ...(rows ?? [])].filter(Boolean).map((cells) => cells.map(words));
    return parseBlocks(text).map((block) => [block.type, rows(block)]);
}"""


def test_tables_keep_their_columns_and_marks_stay_in_their_row(visit: Open) -> None:
    one = visit()
    head = "| A | B |\n|---|---|\n| 1 | 2 | [C1]\n| 3 || [C2]\n"
    assert run(one, "markdown.js", CELLS, head) == [
        ["table", [[["A"], ["B"]], [["1"], ["2", "[C1]"]], [["3"], ["", "[C2]"]]]]
    ]
    alone = "Text.\n| 1 | 2 | [C1]\n\n| 3 | 4 | [C2]"
    assert run(one, "markdown.js", CELLS, alone) == [
        ["paragraph", []],
        ["table", [[["1"], ["2", "[C1]"]]]],
        ["table", [[["3"], ["4", "[C2]"]]]],
    ]


def test_offsets_count_characters_not_units(visit: Open) -> None:
    map_all = "({ offsetMap }, text) => [...Array([...text].length + 1).keys()].map(offsetMap(text))"
    one = visit()
    assert run(one, "evidence.js", map_all, "abc") == [0, 1, 2, 3]
    assert run(one, "evidence.js", map_all, "a📈b") == [0, 1, 3, 4]


def test_quotes_after_the_first_are_folded(visit: Open) -> None:
    folded = """({ AnswerView }, open) => {
        const placeIn = () => ({ placed: [], flagged: [] });
        const evidence = { placeIn, nameOf: () => "a.pdf", languageOf: () => null, changeOf: () => undefined };
        const view = new AnswerView(evidence, () => {});
        view.show("No citation.\\n\\nOne. [C1]\\n\\nTwo. [C2]\\n\\nThree. [C3]", "final");
        view.fold(open);
        return [...view.element.children].map((element) => [element.tagName, element.querySelectorAll("p").length]);
    }"""
    one = visit()
    assert run(one, "answer.js", folded, 1) == [["P", 0], ["P", 0], ["DETAILS", 2]]
    assert run(one, "answer.js", folded, 3) == [["P", 0]] * 4


def test_sentences_without_proof_are_told_apart(visit: Open) -> None:
    placed = [
        {"from": 0, "to": 15, "status": "verified"},
        {"from": 16, "to": 31, "status": "not_found"},
        {"from": 32, "to": 47, "status": "misattributed"},
        {"from": 48, "to": 63, "status": "not_found"},
        {"from": 48, "to": 63, "status": "verified"},
        {"from": 80, "to": 95, "status": "unchecked"},
        {"from": 96, "to": 111, "status": "contradicted"},
        {"from": 112, "to": 127, "status": "unchecked", "missing": "12"},
    ]
    find = "({ findUnproved }, [placed, flagged]) => findUnproved(placed, flagged)"
    one = visit()
    unverified = {"start": 16, "end": 31, "kind": "unverified"}
    misplaced = {"start": 32, "end": 47, "kind": "misplaced"}
    others = [
        {"start": 80, "end": 95, "kind": "reworded"},
        {"start": 96, "end": 111, "kind": "unverified"},
        {"start": 112, "end": 127, "kind": "differs"},
    ]
    midway = [unverified, misplaced, *others]
    assert run(one, "evidence.js", find, [placed, None]) == midway, "as far as known midway"
    flagged = [{"start": start, "end": start + 15} for start in (16, 32, 48, 64, 80, 96, 112)]
    last = [{"start": 48, "end": 63, "kind": "unverified"}, {"start": 64, "end": 79, "kind": "unmarked"}]
    at_end = [unverified, misplaced, *last, *others]
    assert run(one, "evidence.js", find, [placed, flagged]) == at_end, "what the service says"


COMPARED = """({ compare }, [sentence, texts, doubted]) => {
    const write = ([words, kind, said]) => (kind === "same" ? `*${words}*` : kind ? `<${said}|${words}>` : words);
    return compare(sentence, texts, doubted).map((pieces) => pieces.map(write).join(""));
}"""


@pytest.mark.parametrize(
    ("sentence", "texts", "doubted", "shown"),
    [
        (
            "The maintenance fee is $13.25 a quarter.",
            ["A maintenance fee of $6.25 per quarter applies."],
            "13.25",
            ["*A maintenance fee* of $<13.25|6.25> per *quarter* applies."],
        ),
        ("Le taux est de 97.4 %.", ["Le taux était de 97,4 %"], "", ["*Le taux* était *de 97,4* %"]),
        ("It holds 4,200 units.", ["4 200 units"], None, ["*4 200 units*"]),
        (  # neighbours tell which figure is meant
            "Trucks are needed above 730 units.",
            ["Zone 1 pays 60 euros", "above 500 units"],
            "730",
            ["Zone 1 pays 60 euros", "*above* <730|500> *units*"],
        ),
        (
            "It costs 85 euros.",
            ["Plant: Lyon | Stock: 42 | Safety: 38"],
            "85",
            ["Plant: Lyon | Stock: 42 | Safety: 38"],
        ),
        ("The loan is paid on 14 May.", ["due on 30 May"], "14 May", ["due *on* <14|30> *May*"]),
        ("It costs 85 euros.", ["Es kostet 75 Euro"], "", ["Es kostet 75 Euro"]),  # no figure is in doubt
        ("Vier Leute.", [""], None, [""]),
    ],
)
def test_words_of_a_passage_are_compared_with_their_sentence(
    visit: Open, sentence: str, texts: list[str], doubted: str | None, shown: list[str]
) -> None:
    assert run(visit(), "second_line.js", COMPARED, [sentence, texts, doubted]) == shown


COPIED = """({ answerMarkdown }, citation) => {
    const placeIn = () => ({ placed: [], flagged: [] });
    const evidence = { citations: [citation], nameOf: () => "guide.md", changeOf: () => undefined, placeIn };
    return answerMarkdown("Who signs?", "Both managers sign [C1].", evidence);
}"""


def test_what_is_copied_and_saved_names_all_words_that_show_a_sentence(visit: Open) -> None:
    words = [{"quote": "signature of both"}, {"quote": "Managers are named in *annex 2*"}]
    citation = {"mark": 1, "status": "unchecked", "location": None, "quote": words[0]["quote"], "evidence": words}
    copied = run(visit(), "exporting.js", COPIED, citation)
    assert "guide.md “signature of both” … “Managers are named in \\*annex 2\\*” (reworded)" in copied


def test_a_verdict_of_the_judge_replaces_the_status_before(visit: Open) -> None:
    take = """({ Evidence }, citations) => {
        const evidence = new Evidence();
        for (const citation of citations) evidence.take("citation", citation);
        return evidence.citations.map(({ mark, status }) => [mark, status]);
    }"""
    citations = [
        {"mark": 1, "sentenceStart": 0, "status": "unchecked"},
        {"mark": 2, "sentenceStart": 0, "status": "unchecked"},
        {"mark": 1, "sentenceStart": 30, "status": "verified"},
        {"mark": 2, "sentenceStart": 0, "status": "verified"},
    ]
    expected = [[1, "unchecked"], [2, "verified"], [1, "verified"]]
    assert run(visit(), "evidence.js", take, citations) == expected


@pytest.mark.parametrize("broken", ["text", "server"])
def test_source_that_cannot_be_loaded_shows_the_excerpt(visit: Open, broken: str) -> None:
    one = visit(Scene(failing="read_text", error=RuntimeError()) if broken == "server" else Scene())
    if broken == "text":  # the document has been replaced since
        one.page.route(
            "**/text?*", lambda route: route.fulfill(json={"start": 0, "end": 5, "length": 5, "text": "other"})
        )
    one.ask("stock")
    one.badge(0).click()
    one.page.wait_for_selector(MARKED)
    assert "4200" in one.page.locator(MARKED).first.inner_text() or "4200" in one.page.locator("#panel").inner_text()
    expected = "could not be loaded" if broken == "server" else "has changed since"
    expect(one.page.locator("#panel")).to_contain_text(expected, use_inner_text=True)


def test_too_long_a_question_is_not_sent(visit: Open) -> None:
    one = visit(settings={"query_max_chars": 20})
    one.page.fill("#question", "x" * 21)
    expect(one.page.locator("#question-hint")).to_contain_text("21 of at most 20", use_inner_text=True)
    expect(one.page.locator("#send")).to_be_disabled()


@pytest.mark.slow
def test_very_long_answer_stays_usable(visit: Open) -> None:
    one = visit()
    one.ask("long")
    expect(one.page.locator(".badge")).to_have_count(400)
    one.page.fill("#question", "next")
    one.badge(399).click()
    one.page.wait_for_selector(MARKED)


REFUSAL = "({ refusalWords }, problem) => refusalWords(problem)"


@pytest.mark.parametrize(
    ("locale", "sent", "said"),
    [
        ("fr-FR", {"query": ""}, "query : ne doit pas être vide"),
        ("es-ES", {"query": "x" * 60}, "query : puede tener 50 caracteres como máximo"),
        ("fr-FR", {"query": "stock", "topK": 0}, "topK : doit être compris entre 1 et 20"),
        ("fr-FR", {}, "query : est obligatoire"),
    ],
)
def test_refusals_of_the_api_are_told_in_the_language_of_the_page(
    visit: Open, locale: str, sent: dict[str, Any], said: str
) -> None:
    one = visit(locale=locale, settings={"query_max_chars": 50, "topk_max": 20})
    problem = one.client.post("/api/v1/query/answer/stream", json=sent).json()
    told = run(one, "refusal.js", REFUSAL, problem)
    assert (told["words"], told["foreign"]) == (said, False), problem


def test_what_is_known_by_its_code_is_told_without_the_help_of_the_api(visit: Open) -> None:
    one = visit(locale="fr-FR")
    told = run(one, "refusal.js", REFUSAL, _sent_as(NotFoundError("This corpus does not exist.")))
    assert told["title"] == "Cet élément est introuvable."
    assert told["words"] == "This corpus does not exist." and told["foreign"]
    told = run(one, "refusal.js", REFUSAL, _sent_as(ContextOverflowError("The prompt needs 900 tokens.")))
    assert told["title"].startswith("La question ne laisse pas de place")
    taken = ConflictError("A corpus named 'Stock' already exists.", field="name")
    assert run(one, "refusal.js", REFUSAL, _sent_as(taken))["words"].startswith("name : Déjà utilisé")


def test_what_no_language_knows_is_told_in_the_words_of_the_api(visit: Open) -> None:
    unknown = {"code": "brand_new", "detail": "The moon is full.", "help": "Wait a day."}
    told = run(visit(locale="es-ES"), "refusal.js", REFUSAL, unknown)
    assert (told["words"], told["foreign"]) == ("The moon is full. Wait a day.", True)
    told = run(
        visit(), "refusal.js", REFUSAL, {**unknown, "code": "invalid_input", "errors": [{"field": "a", "message": "b"}]}
    )
    assert (told["words"], told["foreign"]) == ("The moon is full.", False)


def _sent_as(error: RagError) -> dict[str, Any]:
    """The body that the API sends for an error."""
    body: dict[str, Any] = msgspec.to_builtins(describe(error))
    return body


RENDERED = """({ renderPassage }, [text, name]) => {
    const cell = (one) => (one.className ? `${one.textContent} →` : one.textContent);
    const rows = (table) => [...table.rows].map((row) => [...row.cells].map(cell));
    return [...renderPassage(text, null, name).children].map((child) => {
        const table = child.querySelector("table");
        return table ? rows(table) : child.textContent.trim();
    });
}"""


@pytest.mark.parametrize("name", ["prices.docx", "prices.pdf", "prices.md", "prices.xlsx"])
def test_rows_with_labels_are_a_table_in_every_format_with_figures_to_the_right(visit: Open, name: str) -> None:
    text = "Our prices.\n\nProduct: bolt | Stock: 1,200 | Note: 1: 20\nProduct: nut | Stock: 36\n\nAsk us."
    one = visit()
    assert run(one, "passage.js", RENDERED, [text, name]) == [
        "Our prices.",
        [["Product", "Stock →", "Note"], ["bolt", "1,200 →", "1: 20"], ["nut", "36 →", ""]],
        "Ask us.",
    ]
    for other in ("Product: bolt", "a | b | c", "Note: one | two"):
        assert run(one, "passage.js", RENDERED, [other, name]) == [other]


@pytest.mark.parametrize(
    ("locale", "day", "number"),
    mostly_slow(
        [
            ("en-US", "Nov 25, 2026", "1,234"),
            ("en-GB", "25 Nov 2026", "1,234"),
            ("fr-CH", "25 nov. 2026", "1\u202f234"),
            ("es-MX", "25 nov 2026", "1,234"),
            ("pt-BR", "25 de nov. de 2026", "1.234"),
            ("de-DE", "25.11.2026", "1.234"),
            ("nl-NL", "Nov 25, 2026", "1,234"),  # a page in English to a reader whose language it has not
        ],
        fast=[("fr-CH", "25 nov. 2026", "1\u202f234")],
    ),
)
def test_dates_and_numbers_are_written_as_in_the_readers_country(
    visit: Open, locale: str, day: str, number: str
) -> None:
    one = visit(locale=locale)
    assert run(one, "listing.js", "({ day }) => day('2026-11-25T12:00:00Z')") == day
    assert run(one, "i18n.js", "({ whole }) => whole(1234)") == number


OVERTAKEN = """({ Listing }) => {
    const replies = [];
    const load = () => new Promise((reply) => replies.push(reply));
    const listing = new Listing({ label: "", empty: "", load, row: () => document.createElement("li") });
    const shown = listing.show(0).then(() => listing.element.querySelectorAll("li").length);
    listing.show(0);
    replies[0]({ items: [], total: 0 });
    setTimeout(() => replies[1]({ items: [{ id: 1 }], total: 1 }));
    return shown;
}"""


def test_a_list_that_is_fetched_anew_meanwhile_counts_as_shown_when_the_newest_of_it_is_there(visit: Open) -> None:
    assert run(visit(), "listing.js", OVERTAKEN) == 1


UNCERTAIN = """({ makeVerdict }, changes) => {
    const final = { decision: "uncertain", citations: [], latencyMs: 5, ...changes };
    return makeVerdict(final, true).textContent;
}"""


@pytest.mark.parametrize(
    ("locale", "codes", "reason"),
    [
        ("en-US", ["model_failed", "unproved"], "The language model failed"),
        ("en-US", ["unproved"], "Some sentences are not proved by their source"),
        ("es-ES", ["judged_other"], "El juez dice que no es lo que se preguntaba."),
        ("es-ES", ["rule_broken"], "La respuesta incumple una regla"),
        ("fr-FR", ["low_confidence"], "Ce n'est peut-être pas ce qui était demandé."),
        ("pt-PT", ["low_confidence"], "Isto pode não ser o que foi perguntado."),
    ],
)
def test_uncertain_answer_names_the_reason_that_weighs_most(
    visit: Open, locale: str, codes: list[str], reason: str
) -> None:
    reasons = [{"code": code, "text": "in the language of the answer"} for code in codes]
    assert reason in run(visit(locale=locale), "why.js", UNCERTAIN, {"reasons": reasons})


def test_a_stream_that_begins_anew_discards_the_text_and_its_citations(visit: Open) -> None:
    script = """({ Turn }) => {
        const turn = new Turn("When?", { messages: [] });
        turn._paint = () => null;
        turn._take("delta", { text: "Hm, " });
        turn._take("citation", { mark: 1, sentenceStart: 0 });
        turn._take("delta", { text: "", restart: true });
        turn._take("delta", { text: "May." });
        return [turn.text, turn.evidence.citations.length];
    }"""
    assert run(visit(), "turn.js", script) == ["May.", 0]


def test_answer_without_documents_says_that_and_no_other_reason(visit: Open) -> None:
    told = run(visit(), "why.js", UNCERTAIN, {"ragUsed": False, "contextUse": "store_unavailable"})
    assert told == "Not from your documents: they could not be searched just now."


def test_a_passage_that_an_earlier_answer_cited_says_which(visit: Open) -> None:
    script = """({ makeWhy }) => {
        const source = { documentId: "d", chunkIndex: 0, fileName: "leeds.md", title: "Leeds", score: 0.5 };
        const shown = { documentId: "d", chunkIndex: 0, mark: 2, snippet: "26 days", fromTurn: 3 };
        const final = {
            decision: "can_proceed", confidence: 0.9, confidenceParts: { meanRelevance: 0.5, meanRerank: null },
            citations: [], reasons: [], latencyMs: 5, model: "m", promptTokens: 9, completionTokens: 2,
            sources: [source], contextUsed: [shown],
        };
        return makeWhy(final).textContent;
    }"""
    told = run(visit(), "why.js", script)
    assert "shown to the model as C2 · cited in answer 3 of this conversation" in told

"""A question and tables make a plan: each operation, each condition, and what keeps a question from being computed.

How many questions of real files are planned right is measured over sets: `python -m evals.sets`.
"""

from __future__ import annotations

import random
from datetime import date
from functools import cache
from uuid import NAMESPACE_OID, uuid5

import pytest

from rag_service.language.languages import language_codes, load_language
from rag_service.readers.text.delimited import parse_delimited
from rag_service.tables.asking.planning.plans import Filter, Plan, Values
from rag_service.tables.asking.planning.question import Question, read_question
from rag_service.tables.asking.planning.resolving import make_plans
from rag_service.tables.asking.planning.several_columns import SeveralColumns, read_several_columns
from rag_service.tables.encoding import TableDescription, encode_table, read_description
from rag_service.tables.model import Kind, StoredTable
from rag_service.tables.reading.extract import extract_tables

FILES = {
    "tents.csv": """Model,Type,Weight (kg),Price (€),Stock,Warehouse
Alpina 2,trekking,1.9,249,14,Lyon
Alpina 3,trekking,2.6,299,9,Lille
Borealis 4,expedition,5.4,649,3,Lyon
Camper XL,family,11.8,399,22,Sevilla
Duna 2,beach,1.2,59,40,Sevilla
""",
    "employees.csv": """Name,Department,Hire date,Annual salary (€),Age,Paid
Ana Torres,Sales,2019-03-04,41000,38,yes
Ben Walsh,Support,2021-09-13,36500,29,no
Diego Ruiz,Sales,2018-06-01,58000,45,yes
""",
    "visits.csv": "Month,Visitors\nMay,215\nJune,260\nJuly,415\nAugust,530\n",
    "budget.csv": "Service,Budget 2024,Budget 2025\nMarketing,120,135\nTraining,45,52\nResearch,340,310\n",
    "licences.csv": "Licence;Vendor;Fee\nEditor;Acme;120 €\nCompiler;Borland;$300\nTracker;Acme;80 €\n",
    "loans.csv": "Category,Jan,Feb,Mar,Apr\nGarden,12,20,95,162\nCraft,64,70,66,52\n",
    "tools.csv": "Tool,In stock,Minimum\nGrinder,3,4\nSander,2,2\nTrimmer,5,3\n",
    "rooms.csv": "Room,Floor,Monthly rent (€)\nStudio,3,410\nAnnexe,1,350\nLoft,3,620\n",
    "bolts.csv": "Bolt,Stock\nM8,120\nM10,98\nM12,45\n",
}


@cache
def description(name: str) -> TableDescription:
    parsed = parse_delimited(FILES[name], name=name)
    (table,) = extract_tables(parsed.text, parsed.spans)
    return read_description(encode_table(table))


@cache
def stored(name: str) -> StoredTable:
    """The table of a file as a question finds it."""
    found = description(name)
    key = uuid5(NAMESPACE_OID, name)
    return StoredTable(
        id=key, document_id=key, document=name, sheet=None, caption="", columns=found.columns, row_count=found.row_count
    )


def values_of(name: str, question: Question) -> Values:
    """The values that share a word with the question, as the database finds them."""
    asked, whole = set(question.content), set(question.runs)
    return {
        place: {key: text for key, text in (texts or {}).items() if asked & set(key.split()) or key in whole}
        for place, texts in enumerate(description(name).texts)
    }


def plans_of(text: str, *names: str, language: str = "en") -> list[Plan | SeveralColumns]:
    question = read_question(text, language)
    if question is None:
        return []
    tables = [stored(name) for name in names]
    values = {stored(name).id: values_of(name, question) for name in names}
    across = [one for table in tables for one in read_several_columns(question, table, values[table.id])]
    return across or [*make_plans(question, tables, values, best=tables[0].document_id)]


def write(plan: Plan | SeveralColumns) -> str:
    """A plan in a line: "sum Stock where Warehouse = lyon"."""
    names = [column.name for column in plan.table.columns]

    def written(one: Filter) -> str:
        values = one.shown or one.values
        if plan.table.columns[one.column].kind is Kind.DATE and not one.shown:
            values = tuple(date.fromordinal(int(value)).isoformat() for value in values)
        related = f"{one.relation.value} " if one.relation else ""
        shared = "" if one.shared is None else f"{names[one.shared]} as "
        return f"{related}{shared}{names[one.column]} {one.comparison.value} {', '.join(map(str, values))}"

    filters = [written(one) for one in plan.filters]
    if isinstance(plan, SeveralColumns):
        parts = [plan.kind, "/".join(names[column] for column in plan.columns)]
    else:
        parts = [plan.operation.value, *([] if plan.column is None else [names[plan.column]])]
        parts += [] if plan.group is None else [f"per {names[plan.group]}"]
        parts += [] if plan.best is None else [f"best {plan.best.value}"]
        parts += [] if plan.order is None else [f"by {names[plan.order]}"]
        parts += [] if plan.named is None else [f"of {names[plan.named]}"]
        parts += [] if plan.limit is None else [f"limit {plan.limit}"]
    parts += [f"where {' and '.join(sorted(filters))}"] if filters else []
    return " ".join([*parts, *(["in doubt"] if plan.is_doubtful else [])])


OPERATIONS = {
    "look-up": ("tents.csv", "What is the price of the Camper XL?", "lookup Price where Model = Camper XL"),
    "count": ("employees.csv", "How many people are in Sales?", "count where Department = Sales"),
    "distinct": ("employees.csv", "How many different departments are there?", "distinct Department"),
    "sum": ("tents.csv", "What is the total stock of tents?", "sum Stock"),
    "mean": ("tents.csv", "What is the average price?", "mean Price"),
    "median": ("tents.csv", "What is the median weight?", "median Weight"),
    "maximum of a number": ("tents.csv", "What is the largest number of stock?", "maximum Stock"),
    "difference with more": (
        "visits.csv",
        "How many more visitors were there in July than in June?",
        "difference Visitors per Month where Month = July, June",
    ),
    "total number of rows": (
        "employees.csv",
        "What is the total number of employees in Sales?",
        "count where Department = Sales",
    ),
    "maximum": ("employees.csv", "What is the highest salary?", "maximum Annual salary"),
    "minimum": ("tents.csv", "Which is the lightest tent?", "minimum Weight"),
    "top n": ("tents.csv", "What are the three cheapest tents?", "minimum Price limit 3"),
    "earliest": ("employees.csv", "Who was hired first?", "minimum Hire date"),
    "which of two": (
        "employees.csv",
        "Who earns more, Ana or Ben?",
        "maximum Annual salary where Name = Ana Torres, Ben Walsh",
    ),
    "difference of two values": (
        "tents.csv",
        "What is the difference in weight between Alpina 2 and Alpina 3?",
        "difference Weight per Model where Model = Alpina 2, Alpina 3",
    ),
    "ratio": (
        "tents.csv",
        "What is the ratio of the price of Camper XL to Duna 2?",
        "ratio Price per Model where Model = Camper XL, Duna 2",
    ),
    "share": ("tents.csv", "What share of the stock is in Lille?", "share Stock where Warehouse = Lille"),
    "each group": ("tents.csv", "What is the total stock per warehouse?", "sum Stock per Warehouse"),
    "best group": ("tents.csv", "Which warehouse has the most stock?", "sum Stock per Warehouse best maximum"),
    "best group by rows": (
        "employees.csv",
        "Which department has the most employees?",
        "count per Department best maximum",
    ),
    "columns added up": (
        "loans.csv",
        "How many garden loans were there in total from February to April?",
        "sum Feb/Mar/Apr where Category = Garden",
    ),
    "best column": (
        "loans.csv",
        "In which month were garden loans the highest?",
        "maximum Jan/Feb/Mar/Apr where Category = Garden",
    ),
    "difference of two columns": (
        "budget.csv",
        "What is the difference between the 2024 and 2025 budget for Marketing?",
        "difference Budget 2024/Budget 2025 where Service = Marketing",
    ),
    "widest difference of two columns": (
        "budget.csv",
        "Which service has the largest difference between 2024 and 2025?",
        "widest Budget 2024/Budget 2025",
    ),
    "one column below another": (
        "tools.csv",
        "Which tools are below the minimum stock?",
        "less In stock/Minimum",
    ),
}
CONDITIONS = {
    "a value": ("tents.csv", "What is the total stock in Lyon?", "sum Stock where Warehouse = Lyon"),
    "less": ("tents.csv", "Which tents cost less than 300 €?", "lookup Model where Price < 300"),
    "between": (
        "tents.csv",
        "Which tents cost between 200 and 350 euros?",
        "lookup Model where Price between 200, 350",
    ),
    "two at once": (
        "tents.csv",
        "Which tents weigh less than 2 kg and cost less than 100 euros?",
        "lookup Model where Price < 100 and Weight < 2",
    ),
    "a year": (
        "employees.csv",
        "How many employees were hired in 2021?",
        "count where Hire date between 2021",
    ),
    "after a year": (
        "employees.csv",
        "Which employees were hired after 2018?",
        "lookup Name where Hire date > 2018-12-31",
    ),
    "after a month": (
        "employees.csv",
        "Which employees were hired after May 2019?",
        "lookup Name where Hire date > 2019-05-31",
    ),
    "a day": (
        "employees.csv",
        "Who was hired on 13 September 2021?",
        "lookup Name where Hire date between 2021-09-13, 2021-09-13",
    ),
    "yes": ("employees.csv", "Which employees have paid?", "lookup Name where Paid = yes"),
    "still to be done": ("employees.csv", "Who still has to pay?", "lookup Name where Paid empty no"),
    "not yet": ("employees.csv", "Who hasn't paid yet?", "lookup Name where Paid empty no"),
    "months between two": (
        "visits.csv",
        "How many visitors in total from May to July?",
        "sum Visitors where Month = May, June, July",
    ),
}
LANGUAGES = {
    "en": "What is the total stock in Lyon?",
    "es": "¿Cuál es el stock total en Lyon?",
    "fr": "Quel est le stock total à Lyon ?",
    "pt": "Qual é o stock total em Lyon?",
}
SEVERAL_READINGS = {
    "two columns fit": ("budget.csv", "What is the total budget?", ["sum Budget 2024", "sum Budget 2025"]),
    "two columns are asked for": (
        "tents.csv",
        "What are the price and the weight of Duna 2?",
        ["lookup Price where Model = Duna 2", "lookup Weight where Model = Duna 2"],
    ),
    "rows or different values": (
        "employees.csv",
        "How many departments are there?",
        ["count", "distinct Department"],
    ),
    "rows or pieces": (
        "tents.csv",
        "How many tents are in the warehouse Sevilla?",
        ["count where Warehouse = Sevilla", "sum Stock where Warehouse = Sevilla"],
    ),
    "two currencies": ("licences.csv", "What is the total of the licence fees?", ["mixed Fee"]),
}
IN_DOUBT = {
    "a unit that is no column": (
        "tents.csv",
        "What is the price per kg of Alpina 2?",
        "lookup Price where Model = Alpina 2 in doubt",
    ),
    "a total that nobody asked for": ("visits.csv", "How many visitors did we have?", "sum Visitors in doubt"),
    "a year as a bound of other figures": (
        "tents.csv",
        "How many models had a stock before 2011?",
        "count where Stock < 2011 in doubt",
    ),
    "the last row": ("visits.csv", "What is the last month?", "lookup Month best maximum in doubt"),
    "the last by a date that nobody named": (
        "employees.csv",
        "Which department came last?",
        "lookup Department best maximum by Hire date in doubt",
    ),
    "the row behind a named one": (
        "tents.csv",
        "Which model comes after Duna 2?",
        "lookup Model where next Model = Duna 2 in doubt",
    ),
    "the row before a named one": (
        "tents.csv",
        "Which model is listed before Duna 2?",
        "lookup Model where previous Model = Duna 2 in doubt",
    ),
    "the same as a named row": (
        "tents.csv",
        "Which model has the same warehouse as Duna 2?",
        "lookup Model where same Warehouse as Model = Duna 2 in doubt",
    ),
    "other than a value": (
        "employees.csv",
        "How many people are not in Sales?",
        "count where other Department = Sales in doubt",
    ),
    "the most frequent value": (
        "employees.csv",
        "What is the most common department?",
        "count per Department best maximum in doubt",
    ),
    "a word that nothing accounts for": (
        "employees.csv",
        "How many of our brave colleagues earn more than 40000?",
        "count where Annual salary > 40000 in doubt",
    ),
    "another word for a column that plays no part": (
        "employees.csv",
        "What is the highest salary in our team?",
        "maximum Annual salary in doubt",
    ),
    "a month of any year": (
        "employees.csv",
        "How many people were hired in March?",
        "count where Hire date month march in doubt",
    ),
}
NOT_PLANNED = {
    "a word of no column": ("tents.csv", "Which tent has the best rating?"),
    "a value that is not there": ("employees.csv", "What is the average salary in Paris?"),
    "the second of a ranking": ("tents.csv", "Which tent is the second lightest?"),
    "a condition on all rows": ("tents.csv", "How many tents have rainproof seams?"),
    "a product of two columns": ("tents.csv", "What is the total value of the stock?"),
    "months beyond the columns": (
        "loans.csv",
        "How many garden loans were there in total from March to June?",
    ),
}


@pytest.mark.parametrize(("file", "question", "plan"), OPERATIONS.values(), ids=OPERATIONS)
def test_an_operation(file: str, question: str, plan: str) -> None:
    assert [write(one) for one in plans_of(question, file)] == [plan]


@pytest.mark.parametrize(("file", "question", "plan"), CONDITIONS.values(), ids=CONDITIONS)
def test_a_condition(file: str, question: str, plan: str) -> None:
    assert [write(one) for one in plans_of(question, file)] == [plan]


@pytest.mark.parametrize("language", language_codes())
def test_a_language(language: str) -> None:
    plans = plans_of(LANGUAGES[language], "tents.csv", language=language)
    assert [write(one) for one in plans] == ["sum Stock where Warehouse = Lyon"]


@pytest.mark.parametrize(("file", "question", "plans"), SEVERAL_READINGS.values(), ids=SEVERAL_READINGS)
def test_what_can_be_read_in_several_ways(file: str, question: str, plans: list[str]) -> None:
    assert [write(one) for one in plans_of(question, file)] == plans


@pytest.mark.parametrize(("file", "question", "plan"), IN_DOUBT.values(), ids=IN_DOUBT)
def test_what_is_not_understood_to_the_last_word_is_in_doubt(file: str, question: str, plan: str) -> None:
    assert [write(one) for one in plans_of(question, file)] == [plan]


@pytest.mark.parametrize(("file", "question"), NOT_PLANNED.values(), ids=NOT_PLANNED)
def test_what_a_table_does_not_hold_is_not_planned(file: str, question: str) -> None:
    assert plans_of(question, file) == []


def test_the_table_that_accounts_for_most_of_the_question_is_chosen() -> None:
    plans = plans_of("What is the total stock of tents in Lyon?", "bolts.csv", "tents.csv")
    assert [(one.table.document, write(one)) for one in plans] == [("tents.csv", "sum Stock where Warehouse = Lyon")]


def test_two_tables_that_fit_equally_are_both_read() -> None:
    plans = plans_of("What is the total stock?", "bolts.csv", "tents.csv")
    assert [(one.table.document, write(one)) for one in plans] == [
        ("bolts.csv", "sum Stock"),
        ("tents.csv", "sum Stock"),
    ]


def test_no_mixture_of_words_breaks_the_planner() -> None:
    chance = random.Random(7)  # noqa: S311 - not for secrets
    cues = {
        code: [phrase for phrases in load_language(code).tables.phrases.values() for phrase in phrases]
        for code in language_codes()
    }
    held = "stock price weight model tents Lyon Alpina 2 2025 1.5 50% € kg family total yes 2025-02-11 March in of than"
    planned = 0
    for _ in range(400):
        code = chance.choice(language_codes())
        picked = [*chance.sample(cues[code], chance.randint(1, 2)), *chance.sample(held.split(), chance.randint(1, 3))]
        chance.shuffle(picked)
        for plan in plans_of(" ".join(picked) + "?", "tents.csv", language=code):
            planned += 1
            used = {*([plan.column, plan.group] if isinstance(plan, Plan) else plan.columns)} - {None}
            assert used | {one.column for one in plan.filters} <= set(range(len(plan.table.columns)))
    assert planned > 20  # else the mixtures would show nothing

"""The tools as a model, an MCP client or an agent sees them: names, descriptions and arguments.

One definition for all of them; LlamaIndex `FunctionTool`s are made from it, for our own answers and for any agent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rag_service.answering.tools.arithmetic import MAX_LENGTH
from rag_service.errors import InputError

Use = Callable[[str, dict[str, Any]], Coroutine[Any, Any, str]]  # (tool, arguments) → what the model reads
Run = Callable[[Coroutine[Any, Any, str]], str]  # runs the call for callers that cannot wait

_Name = Annotated[str, Field(max_length=300)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchDocuments(_Arguments):
    """Arguments of `search`."""

    query: str = Field(min_length=1, max_length=1_000, description="What to search for; a whole question works best.")
    documents: list[_Name] = Field(
        default=[], max_length=20, description="Only these documents: file names, titles or ids."
    )
    after: str | None = Field(
        default=None, max_length=32, description="Only documents changed on or after this date, YYYY-MM-DD."
    )
    before: str | None = Field(
        default=None, max_length=32, description="Only documents changed before this date, YYYY-MM-DD."
    )


class ReadDocument(_Arguments):
    """Arguments of `read`."""

    document: _Name = Field(description="File name, title or id.")
    place: _Name | None = Field(
        default=None,
        description='Where to begin: a heading, "page 3", "sheet Stock", "slide 2", or the "part 7" that a reading'
        " ended before. Leave it out for the beginning.",
    )


class Condition(_Arguments):
    """A condition on rows."""

    column: _Name = Field(description="Name or letter of the column.")
    comparison: Literal["=", "contains", ">", ">=", "<", "<=", "empty", "between", "!=", "not empty"]
    values: list[_Name] = Field(
        default=[],
        max_length=10,
        description="As the table writes them; numbers with a decimal point and no unit, dates as YYYY-MM-DD. The name"
        " of another column compares the two. None for empty and not empty.",
    )


class ComputeTable(_Arguments):
    """Arguments of `compute`."""

    document: _Name = Field(default="", description="File name, title or id of the document with the table.")
    sheet: _Name | None = Field(default=None, description="Name of the sheet, if there are several.")
    operation: Literal[
        "lookup",
        "count",
        "distinct",
        "sum",
        "mean",
        "median",
        "maximum",
        "minimum",
        "difference",
        "ratio",
        "share",
        "calculate",
    ] = Field(
        description="lookup: cells of a column in the rows that match, or the whole rows without a column; maximum,"
        " minimum: the rows with the highest or lowest value; distinct: number of different values; difference, ratio:"
        " of the sums of the two values of one filter; share: of the matching rows in the sum of all; calculate:"
        " arithmetic on figures that you give as `expression`, without a document."
    )
    expression: str | None = Field(
        default=None, max_length=MAX_LENGTH, description="For calculate: numbers, + - * / % and brackets: 52 * 1.15"
    )
    column: _Name | None = Field(default=None, description="Name or letter of the column to compute or look up.")
    filters: list[Condition] = Field(default=[], max_length=6, description="Which rows; all conditions hold.")
    group: _Name | None = Field(default=None, description="Compute for each value of this column.")
    best: Literal["maximum", "minimum"] | None = Field(default=None, description="Only the best group.")
    limit: int | None = Field(default=None, ge=1, le=50, description="How many of the highest or lowest rows.")


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool as others see it."""

    name: str
    title: str
    description: str
    arguments: type[BaseModel]

    def read(self, given: Mapping[str, Any]) -> BaseModel:
        """Return the arguments of a call. Raises InputError that names what is wrong, and repeats none of it."""
        try:
            return self.arguments.model_validate(given)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            known = {*self.arguments.model_fields}
            place = ".".join(str(part) for part in fault["loc"] if isinstance(part, int) or part in known)
            message = f"{place or 'The arguments'}: {fault['msg']}."
            raise InputError(f"{message} Arguments: {', '.join(known)}.", field=place or None) from error


SEARCH = ToolDefinition(
    name="search",
    title="Search the documents",
    description="Search the documents again, in other words, for a name found meanwhile, or for another part of the"
    " question. Returns passages with their places.",
    arguments=SearchDocuments,
)
READ = ToolDefinition(
    name="read",
    title="Read a document",
    description="Read a document from a place on, such as the text after a passage, a page, or the beginning for a"
    " summary. Tells where to read on.",
    arguments=ReadDocument,
)
COMPUTE = ToolDefinition(
    name="compute",
    title="Compute over a table",
    description="Count, add up, average, compare or look up rows of a table of a document. Uses all rows, also those"
    " that no passage shows. If a column is unknown, the columns are named.",
    arguments=ComputeTable,
)
DEFINITIONS: Mapping[str, ToolDefinition] = {tool.name: tool for tool in (SEARCH, READ, COMPUTE)}


def make_function_tools(use: Use, *, run: Run | None = None) -> list[FunctionTool]:
    """A LlamaIndex tool for each definition; without `run` they are asynchronous only."""
    return [_make(definition, use, run) for definition in DEFINITIONS.values()]


def _make(definition: ToolDefinition, use: Use, run: Run | None) -> FunctionTool:
    def call(**arguments: Any) -> Awaitable[str]:
        return use(definition.name, arguments)

    def call_and_wait(**arguments: Any) -> str:
        if run is None:
            raise RuntimeError("This tool is asynchronous: use `acall`.")
        return run(use(definition.name, arguments))

    return FunctionTool.from_defaults(
        fn=call_and_wait,
        async_fn=call,
        name=definition.name,
        description=definition.description,
        fn_schema=definition.arguments,
    )

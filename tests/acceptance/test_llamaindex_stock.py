"""Stock engines, agents and evaluators of LlamaIndex work over an open service, or refuse with the reason."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from llama_index.core import Settings, StorageContext, SummaryIndex, VectorStoreIndex, get_response_synthesizer
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
    ToolCallBlock,
)
from llama_index.core.chat_engine import CondensePlusContextChatEngine, CondenseQuestionChatEngine, ContextChatEngine
from llama_index.core.evaluation import (
    AnswerRelevancyEvaluator,
    BatchEvalRunner,
    ContextRelevancyEvaluator,
    CorrectnessEvaluator,
    FaithfulnessEvaluator,
    GuidelineEvaluator,
    RelevancyEvaluator,
    RetrieverEvaluator,
    SemanticSimilarityEvaluator,
)
from llama_index.core.indices.query.query_transform import HyDEQueryTransform, StepDecomposeQueryTransform
from llama_index.core.ingestion import DocstoreStrategy, IngestionCache, IngestionPipeline
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.node_parser import (
    HierarchicalNodeParser,
    JSONNodeParser,
    MarkdownNodeParser,
    NodeParser,
    SemanticSplitterNodeParser,
    SentenceSplitter,
    SentenceWindowNodeParser,
    SimpleFileNodeParser,
    TokenTextSplitter,
    get_leaf_nodes,
)
from llama_index.core.postprocessor import (
    LLMRerank,
    LongContextReorder,
    MetadataReplacementPostProcessor,
    SentenceEmbeddingOptimizer,
    SimilarityPostprocessor,
)
from llama_index.core.query_engine import (
    CitationQueryEngine,
    FLAREInstructQueryEngine,
    MultiStepQueryEngine,
    RetrieverQueryEngine,
    RetryQueryEngine,
    RouterQueryEngine,
    SubQuestionQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import (
    AutoMergingRetriever,
    QueryFusionRetriever,
    RecursiveRetriever,
    RouterRetriever,
    TransformRetriever,
)
from llama_index.core.schema import Document, IndexNode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters

from rag_service import open_service
from rag_service.client import Service
from rag_service.errors import InputError
from rag_service.store.embedded import EmbeddedServer
from tests.conftest import cloned_database, make_fake_embedding

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),  # LlamaIndex's own
]

TEXT = "Members may borrow up to 40 % of their plan."
OTHER = "The cafeteria opens at eight o'clock every morning."
QUESTION = "How much may members borrow from their plan?"
ANSWER = "Members may borrow up to 40 % of their plan."


def reply_to(prompt: str) -> str:
    """What a model would say to the prompts of LlamaIndex."""
    if "sub questions" in prompt or "sub_question" in prompt:
        return json.dumps({"items": [{"sub_question": QUESTION, "tool_name": "documents"}]})
    if "choices" in prompt.casefold() and "json" in prompt.casefold():
        return json.dumps([{"choice": 1, "reason": "it is about that"}])
    if "search queries" in prompt:
        return f"{QUESTION}\nWhat is the limit of a loan?"
    if "Doc:" in prompt and "Relevance" in prompt:
        return "Doc: 1, Relevance: 9"
    if "Action Input" in prompt and "Observation:" not in prompt:
        return f'Thought: I need the documents.\nAction: documents\nAction Input: {{"input": "{QUESTION}"}}'
    if "Action Input" in prompt:
        return f"Thought: I can answer.\nAnswer: {ANSWER}"
    if "YES" in prompt or "[RESULT]" in prompt:
        return "YES. [RESULT] 2"
    if "from 1 to 5" in prompt or "between 1 and 5" in prompt:
        return "4.0\nIt is right."
    if '"passing"' in prompt or "guidelines" in prompt:
        return json.dumps({"passing": True, "feedback": "It is short."})
    if "New question" in prompt:
        return QUESTION
    return ANSWER


class ScriptedLLM(CustomLLM):
    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted", context_window=8192, num_output=256)

    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=reply_to(prompt))

    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponseGen:
        text = ""
        for word in re.findall(r"\S+\s*", reply_to(prompt)):
            text += word
            yield CompletionResponse(text=text, delta=word)


LLM = ScriptedLLM()


@pytest.fixture(scope="module")
def service(postgres: EmbeddedServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("stock") / "documents"
    folder.mkdir()
    (folder / "loans.md").write_text(TEXT, "utf-8")
    (folder / "cafeteria.md").write_text(OTHER, "utf-8")
    embedding = make_fake_embedding()
    Settings.llm, Settings.embed_model = LLM, embedding  # where LlamaIndex asks for none
    with (
        cloned_database(postgres) as database,
        open_service(
            database_url=database.service_conninfo, similarity_threshold=0, embedding=embedding,
            data_dir=folder.parent / "data",
        ) as opened,
    ):  # fmt: skip
        opened.ingest(folder)
        yield opened
    Settings._llm = Settings._embed_model = None


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Agents leave a SQLite connection of their memory to the garbage collection, which warns of it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def index_of(service: Service, **options: Any) -> VectorStoreIndex:
    return VectorStoreIndex.from_vector_store(service.vector_store, embed_model=service.embedding, **options)


def query_tool(service: Service) -> QueryEngineTool:
    return QueryEngineTool.from_defaults(service.query_engine, name="documents", description="About plans and loans.")


def retriever_tool(service: Service, name: str = "documents") -> RetrieverTool:
    return RetrieverTool.from_defaults(service.retriever, name=name, description="About plans and loans.")


def engine_of(service: Service, **options: Any) -> RetrieverQueryEngine:
    return RetrieverQueryEngine.from_args(service.retriever, llm=LLM, **options)


def multi_step(service: Service) -> Any:
    transform = StepDecomposeQueryTransform(llm=LLM)
    return MultiStepQueryEngine(
        service.query_engine, query_transform=transform, index_summary="plans", num_steps=1,
        response_synthesizer=get_response_synthesizer(llm=LLM),
    ).query(QUESTION)  # fmt: skip


def sub_question(service: Service, **options: Any) -> SubQuestionQueryEngine:
    return SubQuestionQueryEngine.from_defaults(
        [query_tool(service)], llm=LLM, question_gen=LLMQuestionGenerator.from_defaults(llm=LLM),
        response_synthesizer=get_response_synthesizer(llm=LLM), verbose=False, **options,
    )  # fmt: skip


def router(service: Service) -> RouterQueryEngine:
    tools = [query_tool(service), QueryEngineTool.from_defaults(engine_of(service), name="other", description="Other.")]
    return RouterQueryEngine(selector=LLMSingleSelector.from_defaults(llm=LLM), query_engine_tools=tools, llm=LLM)


def streamed(service: Service) -> Any:
    return "".join(engine_of(service, streaming=True).query(QUESTION).response_gen)


def chat(engine: Any) -> Any:
    engine.chat(QUESTION)
    return engine.chat("And how much is that?")


async def run_agent(agent: Any) -> Any:
    return await agent.run(user_msg=QUESTION)


def function_agent(service: Service) -> Any:
    """An agent that searches once, and says what it found."""

    def respond(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
        if messages[-1].role == MessageRole.TOOL:
            return ChatMessage(role="assistant", content=messages[-1].content)
        call = ToolCallBlock(tool_call_id="1", tool_name="search", tool_kwargs={"query": QUESTION})
        return ChatMessage(role="assistant", blocks=[call])

    llm = MockFunctionCallingLLM(response_generator=respond, is_chat_model=True)
    return FunctionAgent(tools=service.tools, llm=llm, streaming=False)


def evaluate(service: Service, evaluator: Any) -> Any:
    result = evaluator.evaluate_response(query=QUESTION, response=service.query_engine.query(QUESTION))
    assert result.passing or (result.score or 0) > 0, result
    return ANSWER


ENGINES: dict[str, Callable[[Service], Any]] = {
    **{
        f"response mode {mode.value}": lambda service, mode=mode: engine_of(service, response_mode=mode).query(QUESTION)
        for mode in ResponseMode
        if mode not in (ResponseMode.NO_TEXT, ResponseMode.CONTEXT_ONLY)
    },
    "streaming": streamed,
    "async": lambda service: asyncio.run(engine_of(service).aquery(QUESTION)),
    "service.query_engine": lambda service: service.query_engine.query(QUESTION),
    "service.query_engine.retrieve": lambda service: service.query_engine.retrieve(QueryBundle(QUESTION))[0].text,
    "postprocessors": lambda service: engine_of(
        service,
        node_postprocessors=[
            SimilarityPostprocessor(similarity_cutoff=0.01),
            LongContextReorder(), LLMRerank(llm=LLM, top_n=1),
            SentenceEmbeddingOptimizer(embed_model=make_fake_embedding(), percentile_cutoff=0.9),
        ],
    ).query(QUESTION),
    "CitationQueryEngine over the retriever": lambda service: CitationQueryEngine.from_args(
        index_of(service), llm=LLM, retriever=service.retriever
    ).query(QUESTION),
    "CitationQueryEngine over the index": lambda service: CitationQueryEngine.from_args(
        index_of(service), llm=LLM
    ).query(QUESTION),
    "SubQuestionQueryEngine": lambda service: sub_question(service, use_async=False).query(QUESTION),
    "SubQuestionQueryEngine async": lambda service: sub_question(service, use_async=True).query(QUESTION),
    "RouterQueryEngine": lambda service: router(service).query(QUESTION),
    "MultiStepQueryEngine": multi_step,
    "TransformQueryEngine with HyDE": lambda service: TransformQueryEngine(
        engine_of(service), HyDEQueryTransform(llm=LLM, include_original=True)
    ).query(QUESTION),
    "RetryQueryEngine": lambda service: RetryQueryEngine(
        service.query_engine, RelevancyEvaluator(llm=LLM), max_retries=1
    ).query(QUESTION),
    "FLAREInstructQueryEngine": lambda service: FLAREInstructQueryEngine(
        service.query_engine, llm=LLM, max_iterations=1
    ).query(QUESTION),
    "CondensePlusContextChatEngine": lambda service: chat(
        CondensePlusContextChatEngine.from_defaults(service.retriever, llm=LLM)
    ),
    "CondensePlusContextChatEngine streamed": lambda service: "".join(
        CondensePlusContextChatEngine.from_defaults(service.retriever, llm=LLM).stream_chat(QUESTION).response_gen
    ),
    "ContextChatEngine": lambda service: chat(ContextChatEngine.from_defaults(service.retriever, llm=LLM)),
    "CondenseQuestionChatEngine": lambda service: chat(
        CondenseQuestionChatEngine.from_defaults(service.query_engine, llm=LLM)
    ),
    "CondenseQuestionChatEngine streamed": lambda service: "".join(
        CondenseQuestionChatEngine.from_defaults(service.query_engine, llm=LLM).stream_chat(QUESTION).response_gen
    ),
    "ReActAgent": lambda service: asyncio.run(
        run_agent(ReActAgent(tools=[query_tool(service)], llm=LLM, streaming=False))
    ),
    "FunctionAgent": lambda service: asyncio.run(run_agent(function_agent(service))),
    "AgentWorkflow": lambda service: asyncio.run(
        run_agent(AgentWorkflow(agents=[ReActAgent(name="a", tools=[query_tool(service)], llm=LLM, streaming=False)]))
    ),
    "QueryEngineTool": lambda service: query_tool(service).call(QUESTION),
    "RetrieverTool": lambda service: retriever_tool(service).call(QUESTION),
    "RouterRetriever": lambda service: RouterRetriever(
        LLMSingleSelector.from_defaults(llm=LLM), [retriever_tool(service), retriever_tool(service, "more")]
    ).retrieve(QUESTION)[0].text,
    "QueryFusionRetriever": lambda service: QueryFusionRetriever(
        [service.retriever, index_of(service).as_retriever()], llm=LLM, num_queries=2, use_async=False,
        mode="reciprocal_rerank",  # type: ignore[arg-type]
    ).retrieve(QUESTION)[0].text,
    "TransformRetriever": lambda service: TransformRetriever(
        service.retriever, HyDEQueryTransform(llm=LLM)
    ).retrieve(QUESTION)[0].text,
    "FaithfulnessEvaluator": lambda service: evaluate(service, FaithfulnessEvaluator(llm=LLM)),
    "RelevancyEvaluator": lambda service: evaluate(service, RelevancyEvaluator(llm=LLM)),
    "AnswerRelevancyEvaluator": lambda service: evaluate(service, AnswerRelevancyEvaluator(llm=LLM)),
    "ContextRelevancyEvaluator": lambda service: evaluate(service, ContextRelevancyEvaluator(llm=LLM)),
    "GuidelineEvaluator": lambda service: evaluate(service, GuidelineEvaluator(llm=LLM, guidelines="guidelines")),
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
def test_stock_engines_agents_and_evaluators_work_over_an_open_service(service: Service, name: str) -> None:
    said = str(ENGINES[name](service))
    assert "40 %" in said, said


async def test_evaluators_that_need_a_reference_run_over_the_query_engine(service: Service) -> None:
    correct = await CorrectnessEvaluator(llm=LLM).aevaluate(
        QUESTION, str(await service.query_engine.aquery(QUESTION)), reference=ANSWER
    )
    assert correct.passing
    similar = await SemanticSimilarityEvaluator(embed_model=service.embedding).aevaluate(
        response=str(await service.query_engine.aquery(QUESTION)), reference=ANSWER
    )
    assert similar.passing
    ids = [node.node.node_id for node in await service.retriever.aretrieve(QUESTION)]
    retrieval = await RetrieverEvaluator.from_metric_names(["mrr", "hit_rate"], retriever=service.retriever).aevaluate(
        QUESTION, expected_ids=ids[:1]
    )
    assert retrieval.metric_vals_dict == {"mrr": 1.0, "hit_rate": 1.0}
    runner = BatchEvalRunner({"faithful": FaithfulnessEvaluator(llm=LLM)}, workers=2)
    [result] = (await runner.aevaluate_queries(service.query_engine, queries=[QUESTION]))["faithful"]
    assert result.passing


def test_what_cannot_work_says_why(service: Service) -> None:
    foreign = NodeWithScore(node=TextNode(text="The fee is 40 %."), score=1.0)
    with pytest.raises(InputError, match="only what it has stored can be cited"):
        service.query_engine.synthesize(QueryBundle(QUESTION), [foreign])


def test_a_language_model_sees_place_and_tags_and_no_ids(service: Service) -> None:
    [node, *_] = service.retriever.retrieve(QUESTION)
    shown = node.node.get_content("llm")  # type: ignore[arg-type]
    assert "loans.md" in shown
    for hidden in ("document_id", "corpus_id", "chunk_index"):
        assert hidden in node.node.metadata and hidden not in shown
    assert node.node.ref_doc_id == node.node.metadata["document_id"]


def pages(kind: str) -> Document:
    sections = [
        f"Hall {number}. Pallet {number} stands in hall {number % 7}. It waits until May." for number in range(30)
    ]
    text = {
        "markdown": "\n\n".join(f"# Hall {number}\n\n{section}" for number, section in enumerate(sections)),
        "json": json.dumps([{"hall": section} for section in sections]),
    }.get(kind, " ".join(sections))
    return Document(text=text, metadata={"kind": kind, "file_path": f"halls.{kind}", "extension": f".{kind}"})


def small(words: int) -> SentenceSplitter:
    return SentenceSplitter(chunk_size=words, chunk_overlap=0, tokenizer=str.split)


PARSERS: dict[str, tuple[NodeParser, str]] = {
    "SentenceSplitter": (small(20), "text"),
    "TokenTextSplitter": (TokenTextSplitter(chunk_size=20, chunk_overlap=5, tokenizer=str.split), "text"),
    "SentenceWindowNodeParser": (SentenceWindowNodeParser.from_defaults(window_size=2), "text"),
    "SemanticSplitterNodeParser": (SemanticSplitterNodeParser(embed_model=make_fake_embedding()), "text"),
    "MarkdownNodeParser": (MarkdownNodeParser(), "markdown"),
    "JSONNodeParser": (JSONNodeParser(), "json"),
    "SimpleFileNodeParser": (SimpleFileNodeParser(), "md"),
    "HierarchicalNodeParser": (
        HierarchicalNodeParser.from_defaults(
            node_parser_ids=["large", "small"], node_parser_map={"large": small(60), "small": small(15)}
        ),
        "text",
    ),
}
WAYS = ("insert_nodes", "small batches", "pipeline", "pipeline async", "from_documents")


async def store_all(service: Service, parser: NodeParser, document: Document, way: str) -> list[Any]:
    """The nodes that a way of LlamaIndex makes of a document and gives to the store."""
    if way == "from_documents":
        VectorStoreIndex.from_documents(
            [document], transformations=[parser], embed_model=service.embedding,
            storage_context=StorageContext.from_defaults(vector_store=service.vector_store),
        )  # fmt: skip
        return parser.get_nodes_from_documents([document])
    if way.startswith("pipeline"):
        pipeline = IngestionPipeline(
            transformations=[parser, service.embedding], vector_store=service.vector_store, disable_cache=True
        )
        if way == "pipeline":
            return list(await asyncio.to_thread(pipeline.run, documents=[document]))
        return list(await pipeline.arun(documents=[document]))
    nodes = parser.get_nodes_from_documents([document])
    index = index_of(service, insert_batch_size=3 if way == "small batches" else 2048)
    await asyncio.to_thread(index.insert_nodes, nodes)
    return list(nodes)


# LlamaIndex's hierarchical parser has no asynchronous half: `arun` hands on the whole document.
COMBINED = [pair for pair in product(PARSERS, WAYS) if pair != ("HierarchicalNodeParser", "pipeline async")]


@pytest.mark.parametrize(("parser", "way"), COMBINED)
async def test_what_parsers_and_pipelines_give_is_what_is_stored(service: Service, parser: str, way: str) -> None:
    stock, kind = PARSERS[parser]
    document = pages(kind)
    given = await store_all(service, stock, document, way)
    store = service.vector_store
    own = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value=document.id_)])
    stored = await store.aget_nodes(filters=own)
    assert len(given) > 1 or parser == "SimpleFileNodeParser"
    assert sorted(node.get_content() for node in stored) == sorted(node.get_content() for node in given)
    if way != "from_documents":  # which draws new ids
        assert {node.node_id for node in stored} == {node.node_id for node in given}
        by_id = {node.node_id: node for node in stored}
        for node in given:
            assert {key: by_id[node.node_id].metadata.get(key) for key in node.metadata} == node.metadata
    await store.adelete(document.id_)
    assert await store.aget_nodes(filters=own) == []


async def test_docstore_strategies_cache_and_refresh_keep_the_store_equal(service: Service) -> None:
    store = service.vector_store
    for strategy in (DocstoreStrategy.UPSERTS, DocstoreStrategy.UPSERTS_AND_DELETE, DocstoreStrategy.DUPLICATES_ONLY):
        pipeline = IngestionPipeline(
            transformations=[small(10), service.embedding], vector_store=store, docstore=SimpleDocumentStore(),
            docstore_strategy=strategy, cache=IngestionCache(),
        )  # fmt: skip
        first, second = (Document(text=f"Gate {number} opens at six.", id_=f"gate {number}") for number in (4, 5))
        for documents in ([first, second], [first, second], [first]):
            await pipeline.arun(documents=documents)
        gone = strategy is DocstoreStrategy.UPSERTS_AND_DELETE
        held = {node.get_content() for node in await store.aget_nodes(filters=of_documents("gate 4", "gate 5"))}
        assert held == {"Gate 4 opens at six.", *([] if gone else ["Gate 5 opens at six."])}
        for name in ("gate 4", "gate 5"):
            await store.adelete(name)


def of_documents(*names: str) -> MetadataFilters:
    item = MetadataFilter(key="ref_doc_id", value=list(names), operator=FilterOperator.IN)
    return MetadataFilters(filters=[item])


async def test_windows_parents_and_index_nodes_come_back(service: Service) -> None:
    store = service.vector_store
    windows = SentenceWindowNodeParser.from_defaults(window_size=1).get_nodes_from_documents([pages("text")])
    index = index_of(service)
    await asyncio.to_thread(index.insert_nodes, windows)
    query = "Which pallet stands in hall 3?"
    replace = MetadataReplacementPostProcessor(target_metadata_key="window")
    [node, *_] = replace.postprocess_nodes(await index.as_retriever(similarity_top_k=2).aretrieve(query))
    assert node.node.get_content() in {window.metadata["window"] for window in windows}
    await store.adelete_nodes([window.node_id for window in windows])

    parser, _ = PARSERS["HierarchicalNodeParser"]
    nodes = parser.get_nodes_from_documents([pages("text")])
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    await asyncio.to_thread(index.insert_nodes, get_leaf_nodes(nodes))
    merging = AutoMergingRetriever(
        index.as_retriever(similarity_top_k=60), StorageContext.from_defaults(docstore=docstore), verbose=False
    )
    assert any(len(hit.node.child_nodes or ()) for hit in await merging.aretrieve(query))
    await store.adelete(str(nodes[0].ref_doc_id))

    pointer = IndexNode(text="All about the pool.", index_id="pool")
    await asyncio.to_thread(index.insert_nodes, [pointer])
    summary = SummaryIndex([TextNode(text="The pool opens at nine.")]).as_retriever()
    recursive = RecursiveRetriever("root", {"root": index.as_retriever(similarity_top_k=1), "pool": summary})
    found = await asyncio.to_thread(recursive.retrieve, "All about the pool.")
    assert [hit.node.get_content() for hit in found] == ["The pool opens at nine."]
    await store.adelete_nodes([pointer.node_id])

"""The routes for accounts, corpora, documents, agents and conversations."""

from __future__ import annotations

from litestar import Router
from litestar.di import Provide

from rag_service.api.accounts import KeysController, UsersController
from rag_service.api.agents.agents import AgentsController
from rag_service.api.agents.chat import ChatController
from rag_service.api.agents.conversations import ConversationsController
from rag_service.api.agents.feedback import FeedbackController, read_answer_record, replay_answer
from rag_service.api.corpora.batch import change_documents
from rag_service.api.corpora.corpora import CorporaController
from rag_service.api.corpora.document_text import read_document_text
from rag_service.api.corpora.documents import documents_router, list_used_tags
from rag_service.api.corpora.examples import list_examples
from rag_service.api.corpora.sources import SourcesController, add_corpus_source
from rag_service.api.corpora.transfer import transfer_router
from rag_service.api.corpora.uploads import UploadsController
from rag_service.api.http.access import make_caller
from rag_service.settings import Settings


def tenancy_router(settings: Settings) -> Router:
    """All of them below one router; they use `state.tenancy`. The application checks role and scope for each."""
    return Router(
        "/",
        route_handlers=[
            AgentsController,
            ChatController,
            ConversationsController,
            CorporaController,
            FeedbackController,
            KeysController,
            SourcesController,
            UploadsController,
            UsersController,
            add_corpus_source,
            change_documents,
            documents_router(settings),
            list_examples,
            list_used_tags,
            read_answer_record,
            read_document_text,
            replay_answer,
            transfer_router(settings),
        ],
        dependencies={"caller": Provide(make_caller, sync_to_thread=False)},
    )

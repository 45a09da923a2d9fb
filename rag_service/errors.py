"""The error tree. Each class has a stable code, says whether a retry can help, and what to do.

    RagError
      InputError
        ArchiveError
          ArchiveVersionError
          ArchiveTooLargeError
      ConfigurationError
        DefinitionError
        UnsafeRoleError
        EvalSetError
      NotFoundError
        UnknownUserError
      ConflictError
        NotShareableError
        NoPasswordsError
      AuthenticationError
      PermissionDeniedError
        ReadOnlyKnowledgeError
      RateLimitedError
      DocumentError
        NoTextError
        ScannedError
        ProtectedError
        ReaderKilledError
        UnsupportedMediaError
        TooLargeError
      ModelError
        ModelBusyError
        PromptTooLongError
        EmbeddingError
        RerankError
        ModelOutputError
      ContextOverflowError
      PluginError
      StoreError
        UnreachableError
        NoSpaceError
        IssuerUnreachableError
      SearchTimeoutError
      ClusterError
      ServiceUnreachableError
      SourceError

Modules below add their own: errors of a protocol (`api/http/problems.py`, `api/openai/errors.py`), and signals that
never leave a package.

`message` is written for the person who reads the reply: it names what is wrong and reveals no
internals. The cause stays on `__cause__` for the log.
"""

from __future__ import annotations

import errno
from typing import ClassVar


class RagError(Exception):
    """Base of every error that the service raises on purpose."""

    code: ClassVar[str] = "internal_error"
    retryable: ClassVar[bool] = False
    help: ClassVar[str] = "Look up the correlation id in the service's log."

    def __init__(self, message: str, *, field: str | None = None, retry_after: int | None = None):
        super().__init__(message)
        self.message = message
        self.field = field  # the request field or setting at fault, in its wire name
        self.retry_after = retry_after  # seconds after which a retry makes sense


class InputError(RagError):
    """What the caller sent cannot be used as it is."""

    code = "invalid_input"
    help = "Correct the named field and send the request again."


class ArchiveError(InputError):
    """A file is not an export of a corpus, or was changed or damaged. Nothing of it was imported."""

    code = "invalid_archive"
    help = "Export the corpus again, and import the file as it was written. Nothing was imported."


class ArchiveVersionError(ArchiveError):
    """An export in a format that this version does not read."""

    code = "unsupported_archive"
    help = "Import the file with the version of the service that wrote it, or with a newer one. Nothing was imported."


class ArchiveTooLargeError(ArchiveError):
    """An export, or a document in it, is larger than what is accepted here."""

    code = "archive_too_large"
    help = "Ask an administrator to raise RAG_IMPORT_MAX_MB, or RAG_UPLOAD_MAX_MB for a document. Nothing was imported."


class ConfigurationError(RagError):
    """A setting, an index definition or a prompt is wrong. Names the setting or file and key."""

    code = "invalid_configuration"
    help = "Correct the named setting or file and start again. `rag-service check` checks all of them."


class DefinitionError(ConfigurationError):
    """A file below indices/ or prompts/ is wrong. The message names the file and the key, and says how to fix it."""

    code = "invalid_definition"


class UnsafeRoleError(ConfigurationError):
    """The database role could bypass row-level security."""

    code = "unsafe_database_role"
    help = "Connect as the role that `rag-service migrate` creates, not as the owner or a superuser."


class EvalSetError(ConfigurationError):
    """An eval set cannot be used. The message names file, line and key, and how to fix it."""

    code = "invalid_eval_set"
    help = "Correct the named line; docs/how-to/evaluate.md describes the formats."


class NotFoundError(RagError):
    """The object does not exist, or the caller may not know that it exists."""

    code = "not_found"
    help = "Check the id. Objects of other users are reported as not found."


class UnknownUserError(NotFoundError):
    """Nobody has the name or id that a command names."""

    help = "`rag-service users list` shows all users."


class ConflictError(RagError):
    """The request conflicts with the current state of the object."""

    code = "conflict"
    help = "Check the current state of the object, then change the request."


class NotShareableError(ConflictError):
    """A conversation cannot be shared: nobody else may read what an answer rests on."""

    code = "not_shareable"
    help = "Ask in a new conversation what can be answered from documents that others may read, and share that one."


class NoPasswordsError(ConflictError):
    """Users sign in with a provider here, or with keys alone."""

    help = "Set RAG_PUBLIC_URL without RAG_OIDC_ISSUER, or create a key for the user."


class AuthenticationError(RagError):
    code = "not_authenticated"
    help = "Send a valid API key or bearer token in the Authorization header, or sign in on the page."


class PermissionDeniedError(RagError):
    code = "not_permitted"
    help = "Ask an administrator for the role or scope that this action needs."


class ReadOnlyKnowledgeError(PermissionDeniedError):
    """An upload to a knowledge base that is a file."""

    code = "knowledge_base_read_only"
    help = "Edit the file at RAG_KNOWLEDGE_BASE_PATH and start again, or turn RAG_ENABLED on."


class RateLimitedError(RagError):
    """The caller has used up its quota."""

    code = "rate_limited"
    retryable = True
    help = "Wait as long as Retry-After says. RAG_RATE_LIMIT_* and RAG_MODEL_QUEUE set the limits."


class DocumentError(RagError):
    """A document cannot be read. The message is for the person who uploaded it."""

    code = "unreadable_document"
    help = "Repair or convert the file and upload it again."


class NoTextError(DocumentError):
    """A document has no text."""

    code = "no_text"
    help = "Check that you chose the right file."


class ScannedError(DocumentError):
    """A document has pictures of text, which nothing here recognises."""

    code = "scanned_document"
    help = "Run text recognition (OCR) on it and upload the result, or have Tesseract installed beside the service."


class ProtectedError(DocumentError):
    """A document opens with a password, or not for programs."""

    code = "protected_document"
    help = "Save a copy without protection and upload that."


class ReaderKilledError(DocumentError):
    """The process that read a document was killed from outside; the document may be fine."""

    code = "reader_killed"
    retryable = True
    help = "Upload the file again. If this happens every time, split it or give the service more memory."


class UnsupportedMediaError(DocumentError):
    code = "unsupported_media_type"
    help = "Upload a supported format, such as PDF, DOCX, XLSX, PPTX, HTML, CSV, Markdown or plain text."


class TooLargeError(DocumentError):
    code = "too_large"
    help = "Split the file, or ask an administrator to raise RAG_UPLOAD_MAX_MB."


class ModelError(RagError):
    """A language model failed."""

    code = "llm_unavailable"
    retryable = True
    help = "Try again shortly. `rag-service check --live` shows the state of the model server."


class ModelBusyError(ModelError):
    """The model is at its limit of concurrent requests."""

    code = "llm_busy"


class PromptTooLongError(ModelError):
    """The server refused a prompt because it, or the answer after it, does not fit into the model's window."""

    code = "prompt_too_long"
    retryable = False
    help = "Set RAG_CONTEXT_WINDOW to the context window that the model server has."

    tokens: int | None = None  # of the prompt, as the server counts; None: it does not say
    window: int | None = None  # likewise


class EmbeddingError(ModelError):
    code = "embedding_unavailable"

    about_text: str | None = None  # what was wrong, where a text may be at fault; None: the server is


class RerankError(ModelError):
    code = "rerank_unavailable"


class ModelOutputError(ModelError):
    """The model answered, but not in the form that was asked for."""

    code = "llm_output_invalid"
    help = "Try again. If the problem persists, use a model that supports structured output."


class ContextOverflowError(RagError):
    """The required parts of the prompt do not fit into the model's context window."""

    code = "context_overflow"
    help = "Raise RAG_CONTEXT_WINDOW to the model's actual window, or shorten the request."


class PluginError(RagError):
    """A plug-in failed, took too long, or returned an unusable result."""

    code = "plugin_failed"
    help = "An administrator can find the class and the cause in the log."


class StoreError(RagError):
    """The database cannot be reached, or it refused the request."""

    code = "store_unavailable"
    retryable = True
    help = "Try again shortly. /health/ready shows the state of each dependency."


class UnreachableError(StoreError):
    """No statement of the transaction reached the database: whatever it was to do is not the cause."""


class NoSpaceError(StoreError):
    """A disk is full. What was begun is undone."""

    code = "no_space"
    help = "Free space on the disk of the database, of RAG_DATA_DIR or of temporary files, then try again."

    @classmethod
    def of(cls, error: BaseException) -> NoSpaceError | None:
        """This error, if one of the operating system or of PostgreSQL means a full disk or quota; else None."""
        if getattr(error, "sqlstate", None) == "53100":  # disk_full
            return cls("No space is left on the disk of the database.")
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return cls(f"No space is left on the disk{f' of {error.filename}' if error.filename else ''}.")
        return None


class IssuerUnreachableError(StoreError):
    """The keys of the token's issuer cannot be fetched."""

    code = "issuer_unavailable"
    help = "Try again shortly. RAG_JWT_JWKS_URL or RAG_OIDC_ISSUER must be reachable from the service."


class SearchTimeoutError(RagError):
    """A statement of a search or list took too long; PostgreSQL ended it. Other requests go on."""

    code = "search_timeout"
    help = "Search fewer corpora or documents, or with fewer conditions. RAG_SEARCH_TIMEOUT sets the limit."


class ClusterError(RagError):
    """The Ray cluster for ingestion cannot be used, or failed during ingestion."""

    code = "cluster_unavailable"
    retryable = True
    help = "Fix what `ray status` reports, then run the same command again. Stored documents are skipped."


class ServiceUnreachableError(RagError):
    """The service at the URL does not answer."""

    code = "service_unreachable"
    retryable = True
    help = "Check the URL, and that `rag-service serve` is running there."


class SourceError(RagError):
    """A synced folder, site, store or reader cannot be listed. Nothing was deleted."""

    code = "source_unavailable"
    retryable = True
    help = (
        "Check that the folder exists, the address responds or the reader works; then sync again. Nothing was deleted."
    )

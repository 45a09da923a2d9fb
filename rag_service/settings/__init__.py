"""All settings: read from the environment once, grouped by topic, frozen and passed in.

Every setting is the variable `RAG_<KEY>`; `RAG_CHAT_PROVIDER` is `settings.chat.provider`. A test compares
the documented table with the groups. An unknown `RAG_*` name is an error at start, so that a typo never switches
off a safeguard unnoticed.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from rag_service.errors import ConfigurationError
from rag_service.settings.access import AuthSettings, HttpSettings, LimitSettings, ObservabilitySettings, SignInSettings
from rag_service.settings.answers import AnswerSettings, IndexSettings, RetrievalSettings
from rag_service.settings.models import ChatSettings, EmbeddingSettings, JudgeSettings, RerankSettings, ServerSettings
from rag_service.settings.storage import DatabaseSettings, SyncSettings, UploadSettings, WorkerSettings

PREFIX = "RAG_"


class Settings(BaseModel):
    """All settings of the service, frozen. Built from flat keywords: `Settings(chat_provider="ollama")`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database: DatabaseSettings = DatabaseSettings()
    indices: IndexSettings = IndexSettings()
    chat: ChatSettings = ChatSettings()
    servers: ServerSettings = ServerSettings()
    embedding: EmbeddingSettings = EmbeddingSettings()
    rerank: RerankSettings = RerankSettings()
    judge: JudgeSettings = JudgeSettings()
    retrieval: RetrievalSettings = RetrievalSettings()
    answers: AnswerSettings = AnswerSettings()
    http: HttpSettings = HttpSettings()
    observability: ObservabilitySettings = ObservabilitySettings()
    auth: AuthSettings = AuthSettings()
    sign_in: SignInSettings = SignInSettings()
    limits: LimitSettings = LimitSettings()
    uploads: UploadSettings = UploadSettings()
    sync: SyncSettings = SyncSettings()
    worker: WorkerSettings = WorkerSettings()

    @model_validator(mode="before")
    @classmethod
    def _into_groups(cls, flat: Mapping[str, object]) -> dict[str, Any]:
        group_of = {key: group for group, key, _, _ in _fields()}
        grouped: dict[str, Any] = {group: {} for group in group_of.values()}
        for key, value in flat.items():
            if key in group_of:
                grouped[group_of[key]][key] = value
            else:
                grouped[key] = value  # refused, with its name
        return grouped

    @model_validator(mode="after")
    def _fits_together(self) -> Settings:
        if self.database.replica_url is not None and self.database.url is None:
            raise ValueError("RAG_DATABASE_REPLICA_URL needs RAG_DATABASE_URL")
        if self.auth.mode == "none" and self.http.host not in {"127.0.0.1", "::1", "localhost"}:
            raise ValueError("RAG_HOST must be a loopback address while RAG_AUTH is 'none'")
        if self.auth.mode == "none" and self.sign_in.public_url is not None:
            raise ValueError("RAG_PUBLIC_URL needs RAG_AUTH=required")
        if self.http.root_path and self.sign_in.public_url is not None and self.sign_in.path != self.http.root_path:
            raise ValueError("RAG_PUBLIC_URL must end with RAG_ROOT_PATH")
        if self.sign_in.issuer and self.auth.jwt_issuer and self.sign_in.issuer != self.auth.jwt_issuer:
            # Both name users by `sub`, which is unique within one issuer only.
            raise ValueError("RAG_OIDC_ISSUER and RAG_JWT_ISSUER must be the same issuer")
        return self

    @property
    def root_path(self) -> str:
        """The path below which the service is reached: "" or such as "/rag"."""
        return self.http.root_path or self.sign_in.path

    def flat(self) -> dict[str, object]:
        """The value of every setting by its key, such as `chat_provider`."""
        return {key: getattr(getattr(self, group), name) for group, key, name, _ in _fields()}

    def replace(self, changes: Mapping[str, object]) -> Settings:
        """Settings in which some values, by key, are different; validated like new ones."""
        return Settings(**(self.flat() | dict(changes)))


def _fields() -> Iterator[tuple[str, str, str, FieldInfo]]:
    """(group, key, attribute, field) of every setting."""
    for group, info in Settings.model_fields.items():
        for name, field in type(info.default).model_fields.items():
            yield group, field.alias or name, name, field


def setting_fields() -> dict[str, FieldInfo]:
    """Every setting by its key: `chat_provider` for `RAG_CHAT_PROVIDER`."""
    return {key: field for _, key, _, field in _fields()}


def setting_name(key: str) -> str:
    """Name of a setting in the environment."""
    return PREFIX + key.upper()


def load_settings(**overrides: object) -> Settings:
    """Read the settings from the environment; keywords win over it, empty variables count as unset.

    What is JSON in the environment, such as `chat_options`, may also be given as a mapping.

    Raises ConfigurationError, which names each wrong setting and says what it must be; an unknown `RAG_*` name is
    reported with the nearest known one.
    """
    known = {setting_name(key): key for key in setting_fields()}
    values: dict[str, object] = {}
    for name in sorted(os.environ):
        if not name.startswith(PREFIX):
            continue
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ConfigurationError(f"Unknown setting {name}.{hint}", field=name)
        if os.environ[name]:
            values[known[name]] = os.environ[name]
    try:
        return Settings(**(values | {key: _as_text(key, value) for key, value in overrides.items()}))
    except ValidationError as error:
        problems = [_describe(problem["loc"], problem["msg"]) for problem in error.errors(include_url=False)]
        raise ConfigurationError("; ".join(problems)) from error


def _as_text(key: str, value: object) -> object:
    """A mapping as JSON, any other value as it is. Raises ConfigurationError for what JSON cannot hold."""
    if not isinstance(value, Mapping):
        return value
    try:
        return json.dumps(dict(value))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{setting_name(key)}: cannot be written as JSON: {error}", field=key) from error


def _describe(place: tuple[int | str, ...], message: str) -> str:
    """A problem with the setting's name; what concerns several settings names them itself."""
    named = [str(part) for part in place if part not in Settings.model_fields or part in place[1:]]
    message = message.removeprefix("Value error, ")
    return f"{setting_name(named[0])}: {message}" if named else message

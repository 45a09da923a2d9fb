"""What all groups of settings share.

A field's alias is the setting's key: `chat_provider` for RAG_CHAT_PROVIDER. Where a group gives a pattern of aliases,
it is for the fields without an alias of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import AfterValidator, BaseModel, ConfigDict, field_validator

CLASS_PATH = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)[:.](?P<name>[A-Za-z_]\w*)")


MAX_SECONDS = 86_400  # every fraction in the settings is one, or a number of seconds
MAX_NUMBER = 2**31 - 1  # what PostgreSQL's settings, sockets and columns hold


class SettingGroup(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _is_bounded(cls, value: Any) -> Any:
        limit = MAX_SECONDS if isinstance(value, float) else MAX_NUMBER
        if isinstance(value, int | float) and value > limit:
            raise ValueError(f"Input should be less than or equal to {limit}")
        return value


def check_name(value: str, names: Sequence[str]) -> str:
    if value not in names and CLASS_PATH.fullmatch(value) is None:
        raise ValueError(f"{value!r} must be {', '.join(names)}, or a class path package.module:Class")
    return value


def short_name_or_class_path(names: Sequence[str]) -> AfterValidator:
    return AfterValidator(lambda value: check_name(value, names))

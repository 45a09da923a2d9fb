"""What all groups of settings share.

A field's alias is the setting's key: `chat_provider` for RAG_CHAT_PROVIDER. Where a group gives a pattern of aliases,
it is for the fields without an alias of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import AfterValidator, BaseModel, ConfigDict

CLASS_PATH = re.compile(r"(?P<module>[A-Za-z_]\w*(\.[A-Za-z_]\w*)*)[:.](?P<name>[A-Za-z_]\w*)")


class SettingGroup(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def check_name(value: str, names: Sequence[str]) -> str:
    if value not in names and CLASS_PATH.fullmatch(value) is None:
        raise ValueError(f"{value!r} must be {', '.join(names)}, or a class path package.module:Class")
    return value


def short_name_or_class_path(names: Sequence[str]) -> AfterValidator:
    return AfterValidator(lambda value: check_name(value, names))

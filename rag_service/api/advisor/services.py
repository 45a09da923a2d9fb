"""What the advisor's routes stand on. `app.py` builds it; tests build it from scripted functions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from litestar.di import NamedDependency
from litestar.params import SkipValidation

from rag_service.domain import Identity
from rag_service.query.advisor.schema import AdvisorResponse, Inquiry, RequiredData, ResponseRequest
from rag_service.settings import Settings


@dataclass(frozen=True, kw_only=True)
class AdvisorServices:
    """The two questions that the advisor answers."""

    settings: Settings
    required_data: Callable[[Inquiry, Identity], Awaitable[RequiredData]]
    generate_response: Callable[[ResponseRequest, Identity], Awaitable[AdvisorResponse]]


AdvisorDependency = NamedDependency[SkipValidation[AdvisorServices]]

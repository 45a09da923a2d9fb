"""LlamaIndex's metadata filters as filter trees of our own."""

from __future__ import annotations

from typing import Literal

from llama_index.core.vector_stores.types import FilterCondition, MetadataFilters

from rag_service.domain import Condition, ConditionGroup, FilterTree, Operator
from rag_service.store.search.conditions import check_tree

_COMBINE: dict[FilterCondition, Literal["and", "or", "not"]] = {
    FilterCondition.AND: "and",
    FilterCondition.OR: "or",
    FilterCondition.NOT: "not",
}


def read_metadata_filters(filters: MetadataFilters) -> FilterTree | None:
    """LlamaIndex's filters as a checked tree; None where they restrict nothing. Raises like `check_tree`."""
    if not filters.filters:
        return None
    tree = _read_group(filters)
    check_tree(tree, "filters")
    return tree


def _read_group(filters: MetadataFilters) -> ConditionGroup:
    parts = [
        _read_group(item)
        if isinstance(item, MetadataFilters)
        else Condition(
            field=item.key,
            operator=Operator(item.operator.value),
            value=tuple(item.value) if isinstance(item.value, list) else item.value,
        )
        for item in filters.filters
    ]
    combine = _COMBINE[filters.condition or FilterCondition.AND]
    return ConditionGroup(combine=combine, parts=tuple(parts))

"""The JSON schema that an answer is to follow: read, and kept to what can be searched for, asked for and proved.

Objects, lists and single values; what `$ref` names is put in its place. A union is understood where all its types are
single ones, one of them perhaps null. Other keywords, such as `format`, are told to the model and not checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_service.errors import InputError

MAX_FIELDS = 100
MAX_DEPTH = 6
MAX_CHARS = 50_000  # of the schema as JSON
_LIST_ITEMS = 10  # that a list is expected to have
_VALUE_TOKENS = 90  # of a value with its words and the names around it
_SEARCHES = 20  # at most, for an answer
_SEARCHED = 2_000  # characters of names and descriptions that one search looks for
_LABEL = 200  # characters of a description that is told beside a value
_SINGLE = ("string", "number", "integer", "boolean")
_UNREAD = ("not", "if", "patternProperties", "dependentSchemas", "prefixItems")
_HINTS = ("format", "pattern", "minimum", "maximum", "minLength", "maxLength")
_NO_SENTENCE = re.compile(r"[\s.!?…:;|#*`\[\]\"“”]+")  # of a label that must stand in one sentence
_DIGITS = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,9})?")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_+")


@dataclass(frozen=True, kw_only=True)
class ValueShape:
    """A field with a single value."""

    label: str  # its title or name, and its description, without marks of punctuation that end a sentence
    types: tuple[str, ...]  # of JSON, without null
    choices: tuple[Any, ...] = ()  # empty: any value of the types
    nullable: bool
    told: str  # what the model is told of it: types, choices, other keywords

    def read(self, value: Any) -> Any:
        """Return a value of the model as the schema has it. Raises ValueError if it is none.

        A model that no schema holds writes "80" for 80, or 4711 for "4711".
        """
        if isinstance(value, str) and "string" not in self.types and _DIGITS.fullmatch(value):
            value = json.loads(value)
        elif type(value) is int and self.types == ("string",):
            value = str(value)
        if isinstance(value, float) and value.is_integer() and "number" not in self.types:
            value = int(value)
        if _type_of(value) not in self.types and not (_type_of(value) == "integer" and "number" in self.types):
            raise ValueError(f"The model gave no {' or '.join(self.types)}.")
        if self.choices and value not in self.choices:
            raise ValueError("The model gave none of the values that the schema allows.")
        return value


@dataclass(frozen=True, kw_only=True)
class ListShape:
    """A list."""

    label: str
    items: Shape
    nullable: bool


@dataclass(frozen=True, kw_only=True)
class ObjectShape:
    """Fields by their names."""

    label: str
    properties: Mapping[str, Shape]
    required: frozenset[str]
    nullable: bool


Shape = ValueShape | ListShape | ObjectShape


@dataclass(frozen=True, kw_only=True)
class AnswerSchema:
    """A schema that an answer can follow."""

    root: ObjectShape

    @property
    def labels(self) -> list[str]:
        """What each field is about, in the order of the schema."""
        return [shape.label for shape in _all_of(self.root) if shape.label]

    @property
    def reply_tokens(self) -> int:
        """Tokens that the model may take for its reply."""
        return _VALUE_TOKENS * (_count(self.root) + 1)

    def search_texts(self, question: str) -> list[str]:
        """Return what is searched for: a text a field, or a text for several of many fields.

        Labels are in lower case there, for a label is no name.
        """
        labels = list(dict.fromkeys(self.labels)) or [""]
        together = -(-len(labels) // _SEARCHES)
        groups = (labels[at : at + together] for at in range(0, len(labels), together))
        return [f"{question}\n{' '.join(group).lower()[:_SEARCHED]}" for group in groups]

    def reply_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the model's reply: the same, with words and passage beside each value."""
        return _reply_schema(self.root)

    def outline(self) -> str:
        """Return the reply in its outline, as the prompt shows it."""
        return json.dumps(_outline(self.root), ensure_ascii=False)


def read_schema(schema: Mapping[str, Any], place: str = "schema") -> AnswerSchema:
    """Read the schema of an answer.

    Args:
        place: of the schema in the request, for errors.

    Raises:
        InputError: it is too large, or asks for what is not supported; names the place and what to do.
    """
    try:
        size = len(json.dumps(schema, ensure_ascii=False))
    except (RecursionError, TypeError, ValueError):
        raise InputError("must be a JSON schema of a few levels.", field=place) from None
    if size > MAX_CHARS:
        raise InputError(f"must have at most {MAX_CHARS:,} characters, but has {size:,}.", field=place)
    root = _Reader(schema).read(schema, place, "", 0)
    if not isinstance(root, ObjectShape):
        raise InputError("must be of type 'object', whose properties are the fields.", field=place)
    return AnswerSchema(root=replace(root, label=""))  # of the whole: no field is told by it


class _Reader:
    """Reads a schema from its root down."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._fields = 0

    def read(self, given: Any, place: str, name: str, depth: int) -> Shape:
        """Return the shape of a part of the schema, the field `name`."""
        if depth > MAX_DEPTH:
            advice = f"must be nested at most {MAX_DEPTH} levels deep, and must not refer to itself"
            raise InputError(f"{advice}.", field=place)
        schema, nullable = self._resolve(given, place)
        types = self._types(schema, place)
        nullable = nullable or "null" in types
        types = tuple(one for one in types if one != "null")
        label = _label(name, schema)
        if types == ("object",):
            return self._read_object(schema, place, label, nullable, depth)
        if types == ("array",):
            if not isinstance(schema.get("items"), dict):
                raise InputError("must say what its items are.", field=f"{place}.items")
            items = self.read(schema["items"], f"{place}.items", "", depth + 1)
            return ListShape(label=label, items=items, nullable=nullable)
        if not types or any(one not in _SINGLE for one in types):
            advice = f"must be object, array, or one or several of {', '.join(_SINGLE)}, and null"
            raise InputError(f"{advice}.", field=f"{place}.type")
        return self._read_value(schema, place, label, types, nullable)

    def _read_object(
        self, schema: Mapping[str, Any], place: str, label: str, nullable: bool, depth: int
    ) -> ObjectShape:
        properties = schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            raise InputError("must name the fields.", field=f"{place}.properties")
        required = schema.get("required", [])
        if not isinstance(required, list) or any(not isinstance(one, str) for one in required):
            raise InputError("must be a list of names.", field=f"{place}.required")
        read = {
            name: self.read(one, f"{place}.properties.{name[:100]}", name, depth + 1)
            for name, one in properties.items()
        }
        return ObjectShape(label=label, properties=read, required=frozenset(required), nullable=nullable)

    def _read_value(
        self, schema: Mapping[str, Any], place: str, label: str, types: tuple[str, ...], nullable: bool
    ) -> ValueShape:
        self._fields += 1
        if self._fields > MAX_FIELDS:
            raise InputError(f"must have at most {MAX_FIELDS} fields; ask for them in several requests.", field=place)
        choices = _choices(schema, place)
        chosen = tuple(one for one in choices if one is not None)
        if choices and not chosen:
            raise InputError("must have a value that is not null.", field=f"{place}.enum")
        told = [" or ".join(types)]
        told += [f"one of {json.dumps(chosen, ensure_ascii=False)}"] if chosen else []
        told += [f"{key} {schema[key]}" for key in _HINTS if isinstance(schema.get(key), str | int | float)]
        return ValueShape(
            label=label, types=types, choices=chosen, nullable=nullable or None in choices, told=", ".join(told)
        )

    def _resolve(self, given: Any, place: str) -> tuple[dict[str, Any], bool]:
        """Return a schema without references and unions, and whether null is one of its union."""
        nullable = False
        for _ in range(MAX_DEPTH + 1):
            if not isinstance(given, dict):
                raise InputError("must be a JSON schema: an object with a type.", field=place)
            if unread := [key for key in _UNREAD if key in given]:
                raise InputError("is not supported; leave it out.", field=f"{place}.{unread[0]}")
            nullable = nullable or given.get("nullable") is True
            if "$ref" in given:
                given = {**self._find(given["$ref"], place), **_without(given, "$ref")}
            elif key := next((key for key in ("anyOf", "oneOf", "allOf") if key in given), None):
                parts = given[key]
                if not isinstance(parts, list) or not parts:
                    raise InputError("must be a list of schemas.", field=f"{place}.{key}")
                others = [one for one in parts if not (isinstance(one, dict) and one.get("type") == "null")]
                nullable = nullable or len(others) < len(parts)
                given = {**self._join(others, f"{place}.{key}"), **_without(given, key)}
            else:
                return given, nullable
        raise InputError("must not refer to itself.", field=place)

    def _find(self, reference: Any, place: str) -> Mapping[str, Any]:
        """Return what a reference within the schema names."""
        found: Any = self._root
        names = reference.removeprefix("#").split("/")[1:] if isinstance(reference, str) else ["?"]
        if isinstance(reference, str) and not reference.startswith("#"):
            raise InputError("must name a part of the same schema: '#/$defs/…'.", field=f"{place}.$ref")
        for name in names:
            found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise InputError(f"{str(reference)[:100]!r} is not in the schema.", field=f"{place}.$ref")
        return found

    def _join(self, parts: Sequence[Any], place: str) -> Mapping[str, Any]:
        """Return one schema for a union: that of its only part, or of several single types."""
        if len(parts) == 1 and isinstance(parts[0], dict):
            return parts[0]
        types: list[str] = []
        for part in parts:
            of_part = part.get("type") if isinstance(part, dict) else None
            if of_part not in _SINGLE or "enum" in part or "const" in part:
                advice = "must be one schema, or that and null; unions of objects, lists or enums are not supported"
                raise InputError(f"{advice}.", field=place)
            types.append(of_part)
        return {"type": types}

    def _types(self, schema: Mapping[str, Any], place: str) -> tuple[str, ...]:
        given = schema.get("type")
        if given is None:
            values = _choices(schema, place)
            implied = "object" if "properties" in schema else "array" if "items" in schema else None
            given = [implied] if implied else [_type_of(one) for one in values]
        types = given if isinstance(given, list) else [given]
        return tuple(dict.fromkeys(str(one)[:100] for one in types))


def _without(schema: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name not in (key, "nullable")}


def _choices(schema: Mapping[str, Any], place: str) -> tuple[Any, ...]:
    choices = [schema["const"]] if "const" in schema else schema.get("enum", [])
    if not isinstance(choices, list) or any(_type_of(one) not in (*_SINGLE, "null") for one in choices):
        raise InputError("must be a list of single values.", field=f"{place}.enum")
    return tuple(choices)


def _type_of(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array"}
    return kinds.get(type(value), "object")


def _label(name: str, schema: Mapping[str, Any]) -> str:
    title, description = schema.get("title"), schema.get("description")
    own = _CAMEL.sub(" ", name).lower()
    if isinstance(title, str) and title.replace(" ", "").lower() != own.replace(" ", ""):
        own = title  # a title of the author's, not the name that Pydantic has written in another way
    label = _NO_SENTENCE.sub(" ", own).strip()
    if isinstance(description, str) and description.strip():
        label = f"{label} ({_NO_SENTENCE.sub(' ', description[:_LABEL]).strip()})".strip()
    return label


def _all_of(shape: Shape) -> Iterator[Shape]:
    yield shape
    if isinstance(shape, ListShape):
        yield from _all_of(shape.items)
    elif isinstance(shape, ObjectShape):
        for one in shape.properties.values():
            yield from _all_of(one)


def _count(shape: Shape) -> int:
    """Return how many values a reply is expected to have."""
    if isinstance(shape, ListShape):
        return _LIST_ITEMS * _count(shape.items)
    return sum(map(_count, shape.properties.values())) if isinstance(shape, ObjectShape) else 1


def _reply_schema(shape: Shape) -> dict[str, Any]:
    if isinstance(shape, ListShape):
        return {"type": "array", "items": _reply_schema(shape.items)}
    if isinstance(shape, ObjectShape):
        properties = {name: _reply_schema(one) for name, one in shape.properties.items()}
    else:
        value: dict[str, Any] = {"type": [*shape.types, "null"]}
        if shape.choices:
            value["enum"] = [*shape.choices, None]
        # The words before the value: a model decides better after it has looked.
        properties = {"words": {"type": ["string", "null"]}, "passage": {"type": ["integer", "null"]}, "value": value}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _outline(shape: Shape) -> Any:
    if isinstance(shape, ListShape):
        return [_outline(shape.items)]
    if isinstance(shape, ObjectShape):
        return {name: _outline(one) for name, one in shape.properties.items()}
    about = f" - {shape.label}" if shape.label else ""
    return {"words": "…", "passage": 1, "value": f"<{shape.told} or null{about}>"}

"""Any LlamaIndex class by its path: LLMs, embeddings, postprocessors, readers and transformations.

A path names code that runs in this process. It may come from settings and index definitions, which
administrators write, and never from a request.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import json
import pkgutil
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BaseReader
from pydantic import BaseModel, SecretStr, ValidationError

from rag_service.errors import ConfigurationError
from rag_service.indices import FILE_EXTENSION, IndexDefinition
from rag_service.settings.group import CLASS_PATH


def require_extra(package: str, *, extra: str, setting: str, value: str) -> None:
    """Raise ConfigurationError if the package of an extra is not installed. Nothing is imported."""
    try:
        found = importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # a parent package is missing
        found = False
    if not found:
        raise ConfigurationError(
            f"{setting}={value} needs the extra `{extra}`: install it with `pip install 'rag-service[{extra}]'`.",
            field=setting,
        )


T = TypeVar("T")


def parse_options(options: SecretStr | None, *, setting: str) -> dict[str, Any]:
    """Keyword arguments from a setting that holds a JSON object; none where it is unset.

    Raises ConfigurationError if it does not hold a JSON object.
    """
    if options is None:
        return {}
    try:
        parsed = json.loads(options.get_secret_value())
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise _error(setting, 'expected a JSON object, such as {"model": "name"}')
    return parsed


def build(path: str, options: Mapping[str, Any], base: type[T], *, setting: str) -> T:
    """An object of the class at `path`, made with `options` as keyword arguments.

    `path` is `package.module:Class`; `setting` says where it was written, for errors. Raises ConfigurationError if
    there is no such class, it is not a `base`, or it rejects the options.
    """
    return instantiate(load_class(path, base, setting=setting), options, setting=setting)


def load_class(path: str, base: type[T], *, setting: str) -> type[T]:
    """The class at `path`, which is a concrete subclass of `base`.

    Raises ConfigurationError, which names the setting, the class and what was expected.
    """
    match = CLASS_PATH.fullmatch(path)
    if match is None:
        raise _error(setting, f"{path!r} is not a class path; write it as package.module:Class")
    module, name = _import(match["module"], setting), match["name"]
    found = getattr(module, name, None)
    if found is None:
        raise _error(setting, f"{module.__name__} has no class {name}.{_hint(name, _classes(module, base))}")
    if not isinstance(found, type) or not issubclass(found, base):
        raise _error(setting, f"{path} is not a subclass of {base.__module__}.{base.__qualname__}")
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise _error(setting, f"{path} is abstract; it does not implement {missing}")
    return found


def instantiate(cls: type[T], options: Mapping[str, Any], *, setting: str) -> T:
    """An object of a loaded class; `options` are its keyword arguments.

    Raises ConfigurationError if the class rejects the options. It never shows their values, which may be secrets.
    """
    check_options(cls, options, setting=setting)
    name = f"{cls.__module__}:{cls.__qualname__}"
    try:
        return cls(**options)
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        raise _error(setting, f"{name} rejects its options: {'; '.join(problems)}") from error
    except ImportError as error:
        raise _error(setting, f"{name} needs a package that is not installed: {error}") from error
    except TypeError as error:  # a missing or unknown argument: the message holds names only
        raise _error(setting, f"{name} rejects its options: {error}") from error
    except Exception as error:
        raise _error(setting, f"{name} cannot be created with these options ({type(error).__name__})") from error


def check_options(cls: type, options: Mapping[str, Any], *, setting: str) -> None:
    """Raise ConfigurationError if the class has no option of one of these names. No object is made."""
    known = _known_options(cls)
    if known is not None and (unknown := [option for option in options if option not in known]):
        name = f"{cls.__module__}:{cls.__qualname__}"
        raise _error(setting, f"{name} has no option {unknown[0]!r}.{_hint(unknown[0], known)}")


def require_object(value: object, base: type, *, argument: str) -> None:
    """Raise ConfigurationError unless the value of an argument is a `base` or None."""
    if value is None or isinstance(value, base):
        return
    given = f"the class {value.__name__}; create an object of it" if isinstance(value, type) else repr(value)[:100]
    raise _error(argument, f"expected an object of {base.__module__}.{base.__qualname__}, not {given}")


def require_reader(extension: str, reader: object) -> None:
    """Raise ConfigurationError unless files with the extension can be read by a reader class in the sandbox."""
    setting = f"readers[{extension!r}]"
    if not FILE_EXTENSION.fullmatch(extension):
        raise _error(setting, "the key is not a lower-case file extension such as '.log'")
    if not isinstance(reader, type):
        name = type(reader).__name__
        raise _error(setting, f"expected a class, not an object: pass {name} itself; the sandbox creates the object")
    path = f"{reader.__module__}:{reader.__qualname__}"
    if reader.__module__ == "__main__" or "<locals>" in path:
        raise _error(
            setting,
            f"the sandbox cannot import {path}; define the class at the top level of a module, such as readers.py",
        )
    load_class(path, BaseReader, setting=setting)


def build_postprocessors(index: IndexDefinition) -> list[BaseNodePostprocessor]:
    """The postprocessors that `query.postprocessors` of an index definition names, in its order."""
    file = index.folder / "index.yaml"
    return [
        build(plugin.use, plugin.options, BaseNodePostprocessor, setting=f"{file}: query.postprocessors[{number}]")
        for number, plugin in enumerate(index.query.postprocessors)
    ]


def _import(name: str, setting: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name != missing and not name.startswith(f"{missing}."):  # the module is there; what it imports is not
            raise _error(
                setting, f"{name} needs the package {missing.split('.')[0]}, which is not installed"
            ) from error
        raise _error(setting, f"the module {name} is not installed.{_install_hint(name)}") from error
    except Exception as error:
        raise _error(setting, f"{name} cannot be imported ({type(error).__name__}: {error})") from error


def _install_hint(name: str) -> str:
    """The package that carries a missing module, or an installed module with nearly the same name."""
    parts = name.split(".")
    if parts[0] == "llama_index" and len(parts) > 2 and parts[1] != "core":
        return f" Install it with `pip install llama-index-{parts[1]}-{parts[2]}`.".replace("_", "-")
    parent, _, last = name.rpartition(".")
    return _hint(last, [module.name for module in pkgutil.iter_modules(_folders(parent))], listed=False)


def _folders(package: str) -> Iterable[str]:
    try:
        return getattr(importlib.import_module(package), "__path__", ()) if package else ()
    except ImportError:
        return ()


def _classes(module: ModuleType, base: type) -> list[str]:
    """Names of the concrete subclasses of `base` in a module."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, base) and not inspect.isabstract(value)
    ]


def _known_options(cls: type) -> set[str] | None:
    """Names of the keyword arguments of a class; None where it takes any.

    A pydantic model without a constructor of its own ignores unknown names in silence.
    """
    constructor = inspect.getattr_static(cls, "__init__")
    if issubclass(cls, BaseModel) and constructor.__module__.startswith(("pydantic.", "llama_index.core.")):
        aliases = {field.alias for field in cls.model_fields.values() if field.alias}
        return None if cls.model_config.get("extra") == "allow" else set(cls.model_fields) | aliases
    try:
        parameters = inspect.signature(constructor).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return {parameter.name for parameter in parameters} - {"self"}


def _hint(name: str, known: Iterable[str], *, listed: bool = True) -> str:
    known = sorted(known)
    if near := difflib.get_close_matches(name, known, n=1):
        return f" Did you mean {near[0]}?"
    return f" There are: {', '.join(known)}." if known and listed else ""


def _error(setting: str, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{setting}: {problem}{'' if problem.endswith(('.', '?')) else '.'}", field=setting)

